// One line to a server, as bytes: a real child process over stdio, or the same server in this process behind a
// pair of streams. A line sends exactly the bytes it is given and hands out what comes back as lines of text,
// in order. What the messages mean is for whoever holds the line.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { serve } from "catenary";
import type { Handler, ServeOptions } from "catenary";

export interface LineOptions {
  readonly profile?: NonNullable<ServeOptions["profile"]>;
  readonly ordering?: NonNullable<ServeOptions["ordering"]>;
}

export interface Line {
  /** Exactly these bytes; a newline only where they have one. */
  send(bytes: string | Uint8Array): void;
  /** The next line that comes back, without its newline. */
  next(): Promise<string>;
  /** Lines that came and were not asked for yet. */
  unread(): readonly string[];
  /** Ends the input, waits for the server's own end, and returns its exit code (0 where it is no process). */
  end(): Promise<number>;
}

/** No test waits longer than this for one line or for the end: far more than any machine needs. */
const PATIENCE_MS = 10_000;

const launcher = fileURLToPath(new URL("servers/main.js", import.meta.url));

/** Each test file ends what it opened, whatever happened in between. */
const open = new Set<() => Promise<void>>();

export async function closeLines(): Promise<void> {
  await Promise.all([...open].map((close) => close()));
}

async function childLine(server: string, options: LineOptions = {}): Promise<Line> {
  const child = spawn(process.execPath, [launcher, server, JSON.stringify(options)], { stdio: "pipe" });
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const exited = once(child, "exit") as Promise<[number | null, string | null]>;
  await once(child, "spawn");
  const line = new StreamLine(child.stdin, child.stdout, async () => {
    const [code, signal] = await exited;
    if (code === null) throw new Error(`The server was ended by ${signal}\n${stderr}`);
    return code;
  });
  line.readStderr = () => stderr;
  const kill = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await exited;
    open.delete(kill);
  };
  open.add(kill);
  void exited.then(() => open.delete(kill));
  return line;
}

async function streamLine(server: string, options: LineOptions = {}): Promise<Line> {
  const module = (await import(new URL(`servers/${server}.js`, import.meta.url).href)) as { server: Handler };
  const input = new PassThrough();
  const output = new PassThrough();
  const serving = await serve(module.server, { ...options, stdio: { input, output } });
  const close = async (): Promise<void> => {
    open.delete(close);
    await serving.close();
  };
  open.add(close);
  return new StreamLine(input, output, async () => {
    await serving.closed;
    open.delete(close);
    return 0;
  });
}

/** Both, by the name under which a test shows them. */
export const LINES: readonly (readonly [string, typeof childLine])[] = [
  ["a child process", childLine],
  ["streams in memory", streamLine],
];

class StreamLine implements Line {
  readonly #input: Writable;
  readonly #ended: () => Promise<number>;
  readonly #lines: string[] = [];
  #rest: Buffer[] = [];
  #wake: (() => void) | undefined;
  #over = false;
  /** What a server in trouble wrote to stderr. */
  readStderr: () => string = () => "";

  constructor(input: Writable, output: Readable, ended: () => Promise<number>) {
    this.#input = input;
    this.#ended = ended;
    // A server that is gone shows itself by the lines that do not come.
    input.on("error", () => undefined);
    output.on("data", (chunk: Buffer) => this.#take(chunk));
    output.on("end", () => {
      this.#over = true;
      this.#wake?.();
    });
  }

  send(bytes: string | Uint8Array): void {
    this.#input.write(bytes);
  }

  async next(): Promise<string> {
    const line = this.#lines.shift();
    if (line !== undefined) return line;
    if (this.#over) throw new Error(`The server has ended\n${this.readStderr()}`);
    await bounded("a line", (done) => (this.#wake = done), this.readStderr);
    return this.next();
  }

  unread(): readonly string[] {
    return this.#lines;
  }

  async end(): Promise<number> {
    this.#input.end();
    let code = 0;
    await bounded(
      "the end of the server",
      (done) => {
        void this.#ended().then((found) => {
          code = found;
          done();
        });
      },
      this.readStderr,
    );
    if (this.#rest.length > 0) throw new Error(`The last line has no newline: ${Buffer.concat(this.#rest).toString()}`);
    return code;
  }

  #take(chunk: Buffer): void {
    let start = 0;
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, start)) {
      this.#lines.push(Buffer.concat([...this.#rest, chunk.subarray(start, at)]).toString("utf8"));
      this.#rest = [];
      start = at + 1;
    }
    if (start < chunk.length) this.#rest.push(chunk.subarray(start));
    this.#wake?.();
  }
}

async function bounded(what: string, begin: (done: () => void) => void, stderr: () => string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`Waited in vain for ${what}\n${stderr()}`)), PATIENCE_MS);
    begin(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
