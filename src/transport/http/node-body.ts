// The body of a node:http request as text. A body that came in one piece with its head is taken as it lies there;
// only one that is still on its way costs listeners and a timer. Whatever is wrong with it is a refusal; what becomes
// of the rest of a body that was refused is for the visit.

import { isAscii, isUtf8 } from "node:buffer";
import type { IncomingMessage } from "node:http";
import type { Refusal } from "./visit.ts";
import { brokenOff, compressed, notUtf8, takenBefore, tooLong, tooSlow } from "./visit-refusals.ts";

/** `proceed` is called where the body is wanted: its sender may be waiting for a word. */
export function readBody(
  request: IncomingMessage,
  maxBytes: number,
  maxMs: number,
  proceed?: () => void,
): Promise<string> {
  if (request.readableEnded) return settled(parsedBefore((request as { body?: unknown }).body, maxBytes));
  const encoding = request.headers["content-encoding"];
  if (encoding !== undefined && encoding.toLowerCase() !== "identity") return Promise.reject(compressed());
  if (Number(request.headers["content-length"]) > maxBytes) return Promise.reject(tooLong(maxBytes));
  if (request.complete) return settled(utf8(request.read() as Buffer | null, maxBytes));
  proceed?.();
  return new Promise((resolve, reject) => {
    const settle = (text: string | Refusal): void => {
      if (typeof text === "string") resolve(text);
      else reject(text);
    };
    // The parser is in the middle of what has arrived: by the next tick most bodies are whole.
    process.nextTick(() => {
      if (request.complete) settle(utf8(request.read() as Buffer | null, maxBytes));
      else collect(request, maxBytes, maxMs, settle);
    });
  });
}

function collect(
  request: IncomingMessage,
  maxBytes: number,
  maxMs: number,
  settle: (text: string | Refusal) => void,
): void {
  const chunks: Buffer[] = [];
  let length = 0;
  const finish = (text: string | Refusal): void => {
    clearTimeout(timer);
    request.off("data", data).off("end", end).off("close", close);
    if (typeof text !== "string") request.pause();
    settle(text);
  };
  const data = (chunk: Buffer): void => {
    length += chunk.length;
    if (length > maxBytes) finish(tooLong(maxBytes));
    else chunks.push(chunk);
  };
  const end = (): void => {
    finish(utf8(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, length), maxBytes));
  };
  const close = (): void => finish(brokenOff());
  const timer = setTimeout(() => finish(tooSlow(maxMs)), maxMs);
  if (request.destroyed) close();
  else request.on("data", data).on("end", end).on("close", close);
}

function utf8(bytes: Buffer | null, maxBytes: number): string | Refusal {
  if (bytes === null) return "";
  if (bytes.length > maxBytes) return tooLong(maxBytes);
  if (isAscii(bytes)) return bytes.toString("latin1");
  return isUtf8(bytes) ? bytes.toString("utf8") : notUtf8();
}

/** What a framework that has read the stream has left of it. */
function parsedBefore(body: unknown, maxBytes: number): string | Refusal {
  if (body === undefined) return takenBefore();
  if (Buffer.isBuffer(body)) return utf8(body, maxBytes);
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return Buffer.byteLength(text) > maxBytes ? tooLong(maxBytes) : text;
}

function settled(text: string | Refusal): Promise<string> {
  return typeof text === "string" ? Promise.resolve(text) : Promise.reject(text);
}
