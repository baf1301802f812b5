// One way to speak to a fixture server, whichever client library stands behind it: the verbs that the
// conversation needs, each in the plainest form, and what a caller of these tests answers when it is
// asked. The conversation is written once against this; each library has its own file beside this one.

import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Parsed JSON, looked into without a type for it. */
export type Json = Record<string, ReturnType<typeof JSON.parse>>;

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Json) => void;
}

export interface Peer {
  /** The revision that both sides agreed on. */
  readonly revision: string;
  readonly server: Json;
  readonly instructions: string | undefined;
  readonly capabilities: Json;
  readonly ear: Ear;
  tools(): Promise<Json[]>;
  resources(): Promise<Json[]>;
  /** One page of resources. */
  page(cursor?: string): Promise<Json>;
  templates(): Promise<Json[]>;
  prompts(): Promise<Json[]>;
  call(name: string, args?: Json, options?: CallOptions): Promise<Json>;
  read(uri: string): Promise<Json>;
  prompt(name: string, args: Record<string, string>): Promise<Json>;
  complete(ref: Reference, name: string, value: string, chosen?: Record<string, string>): Promise<string[]>;
  /** From now on only log messages of this urgency and above. */
  setLevel(level: "debug" | "warning"): Promise<void>;
  /** From now on changes of the list of tools, and of one resource, reach the ear. */
  watch(uri: string): Promise<void>;
  unwatch(uri: string): Promise<void>;
  ping(): Promise<unknown>;
  close(): Promise<void>;
}

export type Reference = { type: "ref/prompt"; name: string } | { type: "ref/resource"; uri: string };

export type Roots = readonly { readonly uri: string; readonly name: string }[];

/** What a server said without being asked, in the order in which it came. */
export class Ear {
  readonly heard: Json[] = [];
  #waiting: (() => void)[] = [];

  hear(event: Json): void {
    this.heard.push(event);
    for (const look of this.#waiting.splice(0)) look();
  }

  /** The first event that passes, come already or yet to come. The test's own timeout bounds the wait. */
  async until(passes: (event: Json) => boolean): Promise<Json> {
    for (;;) {
      const found = this.heard.find(passes);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }
}

/** What every caller of these tests says when it is asked. */
export const ANSWERS = {
  elicit: { action: "accept" as const, content: { name: "Ada", age: 36 } },
  sample: {
    role: "assistant" as const,
    model: "parrot-1",
    content: { type: "text" as const, text: "something" },
    stopReason: "endTurn" as const,
  },
  roots: [{ uri: "file:///tmp/here", name: "here" }],
};

/** How a fixture is started, and the word that it leaves when it ends. */
export class Fixture {
  readonly command: string = process.execPath;
  readonly args: string[];
  readonly #folder = mkdtempSync(join(tmpdir(), "catenary-interop-"));
  #child: ChildProcess | undefined;

  constructor(name: "catenary" | "sdk-1" | "sdk-2", ...more: string[]) {
    const script = fileURLToPath(new URL(`fixtures/${name}.ts`, import.meta.url));
    this.args = ["--import", "tsx", script, join(this.#folder, "word"), ...more];
  }

  /** Starts it by itself, for a wire on which callers come and go; the first line that it writes is its address. */
  async listen(): Promise<string> {
    const child = spawn(this.command, [...this.args, "--http"], { stdio: ["pipe", "pipe", "inherit"] });
    this.#child = child;
    return new Promise((resolve, reject) => {
      child.stdout.setEncoding("utf8").once("data", (line: string) => resolve(line.trim()));
      child.once("exit", (code) => reject(new Error(`It left with ${code} before it was ready`)));
    });
  }

  /** Ends what `listen` started, by the end of its input. */
  async end(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const left = new Promise((resolve) => child.once("exit", resolve));
    child.stdin?.end();
    await left;
  }

  /** The last word of each process that was started, one a line. */
  lastWords(): string[] {
    return readFileSync(join(this.#folder, "word"), "utf8").trim().split("\n");
  }

  /** The processes that still run of those that were started: the file for the last word is on their command line. */
  survivors(): string[] {
    return runningWith(this.#folder);
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Command lines that hold a text; where there is no /proc, none are seen. */
export function runningWith(text: string): string[] {
  if (!existsSync("/proc/self/cmdline")) return [];
  return readdirSync("/proc").flatMap((pid) => {
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      return line.includes(text) ? [`${pid}: ${line}`] : [];
    } catch {
      return [];
    }
  });
}
