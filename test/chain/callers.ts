// Callers of a handler, each over a wire of its own in memory, and the program that stands behind ends in these tests.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { connect, type Client, type ConnectOptions } from "../../src/client/index.ts";
import type { Handler, Caller } from "../../src/core/handler.ts";
import { serveTransport } from "../../src/dialogue/connection.ts";
import { memoryPair } from "../../src/transport/memory.ts";

export const OLDEST = "2024-11-05";
export const SESSION = "2025-11-25";
export const EXCHANGE = "2026-07-28";

const PROGRAM = fileURLToPath(new URL("program.js", import.meta.url));

/** The program as a command; it imports the package as it is built. */
export function program(...args: readonly string[]): { command: string; args: string[] } {
  return { command: process.execPath, args: [PROGRAM, ...args] };
}

/** Answers each question with the question. */
export const echoing: Pick<ConnectOptions, "elicit"> = {
  elicit: async ({ message }) => ({ action: "accept", content: { answer: message } }),
};

export interface Served {
  readonly client: Client;
  close(): Promise<void>;
}

/** A caller of its own; `proved` is what the wire has proved of it. */
export async function caller(
  handler: Handler,
  revision: string,
  options: ConnectOptions = {},
  proved?: Partial<Caller>,
): Promise<Served> {
  const [ours, theirs] = memoryPair();
  const known: Handler =
    proved === undefined
      ? handler
      : (request, context) => handler(request, { ...context, caller: { ...context.caller, ...proved } });
  const served = await serveTransport(known, theirs);
  const client = await connect(ours, { revision, ...options });
  let closing: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    await client.close();
    await served.close();
  };
  const once = (): Promise<void> => (closing ??= close());
  onTestFinished(once);
  return { client, close: once };
}

export function textIn(result: { readonly content?: unknown }): string {
  const [block] = result.content as readonly { readonly text?: string }[];
  return block?.text ?? "";
}

/** The text that the tool answers with. */
export async function call(client: Client, tool: string, args: Record<string, unknown> = {}): Promise<string> {
  return textIn(await client.callTool(tool, args));
}

/** A folder that is gone after the test, as the cache of all that is made in it. */
export function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "catenary-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
