// The HTTP transports, message by message, against a scripted server: what is sent, left unsent, aborted and delivered.
// With fake timers.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { answer, scriptedRequester, type ScriptedRequester } from "../../../test/support/http/scripted-requester.ts";
import type { Authorizer } from "../../core/authentication.ts";
import { DEFAULT_LIMITS } from "../../jsonrpc/codec.ts";
import type { Message } from "../../jsonrpc/message.ts";
import { NEWEST_SESSION } from "../../protocol/revisions/index.ts";
import type { HttpResponse, ClientHttpRequest } from "./requester.ts";
import { messageOf } from "../../../test/support/dialogue/seen-inbound.ts";
import type { Transport } from "../../transport/transport.ts";
import { HttpConnection } from "./http-connection.ts";
import { LegacySseTransport } from "./legacy-sse.ts";
import { onCancellation } from "../../core/cancel.ts";
import { SessionHttpTransport } from "./session.ts";
import { ToolFacts } from "../../tools/facts.ts";

type Loose = { readonly [key: string]: unknown };
type Responder = (request: ClientHttpRequest, message: Loose) => HttpResponse | Promise<HttpResponse> | undefined;

const JSON_TYPE = { "content-type": "application/json" };
const SESSION = { ...JSON_TYPE, "mcp-session-id": "one" };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Never answered, but aborted by its signal. */
function silence({ signal }: ClientHttpRequest): Promise<HttpResponse> {
  return new Promise((_resolve, reject) => {
    onCancellation(signal, () => reject(signal?.reason as Error));
  });
}

/** Events that the test sends one by one. */
class Stream {
  readonly answer: HttpResponse;
  isEnded = false;
  #chunks: string[] = [];
  #wake = (): void => undefined;

  constructor({ signal }: ClientHttpRequest) {
    const end = (): void => {
      this.isEnded = true;
      this.#wake();
    };
    onCancellation(signal, end);
    const body = this.#bytes();
    this.answer = { ...answer(200, "", { "content-type": "text/event-stream" }), body, discard: end };
  }

  send(...messages: Loose[]): void {
    for (const message of messages) this.write(`data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`);
  }

  write(text: string): void {
    this.#chunks.push(text);
    this.#wake();
  }

  async *#bytes(): AsyncGenerator<Uint8Array> {
    for (;;) {
      // Data from before the end can still be read.
      const text = this.#chunks.shift();
      if (text !== undefined) yield Buffer.from(text);
      else if (this.isEnded) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

interface Harness {
  readonly transport: Transport;
  readonly server: ScriptedRequester;
  /** Delivered messages: methods, or ids of responses. */
  readonly delivered: unknown[];
  posted(method: string): ClientHttpRequest[];
  send(message: Loose): Promise<unknown>;
}

type TransportClass = new (http: HttpConnection, tools: ToolFacts) => Transport;

async function createHarness(Class: TransportClass, responder: Responder, auth?: Authorizer): Promise<Harness> {
  const server = scriptedRequester((request) => {
    const message = (request.body === undefined ? {} : JSON.parse(request.body)) as Loose;
    const given = responder(request, message);
    if (given !== undefined) return given;
    if (request.method !== "POST") return answer(request.method === "GET" ? 405 : 200);
    if (message["id"] === undefined) return answer(202);
    const result = message["method"] === "initialize" ? { protocolVersion: NEWEST_SESSION.name } : {};
    return answer(200, JSON.stringify({ jsonrpc: "2.0", id: message["id"], result }), SESSION);
  });
  const url = new URL("http://server.test/mcp");
  const http = new HttpConnection({ url, requester: server, auth, limits: DEFAULT_LIMITS });
  const transport = new Class(http, new ToolFacts());
  const delivered: unknown[] = [];
  await transport.start((inbound) => {
    const message = messageOf(inbound);
    if (message !== undefined) delivered.push("method" in message ? message.method : message.id);
  });
  return {
    transport,
    server,
    delivered,
    posted: (method) => server.requests.filter(({ body }) => body?.includes(`"method":"${method}"`)),
    send: (message) =>
      transport.send({ jsonrpc: "2.0", ...message } as unknown as Message).catch((error: unknown) => error),
  };
}

const tick = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);
const initialize = { id: 1, method: "initialize", params: {} };
const initialized = { method: "notifications/initialized" };
const call = { id: 2, method: "tools/call", params: { name: "job" } };
const cancelled = { method: "notifications/cancelled", params: { requestId: 2 } };
const log = { method: "notifications/message", params: { level: "info", data: "said" } };

/** An open session whose unsolicited stream was refused. */
async function session(responder: Responder = () => undefined, auth?: Authorizer): Promise<Harness> {
  const given = await createHarness(SessionHttpTransport, responder, auth);
  await given.send(initialize);
  await given.send(initialized);
  await tick();
  return given;
}

test("messages of an abandoned call in a session are not delivered", async () => {
  let stream: Stream | undefined;
  const { send, delivered } = await createHarness(SessionHttpTransport, (request, { method }) => {
    if (method !== "tools/call") return undefined;
    stream = new Stream(request);
    return stream.answer;
  });
  await send(initialize).then(() => send(initialized));
  delivered.length = 0;
  const sent = send(call);
  await tick();
  stream?.send(log);
  await tick();
  void send(cancelled);
  stream?.send(log, log);
  await sent;
  expect(delivered).toEqual(["notifications/message"]);
  expect(stream?.isEnded).toBe(true);
});

test("an error without an id on the stream of a call in a session is its response", async () => {
  const { send, delivered } = await createHarness(SessionHttpTransport, (request, { method }) => {
    if (method !== "tools/call") return undefined;
    const stream = new Stream(request);
    stream.send({ id: null, error: { code: -32_000, message: "not today" } });
    return stream.answer;
  });
  await send(initialize).then(() => send(initialized));
  delivered.length = 0;
  await send(call);
  expect(delivered).toEqual([2]);
});

test("nothing is sent in a session before its handshake is done", async () => {
  let agree = (): void => undefined;
  const agreed = new Promise<void>((resolve) => (agree = resolve));
  const { send, posted } = await createHarness(SessionHttpTransport, (_request, { id, method }) => {
    if (method !== "initialize") return undefined;
    const result = { protocolVersion: NEWEST_SESSION.name };
    return agreed.then(() => answer(200, JSON.stringify({ jsonrpc: "2.0", id, result }), SESSION));
  });
  const shaken = send(initialize);
  const asked = send({ id: 2, method: "resources/unsubscribe", params: { uri: "note://1" } });
  await tick();
  expect(posted("resources/unsubscribe")).toEqual([]);
  agree();
  await shaken;
  expect(posted("resources/unsubscribe")).toEqual([]);
  await send(initialized);
  expect(await asked).toBeUndefined();
  expect(posted("resources/unsubscribe")[0]?.headers["mcp-session-id"]).toBe("one");
});

test("a failed handshake leaves no session, and no call waiting for one", async () => {
  const { send, server } = await createHarness(SessionHttpTransport, (_request, { method }) =>
    method === "initialize" ? answer(503) : undefined,
  );
  const shaken = send(initialize);
  const asked = send({ id: 2, method: "ping" });
  expect(await shaken).toMatchObject({ kind: "http", status: 503 });
  expect(await asked).toMatchObject({ kind: "closed", mayHaveRun: false });
  expect(server.requests).toHaveLength(1);
});

test("a new handshake aborts an unanswered one", async () => {
  const { send, posted } = await createHarness(SessionHttpTransport, silence);
  void send(initialize);
  await tick();
  void send({ ...initialize, id: 2 });
  await tick();
  expect(posted("initialize").map(({ signal }) => signal?.aborted)).toEqual([true, false]);
});

test("a call cancelled before it was sent is never sent, nor is its cancellation", async () => {
  const { send, posted } = await createHarness(SessionHttpTransport, (request) =>
    request.method === "GET" ? silence(request) : undefined,
  );
  await send(initialize);
  await send(initialized);
  const sent = send(call);
  await send(cancelled);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await sent).toMatchObject({ kind: "cancelled" });
  expect(posted("tools/call")).toEqual([]);
  expect(posted("notifications/cancelled")).toEqual([]);
});

test("the unsolicited stream never asks for a sign-in; a call does", async () => {
  const refused = vi.fn().mockResolvedValue(false);
  const auth: Authorizer = { authorize: async () => ({}), refused };
  const { send, server } = await createHarness(
    SessionHttpTransport,
    ({ method }, message) => (method === "GET" || message["method"] === "tools/call" ? answer(401) : undefined),
    auth,
  );
  await send(initialize);
  await send(initialized);
  await tick();
  expect(server.requests.filter(({ method }) => method === "GET")).toHaveLength(1);
  expect(refused).not.toHaveBeenCalled();
  expect(await send(call)).toMatchObject({ kind: "unauthorized" });
  expect(refused).toHaveBeenCalledOnce();
});

test("a server that does not acknowledge messages delays nothing for long", async () => {
  const { send, posted } = await createHarness(SessionHttpTransport, (request, { id, method }) =>
    (id === undefined && method !== undefined) || method === "tools/call" ? silence(request) : undefined,
  );
  await send(initialize);
  void send(initialized);
  const sent = send(call);
  await vi.advanceTimersByTimeAsync(4_999);
  expect(posted("tools/call")).toEqual([]);
  await vi.advanceTimersByTimeAsync(1);
  expect(posted("tools/call")).toHaveLength(1);
  const told = send(cancelled);
  await vi.advanceTimersByTimeAsync(5_000);
  await told;
  expect(await sent).toMatchObject({ kind: "cancelled" });
  expect(posted("notifications/cancelled")[0]?.signal?.aborted).toBe(true);
});

test("a call answered on the unsolicited stream is not read on its own stream", async () => {
  let own: Stream | undefined;
  let other: Stream | undefined;
  const { send, delivered } = await session((request, { method }) => {
    if (request.method === "GET") other = new Stream(request);
    else if (method === "tools/call") own = new Stream(request);
    else return undefined;
    return (request.method === "GET" ? other : own)?.answer;
  });
  const sent = send(call);
  await tick();
  other?.send({ id: 2, result: {} });
  await sent;
  expect(own?.isEnded).toBe(true);
  expect(delivered).toEqual([1, 2]);
});

test("a call that waits for the session does not count as silence of the server", async () => {
  const { transport, send } = await createHarness(SessionHttpTransport, (request) =>
    request.method === "GET" ? silence(request) : undefined,
  );
  await send(initialize);
  await send(initialized);
  const waits: boolean[] = [];
  const sent = transport.send({ jsonrpc: "2.0", ...call }, { onWait: (isWaiting) => waits.push(isWaiting) });
  await vi.advanceTimersByTimeAsync(4_999);
  expect(waits).toEqual([true]);
  await vi.advanceTimersByTimeAsync(1);
  await sent;
  expect(waits).toEqual([true, false]);
});

test("a refused unsolicited stream is reopened when a call is accepted, and a gap is reported", async () => {
  let isRefused = true;
  const { transport, send, server } = await createHarness(SessionHttpTransport, (request) => {
    if (request.method !== "GET") return undefined;
    return isRefused ? answer(401) : new Stream(request).answer;
  });
  const kinds: string[] = [];
  await transport.start(({ kind }) => void kinds.push(kind));
  await send(initialize);
  await send(initialized);
  await send({ ...call, id: 2 });
  await vi.advanceTimersByTimeAsync(60_000);
  const gets = (): number => server.requests.filter(({ method }) => method === "GET").length;
  const before = gets();
  isRefused = false;
  await send({ ...call, id: 3 });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(gets()).toBe(before + 1);
  expect(kinds).toContain("gap");
  await send({ ...call, id: 4 });
  await tick();
  expect(gets()).toBe(before + 1);
  await transport.close();
});

test("closing asks no user to sign in, and does not wait for credentials", async () => {
  let isUnresponsive = false;
  const refused = vi.fn<Authorizer["refused"]>(async () => true);
  const auth: Authorizer = {
    authorize: () => (isUnresponsive ? new Promise(() => undefined) : Promise.resolve({})),
    refused,
  };
  const first = await session(({ method }) => (method === "DELETE" ? answer(401) : undefined), auth);
  await first.transport.close();
  expect(first.server.requests.at(-1)?.method).toBe("DELETE");
  expect(refused).not.toHaveBeenCalled();
  const second = await session(undefined, auth);
  isUnresponsive = true;
  const closed = second.transport.close();
  await vi.advanceTimersByTimeAsync(2_000);
  await closed;
});

test("with legacy SSE a cancelled call is aborted once the server is notified, and a stream by the next handshake", async () => {
  const streams: Stream[] = [];
  const { send, posted } = await createHarness(LegacySseTransport, (request, { method }) => {
    if (request.method === "GET") {
      const stream = new Stream(request);
      streams.push(stream);
      if (streams.length > 1) stream.write("event: endpoint\ndata: /messages\n\n");
      return stream.answer;
    }
    return method === "tools/call" ? silence(request) : answer(202);
  });
  void send(initialize);
  await tick();
  void send({ ...initialize, id: 3 });
  await tick();
  expect(streams.map(({ isEnded }) => isEnded)).toEqual([true, false]);
  const sent = send(call);
  await tick();
  await send(cancelled);
  expect(await sent).toMatchObject({ kind: "cancelled" });
  expect(posted("tools/call")[0]?.signal?.aborted).toBe(true);
});

test("with legacy SSE a call ends with a response that spells its id differently", async () => {
  let stream: Stream | undefined;
  const { send, delivered } = await createHarness(LegacySseTransport, (request) => {
    if (request.method !== "GET") return answer(202);
    stream = new Stream(request);
    stream.write("event: endpoint\ndata: /messages\n\n");
    return stream.answer;
  });
  const sent = send(initialize);
  let isSettled = false;
  void sent.then(() => (isSettled = true));
  await tick();
  stream?.write('data: {"jsonrpc":"2.0","id":1.0,"result":{}}\n\n');
  await tick();
  expect(delivered).toHaveLength(1);
  expect(isSettled).toBe(true);
});
