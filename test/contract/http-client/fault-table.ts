// Faults that one call meets, and what must come of it in every style: the rows that several tests go through.

import { expect } from "vitest";
import {
  cut,
  drip,
  neverEnds,
  eventStream,
  hangUp,
  respondWith,
  runThenStatus,
  wrongId,
  wrongIdEvent,
  noise,
  reset,
  status,
  withContentType,
} from "../../support/faulty-server/faults.ts";
import type { Fault } from "../../support/faulty-server/server.ts";

export interface Row {
  readonly fault: Fault;
  /** How often the tool has run when the fault is over. */
  readonly runs: number;
  /** What the error is, where the call must fail. */
  readonly error?: object;
}

const says = (pattern: RegExp): unknown => expect.stringMatching(pattern);

export const FAILS: Readonly<Record<string, Row>> = {
  "500 and a page": { fault: status(500), runs: 0, error: { kind: "http", status: 500, message: says(/HTTP 500/) } },
  "502 and a page": { fault: status(502), runs: 0, error: { kind: "http", status: 502, message: says(/try again/) } },
  "503 and a page": { fault: status(503), runs: 0, error: { kind: "http", status: 503, message: says(/try again/) } },
  "502 after it ran": { fault: runThenStatus(502), runs: 1, error: { kind: "http", status: 502, mayHaveRun: true } },
  "429": { fault: status(429), runs: 0, error: { kind: "http", status: 429, message: says(/fewer/) } },
  "413": { fault: status(413), runs: 0, error: { kind: "http", status: 413, mayHaveRun: false } },
  "403 and a page": { fault: status(403), runs: 0, error: { kind: "unauthorized", mayHaveRun: false } },
  "the end hanging up": { fault: hangUp, runs: 0, error: { kind: "closed", mayHaveRun: true } },
  "the end resetting the connection": { fault: reset, runs: 0, error: { kind: "closed", mayHaveRun: true } },
  "no byte of an answer": { fault: cut(0), runs: 1, error: { kind: "closed", mayHaveRun: true } },
  "half a head": { fault: cut(20), runs: 1, error: { kind: "closed", mayHaveRun: true } },
  "a page in place of an answer": {
    fault: respondWith("<html>Sign in</html>", { "content-type": "text/html" }),
    runs: 0,
    error: { kind: "http", message: says(/text\/html.*endpoint/) },
  },
  "an answer typed text/plain": { fault: withContentType("text/plain"), runs: 1, error: { kind: "http" } },
  "an answer without a type": { fault: respondWith("{}", {}), runs: 0, error: { kind: "http" } },
  "JSON that is cut off but whole by its length": {
    fault: respondWith('{"jsonrpc":"2.0","id'),
    runs: 0,
    error: { kind: "protocol" },
  },
  "JSON that is no message": { fault: respondWith('{"hello":"there"}'), runs: 0, error: { kind: "protocol" } },
  "nothing where JSON should be": { fault: respondWith(""), runs: 0, error: { kind: "protocol" } },
  "an answer to somebody else": { fault: wrongId, runs: 0, error: { kind: "protocol" } },
  "an event to somebody else": { fault: wrongIdEvent, runs: 0, error: { kind: "closed" } },
  "a stream that ends without a word": { fault: eventStream(() => []), runs: 0, error: { kind: "closed" } },
  "a stream of comments alone": { fault: eventStream(() => [": hello\n\n", ":\n\n"]), runs: 0, error: { kind: "closed" } },
  "an event stream of a page": { fault: eventStream(() => ["<html>\n\n</html>\n\n"]), runs: 0, error: { kind: "closed" } },
};

export const WORKS: Readonly<Record<string, Row>> = {
  "an answer that drips": { fault: drip, runs: 1 },
  "a body that never ends": { fault: neverEnds, runs: 1 },
  "noise on the stream": { fault: noise, runs: 1 },
};
