// Why a body cannot be read, in the same words for every kind of visit, and the head that every event stream has.
// Here, because node-visit.ts may import what only Node has, and web-visit.ts may not.

import { Refusal } from "./visit.ts";

/** Names of headers are in lower case throughout, so that one written over another replaces it. */
export const STREAM_HEADERS: Readonly<Record<string, string>> = {
  "content-type": "text/event-stream",
  // A proxy that compresses or collects would hold events back.
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};

export function tooLong(maxBytes: number): Refusal {
  return new Refusal(413, `The body is longer than ${maxBytes} bytes (limits.messageBytes).`);
}

export function tooSlow(maxMs: number): Refusal {
  return new Refusal(408, `The body did not arrive within ${maxMs} ms (limits.bodyMs).`);
}

export function notUtf8(): Refusal {
  return new Refusal(400, "The body is not UTF-8.", {}, "parse_error");
}

export function compressed(): Refusal {
  return new Refusal(415, "The body has a Content-Encoding. Send it without one.", { "accept-encoding": "identity" });
}

export function brokenOff(): Refusal {
  return new Refusal(400, "The connection ended in the middle of the body.");
}

export function takenBefore(): Refusal {
  const why = "The body was read by something before this handler, and not left in the request's `body`.";
  return new Refusal(500, `${why} Mount the handler before any body parser.`);
}
