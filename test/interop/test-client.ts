// One interface to every client library, with the methods that the common tests need, and the fixture servers they
// connect to. Each library has an adapter in a file of its own.

import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { compiled } from "../support/programs.ts";

/** Parsed JSON without a type. */
export type Json = Record<string, ReturnType<typeof JSON.parse>>;

export interface CallOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: Json) => void;
}

export interface TestClient {
  /** The negotiated revision. */
  readonly revision: string;
  readonly server: Json;
  readonly instructions: string | undefined;
  readonly capabilities: Json;
  readonly events: EventLog;
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
  /** From now on only log messages of this level and above arrive. */
  setLevel(level: "debug" | "warning"): Promise<void>;
  /** Subscribes to changes of the list of tools and of one resource. */
  watch(uri: string): Promise<void>;
  unwatch(uri: string): Promise<void>;
  ping(): Promise<unknown>;
  close(): Promise<void>;
}

export type Reference = { type: "ref/prompt"; name: string } | { type: "ref/resource"; uri: string };

export type Roots = readonly { readonly uri: string; readonly name: string }[];

/** Requests and notifications that a client received, in order. */
export class EventLog {
  readonly all: Json[] = [];
  #waiting: (() => void)[] = [];

  add(event: Json): void {
    this.all.push(event);
    for (const resume of this.#waiting.splice(0)) resume();
  }

  /** Waits for the first event that matches, past ones included. The timeout of the test bounds the wait. */
  async until(matches: (event: Json) => boolean): Promise<Json> {
    for (;;) {
      const found = this.all.find(matches);
      if (found !== undefined) return found;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }
}

/** What every client of these tests answers to requests of the server. */
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

/** The command of a fixture server, its process where it listens over HTTP, and the record of its exit. */
export class FixtureServer {
  readonly command: string = process.execPath;
  readonly args: string[];
  readonly #folder = mkdtempSync(join(tmpdir(), "catenary-interop-"));
  readonly #exitFile = join(this.#folder, "exits");
  #child: ChildProcess | undefined;

  constructor(name: "catenary" | "sdk-1" | "sdk-2", ...more: string[]) {
    const script = compiled(`fixtures/${name}-program.ts`, import.meta.url);
    this.args = [script, this.#exitFile, ...more];
  }

  /** Starts it over HTTP and returns its URL, the first line that it prints. */
  async listen(): Promise<string> {
    const child = spawn(this.command, [...this.args, "--http"], { stdio: ["pipe", "pipe", "inherit"] });
    this.#child = child;
    return new Promise((resolve, reject) => {
      child.stdout.setEncoding("utf8").once("data", (line: string) => resolve(line.trim()));
      child.once("exit", (code) => reject(new Error(`The server exited with ${code} before it was ready`)));
    });
  }

  /** Ends the process that `listen` started, by closing its stdin. */
  async stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise((resolve) => child.once("exit", resolve));
    child.stdin?.end();
    await exited;
  }

  /** One line for each process that exited. */
  exitRecords(): string[] {
    return readFileSync(this.#exitFile, "utf8").trim().split("\n");
  }

  /** Command lines of its processes that still run; they contain the path of the exit file. */
  runningProcesses(): string[] {
    return commandLinesWith(this.#folder);
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

/** Running processes whose command line contains the text. None are found where there is no /proc. */
export function commandLinesWith(text: string): string[] {
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
