// The table of faults for one call, with the expected outcome in each style.

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
  /** How often the tool has run. */
  readonly runs: number;
  /** The error of the call. */
  readonly error?: object;
}

const says = (pattern: RegExp): unknown => expect.stringMatching(pattern);

export const FAILING_CALLS: Readonly<Record<string, Row>> = {
  "500 and a page": { fault: status(500), runs: 0, error: { kind: "http", status: 500, message: says(/HTTP 500/) } },
  "502 and a page": { fault: status(502), runs: 0, error: { kind: "http", status: 502, message: says(/try again/) } },
  "503 and a page": { fault: status(503), runs: 0, error: { kind: "http", status: 503, message: says(/try again/) } },
  "502 after it ran": { fault: runThenStatus(502), runs: 1, error: { kind: "http", status: 502, mayHaveRun: true } },
  "429": { fault: status(429), runs: 0, error: { kind: "http", status: 429, message: says(/fewer/) } },
  "413": { fault: status(413), runs: 0, error: { kind: "http", status: 413, mayHaveRun: false } },
  "403 and a page": { fault: status(403), runs: 0, error: { kind: "unauthorized", mayHaveRun: false } },
  "a closed connection": { fault: hangUp, runs: 0, error: { kind: "closed", mayHaveRun: true } },
  "a reset connection": { fault: reset, runs: 0, error: { kind: "closed", mayHaveRun: true } },
  "a response without a byte": { fault: cut(0), runs: 1, error: { kind: "closed", mayHaveRun: true } },
  "half a head": { fault: cut(20), runs: 1, error: { kind: "closed", mayHaveRun: true } },
  "a page instead of an answer": {
    fault: respondWith("<html>Sign in</html>", { "content-type": "text/html" }),
    runs: 0,
    error: { kind: "http", message: says(/text\/html.*endpoint/) },
  },
  "an answer of type text/plain": { fault: withContentType("text/plain"), runs: 1, error: { kind: "http" } },
  "an answer without a content type": { fault: respondWith("{}", {}), runs: 0, error: { kind: "http" } },
  "truncated JSON of the right length": {
    fault: respondWith('{"jsonrpc":"2.0","id'),
    runs: 0,
    error: { kind: "protocol" },
  },
  "JSON that is not a message": { fault: respondWith('{"hello":"there"}'), runs: 0, error: { kind: "protocol" } },
  "an empty body": { fault: respondWith(""), runs: 0, error: { kind: "protocol" } },
  "an answer to another request": { fault: wrongId, runs: 0, error: { kind: "protocol" } },
  "an event for another request": { fault: wrongIdEvent, runs: 0, error: { kind: "closed" } },
  "an empty stream": { fault: eventStream(() => []), runs: 0, error: { kind: "closed" } },
  "a stream of comments only": {
    fault: eventStream(() => [": hello\n\n", ":\n\n"]),
    runs: 0,
    error: { kind: "closed" },
  },
  "an event stream of a page": {
    fault: eventStream(() => ["<html>\n\n</html>\n\n"]),
    runs: 0,
    error: { kind: "closed" },
  },
};

export const WORKING_CALLS: Readonly<Record<string, Row>> = {
  "an answer that arrives byte by byte": { fault: drip, runs: 1 },
  "a body that never ends": { fault: neverEnds, runs: 1 },
  "noise on the stream": { fault: noise, runs: 1 },
};
