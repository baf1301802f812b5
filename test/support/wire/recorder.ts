// Records what passes on the wire while a test file runs: JSON-RPC messages and HTTP heads on the sockets of this
// process, lines on the pipes of child processes and on streams in memory, messages of transports in memory. It
// replaces methods of Node's prototypes once in a process, and keeps a set of normalized lines for each test file.

import { ChildProcess } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { Server, Socket } from "node:net";
import { dirname, join } from "node:path";
import { PassThrough } from "node:stream";
import { HttpReader, MAX_BODY } from "./http-reader.ts";
import { normalize } from "./normalize.ts";
import { parseRecording, textOfRecording } from "./recording.ts";

type Callback = (error?: Error | null) => void;

/** The methods of streams through which all bytes pass. */
interface StreamMethods {
  _write(chunk: unknown, encoding: BufferEncoding, callback: Callback): void;
  _writev?(chunks: { chunk: unknown; encoding: BufferEncoding }[], callback: Callback): void;
  push(chunk: unknown, encoding?: BufferEncoding): boolean;
  _transform(chunk: unknown, encoding: BufferEncoding, callback: Callback): void;
  emit(event: string | symbol, ...values: unknown[]): boolean;
}

/** Where lines go that are seen now; undefined between test files. */
let current: Set<string> | undefined;

export function startRecording(): void {
  current = new Set();
}

/** Adds what was recorded to the file, which counts in how many runs each line was seen. */
export function saveRecording(file: string): void {
  if (current === undefined) return;
  const recording = parseRecording(readOrEmpty(file));
  recording.runs++;
  for (const line of current) recording.counts.set(line, (recording.counts.get(line) ?? 0) + 1);
  current = undefined;
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, textOfRecording(recording));
}

function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

/** One direction of a stream: HTTP if it begins like that, else lines. */
interface Reader {
  write(bytes: Buffer): void;
  end(): void;
}

/** Both directions of a socket. What began in one test file is not recorded in the next. */
class Conversation {
  readonly into: Set<string> | undefined = current;
  /** Methods of the requests that have no response yet. */
  readonly methods: string[] = [];
  readonly outgoing: Reader = new Direction(this, ">");
  readonly incoming: Reader = new Direction(this, "<");

  record(kind: string, text: string): void {
    if (this.into !== undefined && this.into === current) this.into.add(`${kind} ${normalize(text)}`);
  }
}

const LOOKS_LIKE_HTTP = /^(?:[A-Z]+ \S+ HTTP\/1|HTTP\/1)/;

class Direction implements Reader {
  readonly #conversation: Conversation;
  readonly #arrow: string;
  #reader: Reader | undefined;
  #first: Buffer = Buffer.alloc(0);

  constructor(conversation: Conversation, arrow: string) {
    this.#conversation = conversation;
    this.#arrow = arrow;
  }

  write(bytes: Buffer): void {
    if (this.#reader !== undefined) {
      this.#reader.write(bytes);
      return;
    }
    this.#first = Buffer.concat([this.#first, bytes]);
    if (!this.#first.includes(10)) return;
    this.#reader = LOOKS_LIKE_HTTP.test(this.#first.toString("latin1", 0, 2000)) ? this.#http() : this.#lines();
    this.#reader.write(this.#first);
  }

  end(): void {
    this.#reader?.end();
  }

  #http(): Reader {
    const { methods } = this.#conversation;
    // Requests and responses are told apart by what they are, so that both ends of a connection record the same.
    let side = "";
    const record = (text: string): void => this.#conversation.record(side, text);
    return new HttpReader({
      head: (lines) => {
        const [first = ""] = lines;
        side = first.startsWith("HTTP/") ? "response" : "request";
        if (side === "request") methods.push(first.split(" ", 1)[0] ?? "");
        record(lines.join("\n"));
      },
      body: (text) => {
        if (isMessage(text)) record(text);
      },
      event: record,
      answered: () => methods.shift(),
    });
  }

  #lines(): Reader {
    let rest: Buffer[] = [];
    let size = 0;
    return {
      write: (bytes) => {
        const end = bytes.lastIndexOf(10);
        size += bytes.length;
        if (size > MAX_BODY) rest = [];
        else if (end < 0) rest.push(Buffer.from(bytes));
        if (end < 0) return;
        const text = Buffer.concat([...rest, bytes.subarray(0, end)]).toString();
        rest = [Buffer.from(bytes.subarray(end + 1))];
        size = rest[0]?.length ?? 0;
        for (const line of text.split("\n"))
          if (isMessage(line)) this.#conversation.record(`line ${this.#arrow}`, line);
      },
      end: () => undefined,
    };
  }
}

const isMessage = (text: string): boolean => text.includes('"jsonrpc"');

const conversations = new WeakMap<object, Conversation>();

function conversationOf(stream: object): Conversation {
  let conversation = conversations.get(stream);
  if (conversation === undefined) conversations.set(stream, (conversation = new Conversation()));
  return conversation;
}

function bytesOf(chunk: unknown, encoding: BufferEncoding | undefined): Buffer {
  if (typeof chunk === "string") return Buffer.from(chunk, encoding);
  return chunk instanceof Uint8Array ? Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength) : Buffer.alloc(0);
}

function hookSockets(): void {
  const proto = Socket.prototype as unknown as StreamMethods;
  const { _write, _writev, push } = proto;
  proto._write = function write(chunk, encoding, callback) {
    conversationOf(this).outgoing.write(bytesOf(chunk, encoding));
    _write.call(this, chunk, encoding, callback);
  };
  proto._writev = function writeAll(chunks, callback) {
    for (const { chunk, encoding } of chunks) conversationOf(this).outgoing.write(bytesOf(chunk, encoding));
    _writev?.call(this, chunks, callback);
  };
  proto.push = function pushChunk(chunk, encoding) {
    const { incoming } = conversationOf(this);
    if (chunk === null) incoming.end();
    else incoming.write(bytesOf(chunk, encoding));
    return push.call(this, chunk, encoding);
  };
  // A server of node:http reads the handle of a socket past the stream, unless it takes it for read already.
  const server = Server.prototype as unknown as StreamMethods;
  const { emit } = server;
  server.emit = function emitEvent(event, ...values) {
    const [socket] = values;
    if (event === "connection" && socket instanceof Socket) {
      const { _handle: handle } = socket as unknown as { _handle?: { _consumed?: boolean } };
      if (handle !== undefined) handle._consumed = true;
    }
    return emit.call(this, event, ...values);
  };
}

/** What a child reads and writes are the two directions of one conversation. Its stderr is none. */
function hookChildren(): void {
  const proto = ChildProcess.prototype as unknown as { spawn(options: unknown): unknown };
  const { spawn } = proto;
  proto.spawn = function spawnChild(this: ChildProcess, options) {
    const result = spawn.call(this, options);
    const conversation = new Conversation();
    for (const stream of [this.stdin, this.stdout]) if (stream) conversations.set(stream, conversation);
    return result;
  };
}

/** Tests have servers and clients of lines talk over streams in memory. */
function hookStreams(): void {
  const proto = PassThrough.prototype as unknown as StreamMethods;
  const { _transform } = proto;
  proto._transform = function transform(chunk, encoding, callback) {
    conversationOf(this).outgoing.write(bytesOf(chunk, encoding));
    _transform.call(this, chunk, encoding, callback);
  };
}

/** Transports in memory pass messages as objects. */
export function hookMemory(transport: object): void {
  const proto = Object.getPrototypeOf(transport) as { send?(message: unknown): unknown };
  const { send } = proto;
  if (send === undefined) throw new Error("Transports in memory have no method send any more: record them elsewhere");
  proto.send = function sendMessage(message) {
    conversationOf(this).record("memory", JSON.stringify(message, writeExactly));
    return send.call(this, message);
  };
}

function writeExactly(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? String(value) : value;
}

/** Replaces the methods. Call this once in a process. */
export function hookProcess(): void {
  hookSockets();
  hookChildren();
  hookStreams();
}

/** The file of the recording of a test file, which is a path from the root of the repository. */
export function recordingOf(folder: string, testFile: string): string {
  return join(folder, `${testFile}.txt`);
}
