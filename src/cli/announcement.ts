// What is said when a server over HTTP is ready: where it is, what a client's file wants, and, where others than
// this machine can reach it, that they can.

import { boundName, isLoopback } from "../transport/http/host-rules.ts";
import { moduleName } from "./module.ts";
import { paint } from "./output.ts";

export interface Ready {
  readonly url: string;
  /** The module, as it was named. */
  readonly module: string;
  /** What it listens on. */
  readonly host: string;
}

export function readyLines({ url, module }: Ready): string[] {
  const entry = { mcpServers: { [moduleName(module)]: { type: "http", url } } };
  return [`Serving ${module} at ${paint("cyan", url)}`, `A client's entry: ${JSON.stringify(entry)}`];
}

/** Empty where only this machine can reach it. */
export function warningLines({ host }: Ready): string[] {
  if (isLoopback(boundName(host))) return [];
  return [
    `${paint("yellow", "Warning:")} ${host} can be reached from the network, and nobody is asked who they are:`,
    "whoever reaches it may call every tool. Listen on 127.0.0.1; or put a proxy in front that authenticates;",
    "or serve it by a program of your own, with `auth: bearer(...)` of catenary/server.",
  ];
}
