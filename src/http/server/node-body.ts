// The body of a node:http request as text. Most bodies come with their heads, so there is one timer for all of them
// and none for each, and no copy of what came in one piece. Whatever is wrong with a body is a refusal; what becomes
// of the rest of one that was refused is for the visit.

import { isAscii, isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import { Pulse } from "./pulse.ts";
import type { Refusal } from "./visit.ts";
import { brokenOff, compressed, notUtf8, takenBefore, tooLong, tooSlow } from "./visit-refusals.ts";

/** `proceed` is called where the body is wanted: its sender may be waiting for a word. */
export function readBody(
  request: IncomingMessage,
  maxBytes: number,
  maxMs: number,
  proceed?: () => void,
): Promise<string> {
  const { headers } = request;
  if (request.readableEnded) return settled(parsedBefore((request as { body?: unknown }).body, maxBytes));
  const encoding = headers["content-encoding"];
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") return Promise.reject(compressed());
  const length = headers["content-length"];
  const declared = length === undefined ? undefined : Number(length);
  if (declared === undefined && headers["transfer-encoding"] === undefined) return Promise.resolve("");
  if (declared !== undefined && declared > maxBytes) return Promise.reject(tooLong(maxBytes));
  if (request.destroyed) return Promise.reject(brokenOff());
  proceed?.();
  return new Promise((resolve, reject) => {
    new Reading(request, maxBytes, maxMs, resolve, reject).begin();
  });
}

/** A body on its way. */
class Reading {
  readonly #request: IncomingMessage;
  readonly #maxBytes: number;
  readonly #maxMs: number;
  readonly #resolve: (text: string) => void;
  readonly #reject: (refusal: Refusal) => void;
  readonly #chunks: Buffer[] = [];
  readonly #watch: Pulse<Reading>;
  #length = 0;
  #since: number | undefined;
  #isOver = false;

  constructor(
    request: IncomingMessage,
    maxBytes: number,
    maxMs: number,
    resolve: (text: string) => void,
    reject: (refusal: Refusal) => void,
  ) {
    this.#request = request;
    this.#maxBytes = maxBytes;
    this.#maxMs = maxMs;
    this.#resolve = resolve;
    this.#reject = reject;
    this.#watch = watchFor(maxMs);
  }

  begin(): void {
    this.#watch.add(this);
    // Somebody before us may have asked for text.
    const bytes = (chunk: Buffer | string): Buffer => (typeof chunk === "string" ? Buffer.from(chunk) : chunk);
    this.#request.on("data", (chunk: Buffer | string) => this.#take(bytes(chunk))).on("end", () => this.#end());
  }

  /** Most bodies are whole long before this is called for the first time. */
  tick(now: number): void {
    if (this.#request.destroyed) this.#finish(brokenOff());
    else if (this.#since === undefined) {
      this.#since = now;
      this.#request.once("close", () => this.#finish(brokenOff()));
    } else if (now - this.#since >= this.#maxMs) this.#finish(tooSlow(this.#maxMs));
  }

  #take(chunk: Buffer): void {
    if (this.#isOver) return;
    this.#length += chunk.length;
    if (this.#length > this.#maxBytes) this.#finish(tooLong(this.#maxBytes));
    else this.#chunks.push(chunk);
  }

  #end(): void {
    const chunks = this.#chunks;
    const whole = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, this.#length);
    this.#finish(utf8(whole, this.#maxBytes));
  }

  #finish(text: string | Refusal): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#watch.delete(this);
    if (typeof text === "string") return this.#resolve(text);
    this.#chunks.length = 0;
    this.#request.pause();
    this.#reject(text);
  }
}

/** One timer for all bodies with the same patience. */
function watchFor(maxMs: number): Pulse<Reading> {
  let watch = WATCHES.get(maxMs);
  if (watch === undefined) {
    watch = new Pulse(Math.min(1_000, maxMs), (reading, now) => reading.tick(now));
    WATCHES.set(maxMs, watch);
  }
  return watch;
}

const WATCHES = new Map<number, Pulse<Reading>>();

function utf8(bytes: Buffer | null, maxBytes: number): string | Refusal {
  if (bytes === null) return "";
  if (bytes.length > maxBytes) return tooLong(maxBytes);
  if (isAscii(bytes)) return bytes.toString("latin1");
  return isUtf8(bytes) ? bytes.toString("utf8") : notUtf8();
}

/** What a framework that has read the stream has left of it. */
function parsedBefore(body: unknown, maxBytes: number): string | Refusal {
  if (body === undefined) return takenBefore();
  if (body instanceof Uint8Array) return utf8(Buffer.from(body.buffer, body.byteOffset, body.byteLength), maxBytes);
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return Buffer.byteLength(text) > maxBytes ? tooLong(maxBytes) : text;
}

function settled(text: string | Refusal): Promise<string> {
  return typeof text === "string" ? Promise.resolve(text) : Promise.reject(text);
}
