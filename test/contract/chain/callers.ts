// Callers of a handler, each over a connection in memory, and the program behind the upstreams of these tests.

import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { onTestFinished } from "vitest";
import { connect, type Client, type ConnectOptions } from "../../../src/client/index.ts";
import type { Handler, Caller } from "../../../src/core/handler.ts";
import { serveTransport } from "../../../src/dialogue/connection.ts";
import { memoryPair } from "../../../src/transport/memory.ts";

export const OLDEST = "2024-11-05";
export const SESSION = "2025-11-25";
export const STATELESS = "2026-07-28";

const PROGRAM = fileURLToPath(new URL("program.js", import.meta.url));

/** The program as a command; it imports the built package. */
export function program(...args: readonly string[]): { command: string; args: string[] } {
  return { command: process.execPath, args: [PROGRAM, ...args] };
}

/** Answers each elicitation with its message. */
export const echoing: Pick<ConnectOptions, "elicit"> = {
  elicit: async ({ message }) => ({ action: "accept", content: { answer: message } }),
};

export interface ConnectedCaller {
  readonly client: Client;
  close(): Promise<void>;
}

/** A caller with its own connection; `identity` is what the connection proves of it. */
export async function caller(
  handler: Handler,
  revision: string,
  options: ConnectOptions = {},
  identity?: Partial<Caller>,
): Promise<ConnectedCaller> {
  const [ours, theirs] = memoryPair();
  const known: Handler =
    identity === undefined
      ? handler
      : (request, context) => handler(request, { ...context, caller: { ...context.caller, ...identity } });
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

/** The text of the tool's result. */
export async function call(client: Client, tool: string, args: Record<string, unknown> = {}): Promise<string> {
  return textIn(await client.callTool(tool, args));
}

/** A folder that is deleted after the test. */
export function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "catenary-"));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

/** The contents of all lists that are stored in the cache folder, without those that are still being written. */
export function catalogues(cache: string): string {
  const path = join(cache, "catalogues");
  return readdirSync(path)
    .filter((name) => name.endsWith(".json"))
    .map((name) => readFileSync(join(path, name), "utf8"))
    .join("\n");
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
