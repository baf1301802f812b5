// A config as the target of a command: its gateway runs in this process while the command runs. A list waits until the
// servers have started, since a user would rather wait than see a part of it.

import type { Gateway } from "../../chain/gateway.ts";
import type { CodeSettings } from "../../config/live.ts";
import { abortable, deferred, within } from "../../core/async.ts";
import { LineSplitter } from "../terminal/output.ts";
import { oneLine } from "../terminal/text.ts";
import { type ConfigTarget, requireConfig, type TargetValues } from "./target.ts";

export interface LocalGateway {
  readonly handler: Gateway;
  /** Code mode, as the config has it or by default. */
  readonly code: CodeSettings;
  /** Waits until no server is starting any more, at most this long. `busy` shows which ones are. */
  started(limitMs: number, signal: AbortSignal, busy: (text: string) => void): Promise<void>;
  /** Ends all servers. */
  close(budgetMs?: number): Promise<void>;
}

export async function openConfigTarget(
  { config, server, withoutCode }: ConfigTarget,
  values: TargetValues,
  print: (text: string) => void,
): Promise<LocalGateway> {
  const path = await requireConfig(config, "check");
  const { openGateway } = await import("../serve/gateway.ts");
  if (server !== undefined) await (await import("../serve/trust.ts")).confirmConfig(path, false);
  const stderr = new Map<string, LineSplitter>();
  let changed = deferred();
  const report = {
    onState: (): void => {
      changed.resolve();
      changed = deferred();
    },
    onStderr: (name: string, text: string): void => {
      if (values.verbose !== true) return;
      const lines = stderr.get(name) ?? new LineSplitter((line) => print(`${oneLine(name)}: stderr: ${line}`));
      stderr.set(name, lines);
      lines.add(text);
    },
    onNoise: (name: string, line: string): void => {
      if (values.verbose === true) print(`${oneLine(name)}: stdout (not a message): ${line}`);
    },
    onWarning: (name: string, message: string): void => {
      if (values.verbose === true) print(`${oneLine(name)}: ${oneLine(message)}`);
    },
  };
  const off = withoutCode === true ? { code: false } : undefined;
  const { gateway, release, code } = await openGateway(path, report, false, { only: server, ...off });
  return {
    handler: gateway,
    code,
    async started(limitMs, signal, busy) {
      const until = performance.now() + limitMs;
      for (;;) {
        const starting = Object.entries(gateway.status()).filter(([, { state }]) => state === "starting");
        const leftMs = until - performance.now();
        if (starting.length === 0 || leftMs <= 0) return;
        busy(`Starting ${starting.map(([name]) => oneLine(name)).join(", ")}`);
        await abortable(signal, within(leftMs, changed.promise));
      }
    },
    async close(budgetMs) {
      await gateway.close(budgetMs);
      for (const lines of stderr.values()) lines.flush();
      release();
    },
  };
}
