// Runs long-strings-program.js with a deadline, for the tests that send long strings.

import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { PROGRAM_MS } from "../../support/waiting.ts";

const PROGRAM = fileURLToPath(new URL("long-strings-program.js", import.meta.url));

export interface Sent {
  /** How many requests were answered, in how many fields, with how many strings each. */
  readonly count: number;
  readonly fields: number;
  readonly strings: number;
  /** The answers to requests with short strings. */
  readonly answers: readonly string[];
}

/** Rejects if the program takes too long or runs out of memory. The error has the field that it sent last. */
export async function sendLongStrings(...args: readonly string[]): Promise<Sent> {
  const options = { timeout: PROGRAM_MS, killSignal: "SIGKILL", maxBuffer: 10_000_000 } as const;
  const heap = "--max-old-space-size=512";
  try {
    const { stdout } = await promisify(execFile)(process.execPath, [heap, PROGRAM, ...args], options);
    return JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as Sent;
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    throw new Error(`Failed after sending: ${stdout.trim().split("\n").at(-1)}\n${stderr}`, { cause: error });
  }
}
