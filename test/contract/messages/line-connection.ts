// A connection to a server at the level of bytes: a child process over stdio, or a server in this process behind a pair of
// streams. It sends exactly the given bytes, and returns the answers as lines.

import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { PassThrough } from "node:stream";
import type { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { serve } from "catenary";
import type { Handler } from "catenary";
import { WAIT_MS } from "../../support/waiting.ts";

export interface LineConnection {
  /** Sends exactly these bytes; adds no newline. */
  send(bytes: string | Uint8Array): void;
  /** The next line from the server, without its newline. */
  next(): Promise<string>;
  /** Lines that were received and not read with next(). */
  unread(): readonly string[];
  /** Ends the input, waits for the server to end, and returns its exit code (0 if it is not a process). */
  end(): Promise<number>;
}

const launcher = fileURLToPath(new URL("servers/main.js", import.meta.url));

/** Test files close these in afterAll, even after a failure. */
const open = new Set<() => Promise<void>>();

export async function closeConnections(): Promise<void> {
  await Promise.all([...open].map((close) => close()));
}

function connectToProcess(server: string): Promise<LineConnection> {
  return connectToChild(spawn(process.execPath, [launcher, server], { stdio: "pipe" }));
}

/** Takes over a process that has just been started. */
export async function connectToChild(child: ChildProcessWithoutNullStreams): Promise<LineConnection> {
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
  const exited = once(child, "exit") as Promise<[number | null, string | null]>;
  await once(child, "spawn");
  const connection = new StreamConnection(child.stdin, child.stdout, async () => {
    const [code, signal] = await exited;
    if (code === null) throw new Error(`The server was killed by ${signal}\n${stderr}`);
    return code;
  });
  connection.readStderr = () => stderr;
  const kill = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await exited;
    open.delete(kill);
  };
  open.add(kill);
  void exited.then(() => open.delete(kill));
  return connection;
}

async function connectToStreams(server: string): Promise<LineConnection> {
  const module = (await import(new URL(`servers/${server}.js`, import.meta.url).href)) as { server: Handler };
  const input = new PassThrough();
  const output = new PassThrough();
  const serving = await serve(module.server, { stdio: { input, output } });
  const close = async (): Promise<void> => {
    open.delete(close);
    await serving.close();
  };
  open.add(close);
  return new StreamConnection(input, output, async () => {
    await serving.closed;
    open.delete(close);
    return 0;
  });
}

/** Both kinds, by the name in test titles. */
export const CONNECTIONS: readonly (readonly [string, typeof connectToProcess])[] = [
  ["a child process", connectToProcess],
  ["streams in memory", connectToStreams],
];

class StreamConnection implements LineConnection {
  readonly #input: Writable;
  readonly #ended: () => Promise<number>;
  readonly #lines: string[] = [];
  #rest: Buffer[] = [];
  #wake: (() => void) | undefined;
  #over = false;
  /** The stderr of the server, for error messages. */
  readStderr: () => string = () => "";

  constructor(input: Writable, output: Readable, ended: () => Promise<number>) {
    this.#input = input;
    this.#ended = ended;
    // If the server is gone, next() fails.
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
    const connection = this.#lines.shift();
    if (connection !== undefined) return connection;
    if (this.#over) throw new Error(`The server ended\n${this.readStderr()}`);
    await withTimeout("a line", (done) => (this.#wake = done), this.readStderr);
    return this.next();
  }

  unread(): readonly string[] {
    return this.#lines;
  }

  async end(): Promise<number> {
    this.#input.end();
    let code = 0;
    await withTimeout(
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

async function withTimeout(what: string, begin: (done: () => void) => void, stderr: () => string): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`Timed out waiting for ${what}\n${stderr()}`)), WAIT_MS);
    begin(() => {
      clearTimeout(timer);
      resolve();
    });
  });
}
