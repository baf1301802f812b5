// The listener on a real port: malformed requests, the reported URL, and closing.

import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import type { RawHttp } from "../../../test/support/http/raw-http.ts";
import { openRawHttp } from "../../../test/support/http/node-http-server.ts";
import { listen } from "./listener.ts";
import type { Listener, ListenLimits } from "./listener.ts";
import type { NodeHttpRequest } from "./node-request.ts";
import type { StreamSink } from "./http-request.ts";

const LIMITS: ListenLimits = { headerBytes: 4_096, headerMs: 20_000, bodyMs: 20_000 };
const GET = ["GET / HTTP/1.1", "Host: localhost"];

async function listening(
  onRequest: (httpRequest: NodeHttpRequest) => void,
  limits: Partial<ListenLimits> = {},
  host = "127.0.0.1",
): Promise<Listener & { open(): Promise<RawHttp> }> {
  const listener = await listen({ host, port: 0, limits: { ...LIMITS, ...limits }, onRequest });
  onTestFinished(() => listener.close(0));
  return {
    ...listener,
    open: () => openRawHttp(listener.port, new URL(listener.url).hostname.replace(/^\[|\]$/g, "")),
  };
}

const hello = (httpRequest: NodeHttpRequest): void => void httpRequest.respond(200, {}, "hello");

it.each([
  ["127.0.0.1", "127.0.0.1"],
  ["0.0.0.0", "127.0.0.1"],
  ["::1", "[::1]"],
  ["[::1]", "[::1]"],
  ["::", "[::1]"],
])("the URL of %s can be called", async (host, shown) => {
  const listener = await listening(hello, {}, host);
  expect(listener.url).toBe(`http://${shown}:${listener.port}`);
  const response = await fetch(`${listener.url}/mcp`);
  expect(await response.text()).toBe("hello");
});

it("the URL of a host name contains its address", async () => {
  const listener = await listening(hello, {}, "localhost");
  expect(listener.url).toMatch(/^http:\/\/(127\.0\.0\.1|\[::1\]):\d+$/);
  expect((await fetch(listener.url)).status).toBe(200);
});

const attempt = (host: string, port: number): Promise<Listener> =>
  listen({ host, port, limits: LIMITS, onRequest: hello });

it("a port that cannot be opened is named in an error with advice", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void taken.close());
  await new Promise((resolve) => taken.once("listening", resolve));
  const { port } = taken.address() as AddressInfo;
  await expect(attempt("127.0.0.1", port)).rejects.toMatchObject({
    name: "ConnectionError",
    kind: "refused",
    message: `Port ${port} on 127.0.0.1 is in use: stop the program that uses it, or choose another port (0 picks a free one).`,
    cause: { code: "EADDRINUSE" },
  });
});

it("a port that cannot be opened may be on an address of another machine", async () => {
  await expect(attempt("192.0.2.1", 0)).rejects.toMatchObject({
    kind: "refused",
    message: "192.0.2.1 is not an address of this machine, so port 0 cannot be opened on it: choose another host.",
  });
});

it("a port that cannot be opened may be on a name that does not resolve", async () => {
  await expect(attempt("nowhere.invalid", 0)).rejects.toMatchObject({
    kind: "refused",
    message: expect.stringContaining("nowhere.invalid"),
  });
});

it.each([
  ["not HTTP at all", "hello\r\n\r\n", 400],
  ["a header without a name", "GET / HTTP/1.1\r\n: x\r\n\r\n", 400],
  ["a space before a colon", "GET / HTTP/1.1\r\nHost : x\r\n\r\n", 400],
  ["a folded line", "GET / HTTP/1.1\r\nHost: x\r\n\tfolded\r\n\r\n", 400],
  ["two lengths", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400],
  [
    "a length beside chunks",
    "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    400,
  ],
  ["an invalid length", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400],
  ["an unknown transfer encoding", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, x\r\n\r\n", 400],
  ["headers that are too long", `GET / HTTP/1.1\r\nHost: x\r\nX: ${"x".repeat(100_000)}\r\n\r\n`, 431],
  ["headers that are too many", `GET / HTTP/1.1\r\nHost: x\r\n${"X: x\r\n".repeat(50_000)}\r\n`, 431],
])("a malformed request: %s", async (_name, text, status) => {
  let httpRequests = 0;
  const { open } = await listening(() => {
    httpRequests += 1;
  });
  const caller = await open();
  caller.write(text);
  expect(await caller.answer()).toMatchObject({ status, headers: { connection: "close" } });
  await caller.closed;
  expect(httpRequests).toBe(0);
});

it("a malformed request in the middle of a body fails that request", async () => {
  const bodies: unknown[] = [];
  const keep = (body: unknown): void => void bodies.push(body);
  const { open } = await listening((httpRequest) =>
    httpRequest.readBody({ messageBytes: 100, bodyMs: 20_000 }, { onBody: keep, onError: keep }),
  );
  const caller = await open();
  caller.send(["POST / HTTP/1.1", "Host: x", "Transfer-Encoding: chunked"], "1\r\na\r\nxyz\r\n");
  expect((await caller.answer()).status).toBe(400);
  caller.socket.end();
  await caller.closed;
  await expect.poll(() => bodies).toMatchObject([{ name: "HttpError", status: 400 }]);
});

it("a malformed request behind a pending request is not answered in its place", async () => {
  const { open } = await listening(() => {});
  const caller = await open();
  caller.send(GET).write("garbage\r\n\r\n");
  expect(await caller.rest()).toBe("");
});

it("a malformed request may be a head that is too slow", async () => {
  const { open } = await listening(hello, { headerMs: 100 });
  const caller = await open();
  caller.write("GET / HTTP/1.1\r\nHost: x\r\n");
  expect((await caller.answer()).status).toBe(408);
});

it("a malformed request may be a body that is too slow, even if it is not read", async () => {
  const { open } = await listening(() => {}, { headerMs: 50, bodyMs: 50 });
  const caller = await open();
  caller.send(["POST / HTTP/1.1", "Host: x", "Content-Length: 10"], "abc");
  expect((await caller.answer()).status).toBe(408);
});

it("a request without Host is passed on, for the guard to reject", async () => {
  const { open } = await listening((httpRequest) => httpRequest.respond(400, {}, String(httpRequest.headers["host"])));
  const caller = await open();
  caller.send(["GET / HTTP/1.1"]);
  expect(await caller.answer()).toMatchObject({ status: 400, body: "undefined" });
});

it("a request has all values of a repeated header", async () => {
  const { open } = await listening((httpRequest) =>
    httpRequest.respond(200, {}, `${httpRequest.headers["host"]} ${httpRequest.isAmbiguous}`),
  );
  const caller = await open();
  caller.send(["GET / HTTP/1.1", "Host: a", "Host: b"]);
  expect((await caller.answer()).body).toBe("a, b true");
});

it("a request with Expect: 100-continue gets it only when its body is read", async () => {
  const { open } = await listening((httpRequest) => {
    const onBody = (text: string): void => void httpRequest.respond(200, {}, text);
    const onError = (): void => void httpRequest.respond(413, {});
    httpRequest.readBody({ messageBytes: 10, bodyMs: 20_000 }, { onBody, onError });
  });
  const caller = await open();
  caller.send(["POST / HTTP/1.1", "Host: x", "Expect: 100-continue", "Content-Length: 5"]);
  expect((await caller.head()).status).toBe(100);
  caller.write("hello");
  expect((await caller.answer()).body).toBe("hello");
  caller.send(["POST / HTTP/1.1", "Host: x", "Expect: 100-continue", "Content-Length: 50"]);
  expect((await caller.head()).status).toBe(413);
});

it("closing closes idle connections and half-sent heads at once", async () => {
  const listener = await listening(hello);
  const [idle, half, fresh] = [await listener.open(), await listener.open(), await listener.open()];
  await idle.send(GET).answer();
  await half.send(GET).answer();
  half.write("GET / HTT");
  await listener.close(60_000);
  await Promise.all([idle.closed, half.closed, fresh.closed]);
  await expect(openRawHttp(listener.port)).rejects.toMatchObject({ code: "ECONNREFUSED" });
});

it("closing waits for a pending response and marks it as the last", async () => {
  const httpRequests: NodeHttpRequest[] = [];
  const listener = await listening((httpRequest) => httpRequests.push(httpRequest));
  const caller = await listener.open();
  caller.send(GET);
  await expect.poll(() => httpRequests.length).toBe(1);
  const closed = listener.close(60_000);
  httpRequests[0]?.respond(200, {}, "after all");
  expect(await caller.answer()).toMatchObject({ body: "after all", headers: { connection: "close" } });
  await closed;
  await caller.closed;
});

it("closing lets the client read a response that is already sent", async () => {
  const length = 32 * 1024 * 1024;
  const listener = await listening((httpRequest) => httpRequest.respond(200, {}, "x".repeat(length)));
  const caller = await listener.open();
  caller.send(GET);
  await caller.head();
  caller.socket.pause();
  const closed = listener.close(60_000);
  caller.socket.resume();
  const rest = await caller.rest();
  expect(rest).toHaveLength(length);
  await closed;
});

it("closing answers requests that still arrive on a busy connection", async () => {
  const httpRequests: NodeHttpRequest[] = [];
  const listener = await listening((httpRequest) => httpRequests.push(httpRequest));
  const caller = await listener.open();
  caller.send(GET);
  await expect.poll(() => httpRequests.length).toBe(1);
  const closed = listener.close(60_000);
  caller.send(GET);
  await expect.poll(() => httpRequests.length).toBe(2);
  httpRequests[1]?.respond(503, {});
  httpRequests[0]?.respond(200, {}, "first");
  expect((await caller.answer()).body).toBe("first");
  await closed;
});

it("closing waits no longer than graceMs", async () => {
  const sinks: StreamSink[] = [];
  const gone: string[] = [];
  const listener = await listening((httpRequest) => {
    sinks.push(httpRequest.stream({}));
    httpRequest.onDisconnect({ disconnect: () => gone.push("gone") });
  });
  const caller = await listener.open();
  caller.send(GET);
  await caller.head();
  await Promise.all([listener.close(20), listener.close(60_000)]);
  await caller.closed;
  expect(gone).toEqual(["gone"]);
});
