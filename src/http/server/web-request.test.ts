// WebHttpRequest with a plain Request and Response.

import { expect, it } from "vitest";
import type { StreamSink } from "./http-request.ts";
import { WebHttpRequest } from "./web-request.ts";

const MAX = 1_000;
const ADDRESS = "http://localhost:3000/mcp";

function post(body: RequestInit["body"], headers: Record<string, string> = {}): WebHttpRequest {
  return new WebHttpRequest(new Request(ADDRESS, { method: "POST", body: body ?? null, headers, duplex: "half" }));
}

function bodyOf(httpRequest: WebHttpRequest, bodyMs = 20_000): Promise<string> {
  return new Promise((resolve, reject) =>
    httpRequest.readBody({ messageBytes: MAX, bodyMs }, { onBody: resolve, onError: reject }),
  );
}

function pieces(...chunks: (string | Uint8Array)[]): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream({
    pull(controller) {
      const chunk = chunks.shift();
      if (chunk === undefined) controller.close();
      else controller.enqueue(typeof chunk === "string" ? encoder.encode(chunk) : chunk);
    },
  });
}

it("a request has method, path, query and headers", () => {
  const httpRequest = new WebHttpRequest(
    new Request("http://localhost:3000/a%2fb?x=1?", { headers: { Host: "other.example", "X-Many": "a" } }),
  );
  expect(httpRequest).toMatchObject({ method: "GET", path: "/a%2fb", query: "x=1?", origin: "http://other.example" });
  expect(httpRequest.headers).toMatchObject({ host: "other.example", "x-many": "a" });
  expect(httpRequest.headers["toString"]).toBeDefined();
  expect(httpRequest.isAmbiguous).toBe(false);
});

it("a request takes the host from its URL without a Host header", () => {
  const httpRequest = new WebHttpRequest(new Request("https://mcp.example/"));
  expect([httpRequest.headers["host"], httpRequest.origin, httpRequest.path]).toEqual([
    "mcp.example",
    "https://mcp.example",
    "/",
  ]);
});

it.each(["host", "origin", "content-type", "authorization", "mcp-session-id"])(
  "a request is ambiguous with two of %s",
  (name) => {
    const headers = new Headers([
      [name, "a"],
      [name, "b"],
    ]);
    expect(new WebHttpRequest(new Request(ADDRESS, { headers })).isAmbiguous).toBe(true);
    expect(new WebHttpRequest(new Request(ADDRESS, { headers: { [name]: "a" } })).isAmbiguous).toBe(false);
  },
);

it("a body may be whole, in pieces, or empty", async () => {
  expect(await bodyOf(post('{"a":"\u00fc"}'))).toBe('{"a":"\u00fc"}');
  const bytes = new TextEncoder().encode("\u{1f600}");
  expect(await bodyOf(post(pieces(bytes.slice(0, 2), bytes.slice(2), "!")))).toBe("\u{1f600}!");
  expect(await bodyOf(post(null))).toBe("");
  expect(await bodyOf(post(pieces("\ufeffx")))).toBe("\ufeffx");
});

it("a body may be as long as the limit", async () => {
  expect(await bodyOf(post(pieces("x".repeat(MAX))))).toHaveLength(MAX);
  await expect(bodyOf(post(pieces("x".repeat(MAX), "x")))).rejects.toMatchObject({ status: 413 });
  await expect(bodyOf(post("x", { "content-length": "1001" }))).rejects.toMatchObject({ status: 413 });
});

it("a body is not read further once it is rejected", async () => {
  let reason: string | undefined;
  let sent = 0;
  const endless = new ReadableStream<Uint8Array>({
    pull(controller) {
      sent += 1;
      controller.enqueue(new Uint8Array(400));
    },
    cancel() {
      reason = "cancelled";
    },
  });
  await expect(bodyOf(post(endless))).rejects.toMatchObject({ status: 413 });
  await new Promise(setImmediate);
  expect([reason, sent < 10]).toEqual(["cancelled", true]);
});

it("a body that is too slow is rejected", async () => {
  await expect(bodyOf(post(new ReadableStream()), 20)).rejects.toMatchObject({ status: 408 });
});

it.each([[[0xff]], [[0xe2, 0x82]], [[0xc0, 0xaf]]])("a body that is not UTF-8 is rejected: %j", async (bytes) => {
  await expect(bodyOf(post(pieces(Uint8Array.from(bytes))))).rejects.toMatchObject({ status: 400 });
});

it("a body that is compressed is rejected", async () => {
  const httpRequest = post("x", { "content-encoding": "gzip" });
  await expect(bodyOf(httpRequest)).rejects.toMatchObject({ status: 415 });
  expect(await bodyOf(post("x", { "content-encoding": "identity" }))).toBe("x");
});

it("a body that is incomplete or already consumed is rejected", async () => {
  const broken = new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.error(new Error("reset"));
    },
  });
  await expect(bodyOf(post(broken))).rejects.toMatchObject({ status: 400 });
  const request = new Request(ADDRESS, { method: "POST", body: "x" });
  await request.text();
  await expect(bodyOf(new WebHttpRequest(request))).rejects.toMatchObject({ status: 500 });
});

it("a response is sent only once", async () => {
  const httpRequest = post("x");
  httpRequest.respond(201, { "content-type": "application/json" }, '"\u00fc"');
  httpRequest.respond(500, {}, "no");
  httpRequest.stream({}).write("no");
  const response = await httpRequest.response;
  expect([response.status, response.headers.get("content-type"), await response.text()]).toEqual([
    201,
    "application/json",
    '"\u00fc"',
  ]);
});

it.each([202, 204])("a response may have no body: %i", async (status) => {
  const httpRequest = post("x");
  httpRequest.respond(status, {});
  const response = await httpRequest.response;
  expect([response.status, response.body]).toEqual([status, null]);
});

async function begun(headers: Record<string, string> = {}): Promise<{
  httpRequest: WebHttpRequest;
  sink: StreamSink;
  response: Response;
  reader: ReadableStreamDefaultReader<Uint8Array>;
}> {
  const httpRequest = post("x");
  const sink = httpRequest.stream(headers);
  const response = await httpRequest.response;
  return { httpRequest, sink, response, reader: (response.body as ReadableStream<Uint8Array>).getReader() };
}

async function text(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<string | undefined> {
  const { value } = await reader.read();
  return value === undefined ? undefined : new TextDecoder().decode(value);
}

it("a stream starts with its head, and carries what is written until its end", async () => {
  const { sink, response, reader } = await begun({ "mcp-session-id": "s" });
  expect(Object.fromEntries(response.headers)).toEqual({
    "cache-control": "no-cache, no-transform",
    "content-type": "text/event-stream",
    "mcp-session-id": "s",
    "x-accel-buffering": "no",
  });
  const first = text(reader);
  sink.write("data: 1\n\n");
  expect(await first).toBe("data: 1\n\n");
  sink.write("data: \u00fc\n\n");
  sink.end();
  sink.write("late");
  sink.end();
  sink.destroy();
  expect([await text(reader), await text(reader)]).toEqual(["data: \u00fc\n\n", undefined]);
});

it("a stream counts unread bytes", async () => {
  const { sink, reader } = await begun();
  expect(sink.bufferedBytes).toBe(0);
  sink.write("\u00fc\u00fc");
  sink.write("abc");
  expect(sink.bufferedBytes).toBe(7);
  await reader.read();
  expect(sink.bufferedBytes).toBe(3);
  await reader.read();
  expect(sink.bufferedBytes).toBe(0);
  const next = reader.read();
  sink.write("taken at once");
  expect(sink.bufferedBytes).toBe(0);
  await next;
});

it("a stream loses unread data when it is destroyed", async () => {
  const { httpRequest, sink, reader } = await begun();
  const gone: string[] = [];
  httpRequest.onDisconnect({ disconnect: () => gone.push("gone") });
  sink.write("lost");
  sink.destroy();
  await expect(reader.read()).rejects.toThrow("the stream was destroyed");
  expect([gone, sink.bufferedBytes]).toEqual([[], 0]);
});

it("a stream reports when its reader cancels", async () => {
  const { httpRequest, sink, reader } = await begun();
  const gone: string[] = [];
  httpRequest.onDisconnect({ disconnect: () => gone.push("gone") });
  await reader.cancel();
  expect([gone, httpRequest.isDisconnected]).toEqual([["gone"], true]);
  sink.write("ignored");
  sink.end();
  sink.destroy();
  expect(gone).toEqual(["gone"]);
});

function requestWith(controller: AbortController): WebHttpRequest {
  return new WebHttpRequest(new Request(ADDRESS, { signal: controller.signal }));
}

it("a disconnect calls the last callback once, and settles the response", async () => {
  const controller = new AbortController();
  const httpRequest = requestWith(controller);
  const gone: string[] = [];
  httpRequest.onDisconnect({ disconnect: () => gone.push("first") });
  httpRequest.onDisconnect({ disconnect: () => gone.push("last") });
  controller.abort();
  expect([gone, httpRequest.isDisconnected]).toEqual([["last"], true]);
  httpRequest.onDisconnect({ disconnect: () => gone.push("late") });
  expect(gone).toEqual(["last", "late"]);
  httpRequest.respond(200, {}, "ignored");
  expect((await httpRequest.response).status).toBe(499);
});

it("a disconnect after the response is ignored", () => {
  const controller = new AbortController();
  const httpRequest = requestWith(controller);
  const gone: string[] = [];
  httpRequest.onDisconnect({ disconnect: () => gone.push("gone") });
  httpRequest.respond(200, {});
  controller.abort();
  expect([gone, httpRequest.isDisconnected]).toEqual([[], false]);
});
