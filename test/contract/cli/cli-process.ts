// Runs the built CLI as a process, with a test server to talk to. Each run marks its environment, so that tests can check
// that no process is left.

import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, expect } from "vitest";
import { PROGRAM_MS } from "../../support/waiting.ts";

export const CLI: string = fileURLToPath(new URL("../../../dist/cli/main.js", import.meta.url));
const TEST_SERVER = fileURLToPath(new URL("test-server.js", import.meta.url));

/** The command of the test server, for use after `--`. */
export const TEST_SERVER_COMMAND: readonly string[] = [process.execPath, CLI, "serve", TEST_SERVER];

/** A variable that child processes inherit. */
const MARK = "CATENARY_CLI_TEST";

export interface RunOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
}

export class CliProcess {
  readonly process: ChildProcessWithoutNullStreams;
  readonly exited: Promise<number | null>;
  readonly mark: string = randomUUID();
  out = "";
  err = "";
  /** The chunks of stdout. */
  readonly bytes: Buffer[] = [];

  constructor(args: readonly string[], { env, cwd }: RunOptions = {}) {
    this.process = spawn(process.execPath, [CLI, ...args], {
      env: { ...process.env, FORCE_COLOR: undefined, [MARK]: this.mark, ...env },
      ...(cwd === undefined ? undefined : { cwd }),
    });
    this.process.stdout.on("data", (chunk: Buffer) => {
      this.bytes.push(chunk);
      this.out += chunk.toString();
    });
    this.process.stderr.setEncoding("utf8").on("data", (text: string) => (this.err += text));
    this.process.stdin.on("error", () => undefined);
    this.exited = new Promise((resolve) => this.process.once("close", resolve));
  }

  async waitForStderr(text: string): Promise<void> {
    await expect.poll(() => (this.err.includes(text) ? text : this.err)).toBe(text);
  }
}

export interface CliResult {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
  readonly bytes: Buffer;
}

/** Runs `catenary` until it exits, with `input` on stdin. */
export async function catenary(args: readonly string[], input = "", options: RunOptions = {}): Promise<CliResult> {
  const run = new CliProcess(args, options);
  run.process.stdin.end(input);
  const killTimer = setTimeout(() => run.process.kill("SIGKILL"), PROGRAM_MS);
  const code = await run.exited;
  clearTimeout(killTimer);
  await expectNoProcesses(run.mark);
  return { code, out: run.out, err: run.err, bytes: Buffer.concat(run.bytes) };
}

/** Runs `catenary` with the test server as its target. */
export function callTestServer(args: readonly string[], input = "", options: RunOptions = {}): Promise<CliResult> {
  return catenary([...args, "--", ...TEST_SERVER_COMMAND], input, options);
}

/** Starts the test server over HTTP. */
export async function startTestServer(options: RunOptions = {}): Promise<{ url: string; close(): Promise<void> }> {
  const run = new CliProcess(["serve", TEST_SERVER, "--http", "127.0.0.1:0", "--json"], options);
  await Promise.race([once(run.process.stdout, "data"), run.exited]);
  if (run.out === "") throw new Error(run.err);
  return {
    url: (JSON.parse(run.out) as { url: string }).url,
    close: async () => {
      run.process.kill("SIGKILL");
      await run.exited;
    },
  };
}

/** The pids of processes with this mark; only on Linux. */
function findMarked(mark: string): string[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, "latin1").includes(`${MARK}=${mark}\0`);
    } catch {
      return false;
    }
  });
}

/** Polls, because the guardian process ends a moment after the program. */
export async function expectNoProcesses(mark: string): Promise<void> {
  await expect.poll(() => findMarked(mark)).toEqual([]);
}

/** A mark for a program that is not started by CliProcess. */
export function markProcesses(): { readonly mark: string; readonly env: NodeJS.ProcessEnv } {
  const mark = randomUUID();
  return { mark, env: { [MARK]: mark } };
}

/** Starts processes for the tests of one file. After each test they are killed, and none may be left. */
export function cliRunner(): (args: readonly string[], options?: RunOptions) => CliProcess {
  const started: CliProcess[] = [];
  afterEach(async () => {
    for (const run of started.splice(0)) {
      run.process.kill("SIGKILL");
      await run.exited;
      await expectNoProcesses(run.mark);
    }
  });
  return (args, options = {}) => {
    const one = new CliProcess(args, options);
    started.push(one);
    return one;
  };
}
