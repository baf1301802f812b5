// The wires over HTTP, message by message, in front of an end that does what it is told: what is sent when, what is
// left unsent, what is ended, and what of an answer is handed on. Time is the test's own.

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { answer, scripted, type Scripted } from "../../../test/support/scripted-requester.ts";
import type { Authorizer } from "../../core/authentication.ts";
import { DEFAULT_LIMITS } from "../../jsonrpc/codec.ts";
import type { Message } from "../../jsonrpc/message.ts";
import { NEWEST, NEWEST_SESSION } from "../../protocol/revisions/index.ts";
import type { HttpResponse, OutgoingRequest } from "./requester.ts";
import type { Inbound, Transport } from "../../transport/transport.ts";
import { StatelessHttpTransport } from "./stateless.ts";
import { HttpConnection } from "./http-connection.ts";
import { LegacySseTransport } from "./legacy-sse.ts";
import { SessionHttpTransport } from "./session.ts";
import { ToolFacts } from "./tool-facts.ts";

type Loose = { readonly [key: string]: unknown };
type Answering = (request: OutgoingRequest, message: Loose) => HttpResponse | Promise<HttpResponse> | undefined;

const JSON_TYPE = { "content-type": "application/json" };
const SESSION = { ...JSON_TYPE, "mcp-session-id": "one" };

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Never answered; ended like any other by its signal. */
function silence({ signal }: OutgoingRequest): Promise<HttpResponse> {
  return new Promise((_resolve, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason as Error));
  });
}

/** Events that the test says one by one. */
class Stream {
  readonly answer: HttpResponse;
  isEnded = false;
  #said: string[] = [];
  #wake = (): void => undefined;

  constructor({ signal }: OutgoingRequest) {
    const end = (): void => {
      this.isEnded = true;
      this.#wake();
    };
    signal?.addEventListener("abort", end);
    const body = this.#bytes();
    this.answer = { ...answer(200, "", { "content-type": "text/event-stream" }), body, discard: end };
  }

  say(...messages: Loose[]): void {
    for (const message of messages) this.write(`data: ${JSON.stringify({ jsonrpc: "2.0", ...message })}\n\n`);
  }

  write(text: string): void {
    this.#said.push(text);
    this.#wake();
  }

  async *#bytes(): AsyncGenerator<Uint8Array> {
    for (;;) {
      // What came before the end is still there to be read.
      const text = this.#said.shift();
      if (text !== undefined) yield Buffer.from(text);
      else if (this.isEnded) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

interface Stage {
  readonly wire: Transport;
  readonly end: Scripted;
  /** What was handed on: methods of messages, or the ids of answers. */
  readonly heard: unknown[];
  posted(method: string): OutgoingRequest[];
  send(message: Loose): Promise<unknown>;
}

type Wires = new (link: HttpConnection, tools: ToolFacts) => Transport;

async function stage(Wire: Wires, answering: Answering, auth?: Authorizer): Promise<Stage> {
  const end = scripted((request) => {
    const message = (request.body === undefined ? {} : JSON.parse(request.body)) as Loose;
    const given = answering(request, message);
    if (given !== undefined) return given;
    if (request.method !== "POST") return answer(request.method === "GET" ? 405 : 200);
    if (message["id"] === undefined) return answer(202);
    const result = message["method"] === "initialize" ? { protocolVersion: NEWEST_SESSION.name } : {};
    return answer(200, JSON.stringify({ jsonrpc: "2.0", id: message["id"], result }), SESSION);
  });
  const url = new URL("http://end.test/mcp");
  const link = new HttpConnection({ url, requester: end, auth, limits: DEFAULT_LIMITS });
  const wire = new Wire(link, new ToolFacts(() => undefined));
  const heard: unknown[] = [];
  await wire.start(({ message }: Inbound) => {
    if (message !== undefined) heard.push("method" in message ? message.method : message.id);
  });
  return {
    wire,
    end,
    heard,
    posted: (method) => end.requests.filter(({ body }) => body?.includes(`"method":"${method}"`)),
    send: (message) => wire.send({ jsonrpc: "2.0", ...message } as unknown as Message).catch((error: unknown) => error),
  };
}

const turns = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);
const initialize = { id: 1, method: "initialize", params: {} };
const initialized = { method: "notifications/initialized" };
const call = { id: 2, method: "tools/call", params: { name: "job" } };
const cancelled = { method: "notifications/cancelled", params: { requestId: 2 } };
const log = { method: "notifications/message", params: { level: "info", data: "said" } };

/** A session that stands, with the other stream refused. */
async function session(answering: Answering = () => undefined, auth?: Authorizer): Promise<Stage> {
  const given = await stage(SessionHttpTransport, answering, auth);
  await given.send(initialize);
  await given.send(initialized);
  await turns();
  return given;
}

test.each([
  ["an exchange", StatelessHttpTransport],
  ["a session", SessionHttpTransport],
])("what is still to be read of a call in %s that was left is not handed on", async (_style, Wire) => {
  let stream: Stream | undefined;
  const { send, heard } = await stage(Wire, (request, { method }) => {
    if (method !== "tools/call") return undefined;
    stream = new Stream(request);
    return stream.answer;
  });
  if (Wire === SessionHttpTransport) await send(initialize).then(() => send(initialized));
  heard.length = 0;
  const _meta = { "io.modelcontextprotocol/protocolVersion": NEWEST.name };
  const sent = send({ ...call, params: { ...call.params, _meta } });
  await turns();
  stream?.say(log);
  await turns();
  void send(cancelled);
  stream?.say(log, log);
  await sent;
  expect(heard).toEqual(["notifications/message"]);
  expect(stream?.isEnded).toBe(true);
});

test.each([
  ["an exchange", StatelessHttpTransport],
  ["a session", SessionHttpTransport],
])("an error without an id on the stream of a call in %s is the answer to it", async (_style, Wire) => {
  const { send, heard } = await stage(Wire, (request, { method }) => {
    if (method !== "tools/call") return undefined;
    const stream = new Stream(request);
    stream.say({ id: null, error: { code: -32_000, message: "not today" } });
    return stream.answer;
  });
  if (Wire === SessionHttpTransport) await send(initialize).then(() => send(initialized));
  heard.length = 0;
  expect(await send(call)).toBeUndefined();
  expect(heard).toEqual([2]);
});

test("nothing is sent in a session before its handshake is done", async () => {
  let agree = (): void => undefined;
  const agreed = new Promise<void>((resolve) => (agree = resolve));
  const { send, posted } = await stage(SessionHttpTransport, (_request, { id, method }) => {
    if (method !== "initialize") return undefined;
    const result = { protocolVersion: NEWEST_SESSION.name };
    return agreed.then(() => answer(200, JSON.stringify({ jsonrpc: "2.0", id, result }), SESSION));
  });
  const shaken = send(initialize);
  const asked = send({ id: 2, method: "resources/unsubscribe", params: { uri: "note://1" } });
  await turns();
  expect(posted("resources/unsubscribe")).toEqual([]);
  agree();
  await shaken;
  expect(posted("resources/unsubscribe")).toEqual([]);
  await send(initialized);
  expect(await asked).toBeUndefined();
  expect(posted("resources/unsubscribe")[0]?.headers["mcp-session-id"]).toBe("one");
});

test("a handshake that failed leaves no session behind, and nothing that waits for one", async () => {
  const { send, end } = await stage(SessionHttpTransport, (_request, { method }) =>
    method === "initialize" ? answer(503) : undefined,
  );
  const shaken = send(initialize);
  const asked = send({ id: 2, method: "ping" });
  expect(await shaken).toMatchObject({ kind: "http", status: 503 });
  expect(await asked).toMatchObject({ kind: "closed", mayHaveRun: false });
  expect(end.requests).toHaveLength(1);
});

test("a handshake that is begun while another is not answered ends that one", async () => {
  const { send, posted } = await stage(SessionHttpTransport, silence);
  void send(initialize);
  await turns();
  void send({ ...initialize, id: 2 });
  await turns();
  expect(posted("initialize").map(({ signal }) => signal?.aborted)).toEqual([true, false]);
});

test("a call that is cancelled before it was sent is never sent, and the end hears nothing of it", async () => {
  const { send, posted } = await stage(SessionHttpTransport, (request) =>
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

test("an end that never says that it heard holds nothing up for long", async () => {
  const { send, posted } = await stage(SessionHttpTransport, (request, { id, method }) =>
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

test("a call that is answered on the other stream is not read on by its own", async () => {
  let own: Stream | undefined;
  let other: Stream | undefined;
  const { send, heard } = await session((request, { method }) => {
    if (request.method === "GET") other = new Stream(request);
    else if (method === "tools/call") own = new Stream(request);
    else return undefined;
    return (request.method === "GET" ? other : own)?.answer;
  });
  const sent = send(call);
  await turns();
  other?.say({ id: 2, result: {} });
  await sent;
  expect(own?.isEnded).toBe(true);
  expect(heard).toEqual([1, 2]);
});

test("a call says while it waits for the session that it is not the end that is late", async () => {
  const { wire, send } = await stage(SessionHttpTransport, (request) =>
    request.method === "GET" ? silence(request) : undefined,
  );
  await send(initialize);
  await send(initialized);
  const waits: boolean[] = [];
  const sent = wire.send({ jsonrpc: "2.0", ...call }, { onWait: (isWaiting) => waits.push(isWaiting) });
  await vi.advanceTimersByTimeAsync(4_999);
  expect(waits).toEqual([true]);
  await vi.advanceTimersByTimeAsync(1);
  await sent;
  expect(waits).toEqual([true, false]);
});

test("the other stream, once refused, is opened again when a call is accepted, and what was missed is told of", async () => {
  let isRefused = true;
  const { wire, send, end } = await stage(SessionHttpTransport, (request) => {
    if (request.method !== "GET") return undefined;
    return isRefused ? answer(401) : new Stream(request).answer;
  });
  const kinds: string[] = [];
  await wire.start(({ kind }) => void kinds.push(kind));
  await send(initialize);
  await send(initialized);
  await send({ ...call, id: 2 });
  await vi.advanceTimersByTimeAsync(60_000);
  const gets = (): number => end.requests.filter(({ method }) => method === "GET").length;
  const before = gets();
  isRefused = false;
  await send({ ...call, id: 3 });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(gets()).toBe(before + 1);
  expect(kinds).toContain("gap");
  await send({ ...call, id: 4 });
  await turns();
  expect(gets()).toBe(before + 1);
  await wire.close();
});

test("a farewell asks nobody to sign in, and waits for no proof that does not come", async () => {
  let isDeaf = false;
  const refused = vi.fn<Authorizer["refused"]>(async () => true);
  const auth: Authorizer = { authorize: () => (isDeaf ? new Promise(() => undefined) : Promise.resolve({})), refused };
  const first = await session(({ method }) => (method === "DELETE" ? answer(401) : undefined), auth);
  await first.wire.close();
  expect(first.end.requests.at(-1)?.method).toBe("DELETE");
  expect(refused).not.toHaveBeenCalled();
  const second = await session(undefined, auth);
  isDeaf = true;
  const closed = second.wire.close();
  await vi.advanceTimersByTimeAsync(2_000);
  await closed;
  expect(second.end.closed).toBe(true);
});

test("by the old pair of addresses, what is left is ended with the word of it, and a stream with the next", async () => {
  const streams: Stream[] = [];
  const { send, posted } = await stage(LegacySseTransport, (request, { method }) => {
    if (request.method === "GET") {
      const stream = new Stream(request);
      streams.push(stream);
      if (streams.length > 1) stream.write("event: endpoint\ndata: /messages\n\n");
      return stream.answer;
    }
    return method === "tools/call" ? silence(request) : answer(202);
  });
  void send(initialize);
  await turns();
  void send({ ...initialize, id: 3 });
  await turns();
  expect(streams.map(({ isEnded }) => isEnded)).toEqual([true, false]);
  const sent = send(call);
  await turns();
  await send(cancelled);
  expect(await sent).toMatchObject({ kind: "cancelled" });
  expect(posted("tools/call")[0]?.signal?.aborted).toBe(true);
});
