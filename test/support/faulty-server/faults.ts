// Faults for a faulty server, modelled on what servers, proxies and networks really do.

import type { Fault } from "./server.ts";
import { sseEvent } from "./stateless.ts";
import type { ResponseHeaders, Json, RawRequest } from "../http/raw-server.ts";

const PAGE = "<html><head><title>Sorry</title></head><body>Something is wrong here.</body></html>";
const HTML = { "content-type": "text/html" };
const EVENTS = { "content-type": "text/event-stream" };

/** A status and an HTML page, as from a proxy. */
export const status =
  (code: number, headers: ResponseHeaders = {}): Fault =>
  (request) =>
    request.answer(code, PAGE, { ...HTML, ...headers });

/** A status and a JSON-RPC error. */
export const errorResponse =
  (code: number, error: Json): Fault =>
  (request) =>
    request.answer(code, { jsonrpc: "2.0", id: request.json?.["id"] ?? null, error });

export const redirect =
  (code: number, to: (request: RawRequest) => string): Fault =>
  (request) =>
    request.answer(code, "", { location: to(request) });

/** No answer; the connection stays open. */
export const silence: Fault = () => undefined;

/** Close or reset the connection without serving the request. */
export const hangUp: Fault = (request) => request.hangUp();
export const reset: Fault = (request) => request.reset();

/** Serves the request and closes the connection after this many bytes of the response. */
export const cut =
  (bytes: number): Fault =>
  (request, serve) => {
    request.cutAfter(bytes);
    return serve();
  };

/** Executes the request, but answers with the page of a proxy. */
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

/** The correct answer, one byte at a time. */
export const drip: Fault = (request, serve) => {
  request.drips = true;
  return serve();
};

/** The correct answer in a body that never ends. */
export const neverEnds: Fault = (request, serve) => {
  request.end = () => undefined;
  return serve();
};

/** The correct answer with another content type. */
export const withContentType =
  (type: string): Fault =>
  (request, serve) => {
    const { answer, begin } = request;
    request.answer = (code, body, headers) => answer.call(request, code, body, { ...headers, "content-type": type });
    request.begin = (code, headers) => begin.call(request, code, { ...headers, "content-type": type });
    return serve();
  };

/** Status 200 with this body instead of an answer. */
export const respondWith =
  (body: string, headers: ResponseHeaders = { "content-type": "application/json" }): Fault =>
  (request) =>
    request.answer(200, body, headers);

/** An event stream with these chunks; `staysOpen` does not end it. */
export const eventStream =
  (make: (request: RawRequest) => readonly string[], staysOpen = false): Fault =>
  (request) => {
    request.begin(200, EVENTS);
    for (const text of make(request)) request.chunk(text);
    if (!staysOpen) request.end();
  };

const textResponse = (id: unknown, text: string): Json => ({
  jsonrpc: "2.0",
  id,
  result: { resultType: "complete", content: [{ type: "text", text }], isError: false },
});

/** An answer to another request. */
export const wrongId: Fault = (request) => request.answer(200, textResponse("another id", "another result"));
export const wrongIdEvent: Fault = eventStream(() => [sseEvent(textResponse("another id", "another result"))]);

/** Two different answers to one request. */
export const answerTwice: Fault = eventStream((request) => {
  const id: unknown = request.json?.["id"];
  return [sseEvent(textResponse(id, "the first answer")), sseEvent(textResponse(id, "the second answer"))];
});

/** An event stream with all kinds of noise before the correct answer. */
export const noise: Fault = (request, serve) => {
  const { begin, answer } = request;
  const chunks = [
    ": a comment\n\n",
    "data: this is not JSON\n\n",
    'data: {"jsonrpc":"1.0","id":7}\n\n',
    "data: [1,2,3]\n\n",
    "data: null\n\n",
    'event: surprise\ndata: {"jsonrpc":"2.0","method":"notifications/surprise"}\n\n',
    "retry: soon\nid: \0\nfoo: bar\n\n",
    'data: {"jsonrpc":"2.0","id":"unknown","result":{}}\n\n',
    'data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"unknown","progress":1}}\n\n',
    "\n\n\n",
  ];
  const open = (code: number, headers?: ResponseHeaders): void => {
    begin.call(request, code, { ...headers, ...EVENTS, "content-length": undefined });
    for (const text of chunks) request.chunk(text);
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
