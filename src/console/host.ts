// What the console needs from the program that runs the gateway. The console itself starts nothing and reads no files of
// the config: it asks its host.

import type { ConfigGateway } from "../config/gateway.ts";
import type { ConsoleInfo, LogLine } from "./types.ts";

/** The log of the gateway. */
export interface GatewayLog {
  /** The last entries, oldest first; of one upstream, or of all. */
  recent(upstream?: string): readonly LogLine[];
  /** Calls back with each new entry. Returns a function that stops this. */
  follow(onEntry: (entry: LogLine) => void): () => void;
  write(entry: Omit<LogLine, "time">): void;
}

export interface ConsoleHost {
  readonly running: ConfigGateway;
  readonly log: GatewayLog;
  info(): Omit<ConsoleInfo, "keptRows" | "keptBytes" | "keptSince">;
  /** Starts an upstream anew. Rejects with the reason if that is not possible. */
  restart(upstream: string): Promise<void>;
  /** Reads the config again; undefined if there is no file. Resolves to whether it is in use now. */
  reload: (() => Promise<boolean>) | undefined;
}
