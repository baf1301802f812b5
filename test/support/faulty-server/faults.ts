// Faults to lay in the way of a request, each made of what an end, a proxy before it or the network between really do.
// Those of `before` meet a request that was surely not executed; those of `after` one that was, or may have been.

import type { Fault } from "./server.ts";
import { eventOf } from "./stateless.ts";
import type { AnswerHeaders, Json, Visit } from "../http/raw-server.ts";

const PAGE = "<html><head><title>Sorry</title></head><body>Something is wrong here.</body></html>";
const HTML = { "content-type": "text/html" };
const EVENTS = { "content-type": "text/event-stream" };

/** A status and a page for people, as proxies answer. */
export const status =
  (code: number, headers: AnswerHeaders = {}): Fault =>
  (visit) =>
    visit.answer(code, PAGE, { ...HTML, ...headers });

/** A status and an error of JSON-RPC. */
export const refusal =
  (code: number, error: Json): Fault =>
  (visit) =>
    visit.answer(code, { jsonrpc: "2.0", id: visit.json?.["id"] ?? null, error });

export const redirect =
  (code: number, to: (visit: Visit) => string): Fault =>
  (visit) =>
    visit.answer(code, "", { location: to(visit) });

/** Nothing, and the connection stays. */
export const silence: Fault = () => undefined;

/** The connection ends before a byte of the answer, and the request was never looked at. */
export const hangUp: Fault = (visit) => visit.hangUp();
export const reset: Fault = (visit) => visit.reset();

/** The connection ends after so many bytes of the right answer. */
export const cut =
  (bytes: number): Fault =>
  (visit, serve) => {
    visit.cutAfter(bytes);
    return serve();
  };

/** Executed, and then no word of it, but a page of a proxy. */
export const lost =
  (code: number): Fault =>
  async (visit, serve) => {
    const { answer } = visit;
    visit.begin = () => undefined;
    visit.chunk = () => undefined;
    visit.end = () => undefined;
    visit.answer = () => undefined;
    await serve();
    answer.call(visit, code, PAGE, HTML);
  };

/** The right answer, one byte at a time. */
export const drip: Fault = (visit, serve) => {
  visit.drips = true;
  return serve();
};

/** The right answer, and a body that never ends after it. */
export const endless: Fault = (visit, serve) => {
  visit.end = () => undefined;
  return serve();
};

/** The right answer under another type than it has. */
export const typed =
  (type: string): Fault =>
  (visit, serve) => {
    const { answer, begin } = visit;
    visit.answer = (code, body, headers) => answer.call(visit, code, body, { ...headers, "content-type": type });
    visit.begin = (code, headers) => begin.call(visit, code, { ...headers, "content-type": type });
    return serve();
  };

/** 200, and whatever is given in place of an answer. */
export const instead =
  (body: string, headers: AnswerHeaders = { "content-type": "application/json" }): Fault =>
  (visit) =>
    visit.answer(200, body, headers);

/** An event stream made of the texts that are given; ended, unless it shall stay open. */
export const events =
  (make: (visit: Visit) => readonly string[], stays = false): Fault =>
  (visit) => {
    visit.begin(200, EVENTS);
    for (const text of make(visit)) visit.chunk(text);
    if (!stays) visit.end();
  };

const said = (id: unknown, text: string): Json => ({
  jsonrpc: "2.0",
  id,
  result: { resultType: "complete", content: [{ type: "text", text }], isError: false },
});

/** An answer, but to another request. */
export const misaddressed: Fault = (visit) => visit.answer(200, said("somebody else's", "not for you"));
export const misaddressedEvent: Fault = events(() => [eventOf(said("somebody else's", "not for you"))]);

/** The answer twice, and the second time with other words. */
export const twice: Fault = events((visit) => {
  const id: unknown = visit.json?.["id"];
  return [eventOf(said(id, "the first answer")), eventOf(said(id, "the second answer"))];
});

/** Noise of every kind that an event stream can hold, and then the right answer. */
export const noisy: Fault = (visit, serve) => {
  const { begin, answer } = visit;
  const noise = [
    ": a comment\n\n",
    "data: this is no JSON\n\n",
    'data: {"jsonrpc":"1.0","id":7}\n\n',
    "data: [1,2,3]\n\n",
    "data: null\n\n",
    'event: surprise\ndata: {"jsonrpc":"2.0","method":"notifications/surprise"}\n\n',
    "retry: soon\nid: \0\nfoo: bar\n\n",
    'data: {"jsonrpc":"2.0","id":"nobody","result":{}}\n\n',
    'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"nobody","progress":1}}\n\n',
    "\n\n\n",
  ];
  const open = (code: number, headers?: AnswerHeaders): void => {
    begin.call(visit, code, { ...headers, ...EVENTS, "content-length": undefined });
    for (const text of noise) visit.chunk(text);
  };
  visit.begin = open;
  visit.answer = (code, body, headers) => {
    if (code !== 200) return answer.call(visit, code, body, headers);
    open(code, headers);
    visit.chunk(`data: ${typeof body === "string" ? body : JSON.stringify(body)}\n\n`);
    return visit.end();
  };
  return serve();
};
