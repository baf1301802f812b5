// Answers requests with the routes of the console: finds the route, reads the body, and sends a document or a stream of
// events. Over HTTP, `pages.ts` has checked the cookie before; on the control socket, the system has checked the user.

import { abortable, ignoreRejection, onAbort } from "../core/async.ts";
import { defined, errorMessage, isObject } from "../core/values.ts";
import { HttpError, type HttpRequest } from "../http/server/http-request.ts";
import { DEFAULT_LIMITS } from "../jsonrpc/codec.ts";
import { mayBeDeep, scan } from "../jsonrpc/scan.ts";
import { ApiError, EventStream, type ApiRequest, type EventSink, type Route } from "./route.ts";

const BODY_LIMITS = { messageBytes: 16 * 1024 * 1024, bodyMs: 30_000 };

/** What a browser may do with an answer: nothing but read it. */
export const ANSWER_HEADERS: Readonly<Record<string, string>> = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
};

/** Answers a request; `path` is relative to the API. */
export type Api = (request: HttpRequest, path: string) => void;

/** `closed`: aborts when the console ends, which must not wait for bodies that are still on their way. */
export function createApi(routes: readonly Route[], closed?: AbortSignal): Api {
  const known = routes.map((route) => ({ route, parts: route.path.split("/") }));
  return (request, path) => {
    const parts = path.split("/");
    const matching = known.flatMap(({ route, parts: pattern }) => {
      const params = match(pattern, parts);
      return params === undefined ? [] : [{ route, params }];
    });
    const chosen = matching.find(({ route }) => route.method === request.method);
    if (chosen !== undefined) void run(request, chosen.route, chosen.params, closed);
    else if (matching.length === 0) refuse(request, new ApiError(404, `The console has no ${path}`));
    else {
      const allow = matching.map(({ route }) => route.method).join(", ");
      sendJson(request, 405, { error: `${path} takes ${allow}, not ${request.method}` }, { allow });
    }
  };
}

/** The parts of the path that the pattern names; undefined if it does not fit. */
function match(pattern: readonly string[], parts: readonly string[]): Record<string, string> | undefined {
  if (pattern.length !== parts.length) return undefined;
  const params: Record<string, string> = {};
  for (const [at, part] of pattern.entries()) {
    const actual = parts[at] ?? "";
    if (!part.startsWith(":")) {
      if (part !== actual) return undefined;
      continue;
    }
    try {
      params[part.slice(1)] = decodeURIComponent(actual);
    } catch {
      return undefined;
    }
  }
  return params;
}

async function run(
  request: HttpRequest,
  route: Route,
  params: Record<string, string>,
  closed: AbortSignal | undefined,
): Promise<void> {
  const left = new AbortController();
  request.onDisconnect({ disconnect: () => left.abort(new Error("the page or command has left")) });
  try {
    const body = route.method === "POST" ? await readBody(request, closed) : {};
    const query = new URLSearchParams(request.query);
    const apiRequest: ApiRequest = { params, query, body, signal: left.signal };
    const answer = await route.run(apiRequest);
    if (answer instanceof EventStream) answer.open(sinkOf(request, left.signal));
    else sendJson(request, 200, answer ?? {});
  } catch (error) {
    refuse(request, error);
  }
}

/** The body as an object. It must be declared as JSON, which a page of another origin cannot do without being asked. */
async function readBody(request: HttpRequest, closed: AbortSignal | undefined): Promise<Record<string, unknown>> {
  if (!/^application\/json\s*(?:;|$)/i.test(request.headers["content-type"] ?? "")) {
    throw new ApiError(400, "The body must be JSON", "send the header Content-Type: application/json");
  }
  const received = new Promise<string>((resolve, reject) =>
    request.readBody(BODY_LIMITS, { onBody: resolve, onError: reject }),
  );
  const text = closed === undefined ? await received : await untilClosed(closed, received);
  // As for messages of clients: what is kept of a call is read by code that calls itself.
  const { depth, batch } = DEFAULT_LIMITS;
  if (mayBeDeep(text, depth) && scan(text, depth, batch).tooDeep) {
    throw new ApiError(400, `The body is nested deeper than ${depth} levels`);
  }
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch (error) {
    throw new ApiError(400, `The body is not valid JSON: ${errorMessage(error)}`);
  }
  if (!isObject(body)) throw new ApiError(400, "The body must be a JSON object");
  return body;
}

/** Rejects with an ApiError when the console ends. */
export async function untilClosed<T>(closed: AbortSignal, received: Promise<T>): Promise<T> {
  try {
    return await abortable(closed, ignoreRejection(received));
  } catch (error) {
    throw closed.aborted ? new ApiError(503, "The gateway ends") : error;
  }
}

function refuse(request: HttpRequest, error: unknown): void {
  const status = error instanceof ApiError || error instanceof HttpError ? error.status : 500;
  const hint = error instanceof ApiError ? error.hint : undefined;
  sendJson(request, status, { error: errorMessage(error), ...defined({ hint }) });
}

export function sendJson(
  request: HttpRequest,
  status: number,
  body: unknown,
  headers: Readonly<Record<string, string>> = {},
): void {
  const all = { "content-type": "application/json", ...ANSWER_HEADERS, ...headers };
  request.respond(status, all, JSON.stringify(body));
}

function sinkOf(request: HttpRequest, left: AbortSignal): EventSink {
  const stream = request.stream({ ...ANSWER_HEADERS, "cache-control": "no-cache, no-transform" });
  let isOpen = true;
  const end = (): void => {
    if (!isOpen) return;
    isOpen = false;
    stream.end();
  };
  onAbort(left, () => {
    isOpen = false;
    stream.destroy();
  });
  const sendEvent = (event: string, json: string): void => {
    // JSON has no line breaks, so the data is one line.
    if (isOpen) stream.write(`event: ${event}\ndata: ${json}\n\n`);
  };
  return {
    send: (event, data) => sendEvent(event, JSON.stringify(data)),
    sendJson: sendEvent,
    end,
    get bufferedBytes() {
      return stream.bufferedBytes;
    },
  };
}
