// The command as it is built, run as people and programs run it, with a server for it to talk to. Processes that bear
// the mark of a run are counted afterwards: none may be left.

import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, expect } from "vitest";

export const CLI: string = fileURLToPath(new URL("../../dist/cli/main.js", import.meta.url));
const DESK = fileURLToPath(new URL("desk.js", import.meta.url));

/** What stands behind `--` to start the server of these tests. */
export const DESK_COMMAND: readonly string[] = [process.execPath, CLI, "serve", DESK];

/** Inherited by all that a run starts. */
const MARK = "CATENARY_CLI_TEST";

export interface RunOptions {
  readonly env?: NodeJS.ProcessEnv;
  readonly cwd?: string;
}

export class Run {
  readonly process: ChildProcessWithoutNullStreams;
  readonly exited: Promise<number | null>;
  readonly mark: string = randomUUID();
  out = "";
  err = "";
  /** Stdout as it came. */
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

  async says(words: string): Promise<void> {
    await expect.poll(() => (this.err.includes(words) ? words : this.err), { timeout: 20_000 }).toBe(words);
  }
}

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
  readonly bytes: Buffer;
}

/** Runs `catenary` to its end, with this on its stdin. */
export async function catenary(args: readonly string[], input = "", options: RunOptions = {}): Promise<Ran> {
  const run = new Run(args, options);
  run.process.stdin.end(input);
  const late = setTimeout(() => run.process.kill("SIGKILL"), 25_000);
  const code = await run.exited;
  clearTimeout(late);
  await nobodyLeft(run.mark);
  return { code, out: run.out, err: run.err, bytes: Buffer.concat(run.bytes) };
}

/** The same toward the server of these tests, which is started for it. */
export function atDesk(args: readonly string[], input = "", options: RunOptions = {}): Promise<Ran> {
  return catenary([...args, "--", ...DESK_COMMAND], input, options);
}

/** The server of these tests over HTTP. */
export async function deskOverHttp(options: RunOptions = {}): Promise<{ url: string; close(): Promise<void> }> {
  const run = new Run(["serve", DESK, "--http", "127.0.0.1:0", "--json"], options);
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

/** Who still bears the mark; only Linux shows it. */
function marked(mark: string): string[] {
  if (process.platform !== "linux") return [];
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, "latin1").includes(`${MARK}=${mark}\0`);
    } catch {
      return false;
    }
  });
}

/** Whoever watches over children goes a moment after the program; there is no event to wait for. */
export async function nobodyLeft(mark: string): Promise<void> {
  await expect.poll(() => marked(mark), { timeout: 10_000 }).toEqual([]);
}

/** The mark for a program that is started otherwise. */
export function marking(): { readonly mark: string; readonly env: NodeJS.ProcessEnv } {
  const mark = randomUUID();
  return { mark, env: { [MARK]: mark } };
}

/** Starts runs for the tests of one file; after each test none of them is left, nor anybody that they have started. */
export function runner(): (args: readonly string[], options?: RunOptions) => Run {
  const started: Run[] = [];
  afterEach(async () => {
    for (const run of started.splice(0)) {
      run.process.kill("SIGKILL");
      await run.exited;
      await nobodyLeft(run.mark);
    }
  });
  return (args, options = {}) => {
    const one = new Run(args, options);
    started.push(one);
    return one;
  };
}
