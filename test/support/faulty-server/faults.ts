// Faults to lay in the way of a request, each made of what an end, a proxy before it or the network between really do.
// Those of `before` meet a request that was surely not executed; those of `after` one that was, or may have been.

import type { Fault } from "./server.ts";
import { sseEvent } from "./stateless.ts";
import type { ResponseHeaders, Json, RawRequest } from "../http/raw-server.ts";

const PAGE = "<html><head><title>Sorry</title></head><body>Something is wrong here.</body></html>";
const HTML = { "content-type": "text/html" };
const EVENTS = { "content-type": "text/event-stream" };

/** A status and a page for people, as proxies answer. */
export const status =
  (code: number, headers: ResponseHeaders = {}): Fault =>
  (request) =>
    request.answer(code, PAGE, { ...HTML, ...headers });

/** A status and an error of JSON-RPC. */
export const errorResponse =
  (code: number, error: Json): Fault =>
  (request) =>
    request.answer(code, { jsonrpc: "2.0", id: request.json?.["id"] ?? null, error });

export const redirect =
  (code: number, to: (request: RawRequest) => string): Fault =>
  (request) =>
    request.answer(code, "", { location: to(request) });

/** Nothing, and the connection stays. */
export const silence: Fault = () => undefined;

/** The connection ends before a byte of the answer, and the request was never looked at. */
export const hangUp: Fault = (request) => request.hangUp();
export const reset: Fault = (request) => request.reset();

/** The connection ends after so many bytes of the right answer. */
export const cut =
  (bytes: number): Fault =>
  (request, serve) => {
    request.cutAfter(bytes);
    return serve();
  };

/** Executed, and then no word of it, but a page of a proxy. */
export const runThenStatus =
  (code: number): Fault =>
  async (request, serve) => {
    const { answer } = request;
    request.begin = () => undefined;
    request.chunk = () => undefined;
    request.end = () => undefined;
    request.answer = () => undefined;
    await serve();
    answer.call(request, code, PAGE, HTML);
  };

/** The right answer, one byte at a time. */
export const drip: Fault = (request, serve) => {
  request.drips = true;
  return serve();
};

/** The right answer, and a body that never ends after it. */
export const neverEnds: Fault = (request, serve) => {
  request.end = () => undefined;
  return serve();
};

/** The right answer under another type than it has. */
export const withContentType =
  (type: string): Fault =>
  (request, serve) => {
    const { answer, begin } = request;
    request.answer = (code, body, headers) => answer.call(request, code, body, { ...headers, "content-type": type });
    request.begin = (code, headers) => begin.call(request, code, { ...headers, "content-type": type });
    return serve();
  };

/** 200, and whatever is given in place of an answer. */
export const respondWith =
  (body: string, headers: ResponseHeaders = { "content-type": "application/json" }): Fault =>
  (request) =>
    request.answer(200, body, headers);

/** An event stream made of the texts that are given; ended, unless it shall stay open. */
export const eventStream =
  (make: (request: RawRequest) => readonly string[], stays = false): Fault =>
  (request) => {
    request.begin(200, EVENTS);
    for (const text of make(request)) request.chunk(text);
    if (!stays) request.end();
  };

const said = (id: unknown, text: string): Json => ({
  jsonrpc: "2.0",
  id,
  result: { resultType: "complete", content: [{ type: "text", text }], isError: false },
});

/** An answer, but to another request. */
export const wrongId: Fault = (request) => request.answer(200, said("somebody else's", "not for you"));
export const wrongIdEvent: Fault = eventStream(() => [sseEvent(said("somebody else's", "not for you"))]);

/** The answer twice, and the second time with other words. */
export const answerTwice: Fault = eventStream((request) => {
  const id: unknown = request.json?.["id"];
  return [sseEvent(said(id, "the first answer")), sseEvent(said(id, "the second answer"))];
});

/** Noise of every kind that an event stream can hold, and then the right answer. */
export const noise: Fault = (request, serve) => {
  const { begin, answer } = request;
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
  const open = (code: number, headers?: ResponseHeaders): void => {
    begin.call(request, code, { ...headers, ...EVENTS, "content-length": undefined });
    for (const text of noise) request.chunk(text);
  };
  request.begin = open;
  request.answer = (code, body, headers) => {
    if (code !== 200) return answer.call(request, code, body, headers);
    open(code, headers);
    request.chunk(`data: ${typeof body === "string" ? body : JSON.stringify(body)}\n\n`);
    return request.end();
  };
  return serve();
};
