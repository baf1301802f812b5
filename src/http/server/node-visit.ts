// A visit by way of node:http. This is the fast path: a request whose body came with its head costs no timer, no
// listener and no copy, and its answer is one write. Works as well behind a framework that was there first (a path
// that was cut, a body that was read). What a server does around its requests stands in listener.ts.

import { ServerResponse } from "node:http";
import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { readBody } from "./node-body.ts";
import { expectTaken, NodeSink, NOWHERE } from "./node-sink.ts";
import type { RequestHeaders, Sink, Visit } from "./visit.ts";
import { STREAM_HEADERS } from "./visit-refusals.ts";

/** A body of at most this length is let in after an early answer, so that the connection can be used again. */
const SMALL_BODY_BYTES = 64 * 1024;

/** How long a caller that is still sending has to read the answer that says why it should stop. */
const LINGER_MS = 2_000;

export class NodeVisit implements Visit {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: RequestHeaders;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  /** The host of an absolute request target. */
  readonly #target: string | undefined;
  #awaitsContinue: boolean;
  #begun = false;
  #isWhole = false;
  #wantsBody = false;
  #isWatched = false;

  /** `awaitsContinue`: the caller asked whether it may send its body, and nobody has told it yet. */
  constructor(request: IncomingMessage, response: ServerResponse, awaitsContinue = false) {
    this.#request = request;
    this.#response = response;
    this.#awaitsContinue = awaitsContinue;
    this.method = request.method ?? "GET";
    // With a server's default options only Set-Cookie could be more than a text, and no request has it.
    this.headers = request.headers as RequestHeaders;
    // A framework that cuts the path where a handler is mounted keeps the whole one beside it.
    const original = (request as { originalUrl?: unknown }).originalUrl;
    let target = typeof original === "string" ? original : (request.url ?? "/");
    if (target.charCodeAt(0) !== SLASH) {
      const absolute = ABSOLUTE.exec(target);
      if (absolute !== null) {
        this.#target = absolute[1] ?? "";
        const rest = absolute[2] ?? "";
        target = rest.charCodeAt(0) === SLASH ? rest : `/${rest}`;
      }
    }
    const mark = target.indexOf("?");
    this.path = mark < 0 ? target : target.slice(0, mark);
    this.query = mark < 0 ? "" : target.slice(mark + 1);
  }

  get origin(): string {
    const scheme = "encrypted" in this.#request.socket ? "https" : "http";
    return `${scheme}://${this.headers["host"] ?? ""}`;
  }

  get ambiguous(): boolean {
    // A first line without a version: whoever stood between has read the rest in another way, or not at all.
    if (this.#request.httpVersionMajor === 0) return true;
    if (this.#target !== undefined && this.#target.toLowerCase() !== this.headers["host"]?.toLowerCase()) return true;
    const raw = this.#request.rawHeaders;
    let seen = 0;
    for (let index = 0; index < raw.length; index += 2) {
      const bit = singleBit(raw[index] as string);
      if ((seen & bit) !== 0) return true;
      seen |= bit;
    }
    return false;
  }

  get isGone(): boolean {
    return !this.#isWhole && (this.#response.destroyed || this.#request.socket.destroyed);
  }

  onGone(act: () => void): void {
    if (this.#isWhole) return;
    if (this.isGone) return act();
    this.#isWatched = true;
    goneActs(this.#request.socket).set(this, act);
  }

  body(maxBytes: number, maxMs: number): Promise<string> {
    this.#wantsBody = true;
    const proceed = this.#awaitsContinue ? () => this.#response.writeContinue() : undefined;
    this.#awaitsContinue = false;
    return readBody(this.#request, maxBytes, maxMs, proceed);
  }

  answer(status: number, headers: Readonly<Record<string, string>>, body = ""): void {
    const response = this.#response;
    if (this.#begun || this.isGone || response.headersSent) return;
    this.#begun = true;
    this.#conclude();
    const length = Buffer.byteLength(body);
    const isEmpty = status === 204 || status === 304;
    if (this.#leavesBody()) return this.#linger(status, headers, body);
    writeHead(response, status, headers, isEmpty ? undefined : length);
    // As many bytes as characters means that all are ASCII, which needs no conversion.
    response.end(body, length === body.length ? "latin1" : "utf8");
    expectTaken(response, this.#request.socket);
  }

  stream(headers: Readonly<Record<string, string>>): Sink {
    const response = this.#response;
    if (this.#begun || this.isGone || response.headersSent) return NOWHERE;
    this.#begun = true;
    const { socket } = this.#request;
    socket.setNoDelay(true);
    // The head goes out by itself, but together with the first event where there is one already.
    socket.cork();
    writeHead(response, 200, { ...STREAM_HEADERS, ...headers });
    response.flushHeaders();
    process.nextTick(() => socket.uncork());
    return new NodeSink(response, socket, () => this.#conclude());
  }

  /** From now on it does not matter whether the caller is there. */
  #conclude(): void {
    this.#isWhole = true;
    if (this.#isWatched) goneActs(this.#request.socket).delete(this);
  }

  /** Whether more of the body may come than we want to wait for. */
  #leavesBody(): boolean {
    if (this.#request.complete) return false;
    // Whoever answers before the body is there, though it was asked for, has refused it.
    if (this.#wantsBody || this.headers["transfer-encoding"] !== undefined) return true;
    return Number(this.headers["content-length"] ?? 0) > SMALL_BODY_BYTES;
  }

  /**
   * Answers a caller that is still sending. A connection closed at once would be reset by what still comes, and the
   * caller would never see the answer; so what comes is thrown away, for a while.
   */
  #linger(status: number, headers: Readonly<Record<string, string>>, body: string): void {
    const request = this.#request;
    const response = this.#response;
    writeHead(response, status, { ...headers, connection: "close" }, Buffer.byteLength(body));
    if (body === "") response.flushHeaders();
    else response.write(body);
    const done = (): void => {
      clearTimeout(timer);
      if (!response.destroyed) response.end();
    };
    const timer = setTimeout(done, LINGER_MS);
    request.once("close", done);
    request.resume();
  }
}

/**
 * What is to be done when a connection ends, by visit. One listener for each connection is cheaper than one for each
 * request, and a request that waits behind another's answer would not hear of the end by its own response.
 */
function goneActs(socket: Socket): Map<NodeVisit, () => void> {
  let acts = GONE_ACTS.get(socket);
  if (acts === undefined) {
    const created = new Map<NodeVisit, () => void>();
    acts = created;
    GONE_ACTS.set(socket, created);
    socket.once("close", () => {
      for (const act of created.values()) act();
    });
  }
  return acts;
}

const GONE_ACTS = new WeakMap<Socket, Map<NodeVisit, () => void>>();

function writeHead(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
  length?: number,
): void {
  // What a framework has put in its place may know no other form than this.
  if (response.writeHead !== ServerResponse.prototype.writeHead) {
    response.writeHead(status, length === undefined ? { ...headers } : { ...headers, "content-length": length });
    return;
  }
  // Names and values in turn are what node:http writes fastest, by a good deal.
  const list: string[] = [];
  for (const name in headers) list.push(name, headers[name] as string);
  if (length !== undefined) list.push("content-length", String(length));
  response.writeHead(status, list);
}

const SLASH = 47;
const ABSOLUTE = /^https?:\/\/([^/?#]*)(.*)$/i;

/** A bit for each header that must come at most once, by length first: most names are none of them. */
function singleBit(name: string): number {
  switch (name.length) {
    case 4:
      return name.toLowerCase() === "host" ? 1 : 0;
    case 6:
      return name.toLowerCase() === "origin" ? 2 : 0;
    case 12:
      return name.toLowerCase() === "content-type" ? 4 : 0;
    case 13:
      return name.toLowerCase() === "authorization" ? 8 : 0;
    case 14: {
      const lower = name.toLowerCase();
      return lower === "content-length" ? 16 : lower === "mcp-session-id" ? 32 : 0;
    }
    default:
      return 0;
  }
}
