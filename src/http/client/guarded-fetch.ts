// A `fetch` for addresses that others told us, as libraries want one: small documents, in a short time, from places
// that may be asked at all (network-guard.ts), and no redirect is followed. Not a fetch for everything: bodies are
// texts, both ways, and an answer is whole before it is given.

import { onAbort } from "../../core/async.ts";
import { ConnectionError } from "../../core/errors.ts";
import { networkGuard } from "./network-guard.ts";
import type { NetworkGuardOptions } from "./network-guard.ts";
import { nodeRequester } from "./node-requester.ts";
import { hostOf } from "../server/request-faults.ts";
import type { HttpAnswer, HttpRequest, Requester } from "./requester.ts";

export interface GuardedFetchOptions extends NetworkGuardOptions {
  /** Sends the requests in the place of node:http. Then names are looked up by it, and only what is written out is checked. */
  readonly requester?: Requester;
  /** For a request and the whole of its answer. */
  readonly totalMs?: number;
}

/** Whatever `redirect` says, none is followed. */
export type GuardedFetch = (url: string | URL, init?: RequestInit) => Promise<Response>;

const MOST_BYTES = 1024 * 1024;
const TOTAL_MS = 10_000;
const METHODS: ReadonlySet<string> = new Set(["GET", "POST", "DELETE"]);
/** No answer of these can have a body. */
const BARE: ReadonlySet<number> = new Set([204, 205, 304]);

/** It rejects with a ConnectionError, and with nothing else. */
export function guardedFetch(options: GuardedFetchOptions): GuardedFetch {
  const { totalMs = TOTAL_MS } = options;
  const guard = networkGuard(options);
  const requester = options.requester ?? nodeRequester({ lookup: guard.lookup });
  return async (address, init = {}) => {
    const url = urlOf(address);
    guard.check(url);
    const given = init.signal ?? undefined;
    const ending = new AbortController();
    const timer = setTimeout(() => ending.abort(tooSlow(url, totalMs)), totalMs);
    const free = onAbort(given, () => ending.abort(given?.reason));
    if (given?.aborted === true) ending.abort(given.reason);
    try {
      const answer = await requester({ ...requestOf(url, init), signal: ending.signal });
      return responseOf(url, answer, await answer.text(MOST_BYTES));
    } finally {
      clearTimeout(timer);
      free();
    }
  };
}

function urlOf(address: string | URL): URL {
  if (URL.canParse(String(address))) return new URL(address);
  throw new ConnectionError("refused", "Not asked: what was named as an address is none", { mayHaveRun: false });
}

function requestOf(url: URL, init: RequestInit): HttpRequest {
  const method = (init.method ?? "GET").toUpperCase();
  if (!METHODS.has(method))
    throw new ConnectionError("http", `${method} is not sent to ${hostOf(url)}`, { mayHaveRun: false });
  const given = init.headers ?? {};
  const headers: Record<string, string> = {};
  // Not by way of Headers, whose errors tell the value: node:http names the header and no more.
  const entries = Symbol.iterator in given ? given : Object.entries(given);
  for (const [name, value] of entries as Iterable<[string, string]>) headers[name.toLowerCase()] = value;
  const about = { method: method as HttpRequest["method"], url, headers };
  const { body } = init;
  if (body === undefined || body === null) return about;
  const isForm = body instanceof URLSearchParams;
  if (!isForm && typeof body !== "string") {
    throw new ConnectionError("http", `Only texts and forms are sent to ${hostOf(url)}`, { mayHaveRun: false });
  }
  headers["content-type"] ??= `${isForm ? "application/x-www-form-urlencoded" : "text/plain"};charset=UTF-8`;
  return { ...about, body: body.toString() };
}

function responseOf(url: URL, answer: HttpAnswer, text: string): Response {
  const { status, headers } = answer;
  if (status < 200 || status > 599) {
    throw new ConnectionError("http", `The end at ${hostOf(url)} answers with status ${status}, which means nothing`);
  }
  // As bytes: a text would be given a type that the end has not named.
  return new Response(BARE.has(status) ? null : Buffer.from(text), { status, headers });
}

function tooSlow(url: URL, ms: number): ConnectionError {
  return new ConnectionError("timeout", `The end at ${hostOf(url)} did not answer within ${ms} ms`);
}
