// NodeHttpRequest on a real node:http server with raw clients: properties, responses, streams, disconnects.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { expect, it } from "vitest";
import { nodeHttpServer } from "../../../test/support/http/node-http-server.ts";
import { NodeHttpRequest } from "./node-request.ts";
import type { StreamSink } from "./http-request.ts";

const POST = ["POST /mcp HTTP/1.1", "Host: localhost"];

const look = async (head: readonly string[]): Promise<NodeHttpRequest> => {
  const httpRequests: NodeHttpRequest[] = [];
  const { open } = await nodeHttpServer((httpRequest) => {
    httpRequests.push(httpRequest);
    httpRequest.respond(204, {});
  });
  await (await open()).send(head).answer();
  return httpRequests[0] as NodeHttpRequest;
};

const targets: readonly (readonly [target: string, path: string, query: string])[] = [
  ["/mcp", "/mcp", ""],
  ["/mcp?", "/mcp", ""],
  ["/mcp?a=1?b", "/mcp", "a=1?b"],
  ["/%6dcp/../x;y", "/%6dcp/../x;y", ""],
  ["//mcp", "//mcp", ""],
  ["/http://x/mcp", "/http://x/mcp", ""],
  ["http://localhost/mcp?q", "/mcp", "q"],
  ["HTTP://LOCALHOST/mcp", "/mcp", ""],
  ["http://localhost", "/", ""],
  ["http://localhost?q=/x", "/", "q=/x"],
  ["*", "*", ""],
];
it.each(targets)("a request: target %s", async (target, path, query) => {
  const httpRequest = await look([`OPTIONS ${target} HTTP/1.1`, "Host: localhost"]);
  expect([httpRequest.method, httpRequest.path, httpRequest.query]).toEqual(["OPTIONS", path, query]);
  expect(httpRequest.isAmbiguous).toBe(false);
  expect(httpRequest.origin).toBe("http://localhost");
});

it("a request has headers by lower-case name", async () => {
  const httpRequest = await look(["GET / HTTP/1.1", "HOST: localhost:80", "X-Many: a", "x-many: b", "Empty:"]);
  expect(httpRequest.headers).toMatchObject({ host: "localhost:80", "x-many": "a, b", empty: "" });
  expect(httpRequest.headers["missing"]).toBeUndefined();
});

const ambiguities: readonly (readonly [ambiguous: boolean, lines: string[]])[] = [
  [false, ["Host: localhost"]],
  [false, ["Host: localhost", "X: 1", "X: 2", "Accept: a", "Accept: b", "Cook: x", "Orange: y"]],
  [true, ["Host: localhost", "Host: localhost"]],
  [true, ["Host: localhost", "hOST: evil.example"]],
  [true, ["Host: localhost", "Origin: http://a.example", "ORIGIN: http://b.example"]],
  [true, ["Host: localhost", "Content-Type: application/json", "content-type: text/plain"]],
  [true, ["Host: localhost", "Authorization: Bearer a", "AUTHORIZATION: Bearer b"]],
  [true, ["Host: localhost", "Mcp-Session-Id: a", "mcp-session-id: b"]],
  [false, ["Host: localhost", "Origin: http://a.example", "Content-Type: x", "Authorization: x", "Mcp-Session-Id: a"]],
];
it.each(ambiguities)("a request is ambiguous (%s): %j", async (ambiguous, lines) => {
  expect((await look(["GET / HTTP/1.1", ...lines])).isAmbiguous).toBe(ambiguous);
});

it("a request is ambiguous if its target names another host", async () => {
  expect((await look(["GET http://evil.example/mcp HTTP/1.1", "Host: localhost"])).isAmbiguous).toBe(true);
  expect((await look(["GET http://u@localhost/mcp HTTP/1.1", "Host: localhost"])).isAmbiguous).toBe(true);
  expect((await look(["GET http://localhost/mcp HTTP/1.0"])).isAmbiguous).toBe(true);
});

it("a request has the full path if a framework has stripped it", async () => {
  const request = { method: "POST", headers: {}, rawHeaders: [], url: "/", originalUrl: "/api/mcp?x" };
  const httpRequest = new NodeHttpRequest(request as unknown as IncomingMessage, {} as ServerResponse);
  expect([httpRequest.path, httpRequest.query]).toEqual(["/api/mcp", "x"]);
});

it("a response has a length, and is sent only once", async () => {
  const { open } = await nodeHttpServer((httpRequest) => {
    httpRequest.respond(200, { "content-type": "application/json" }, '"gr\u00fc\u00df"');
    httpRequest.respond(500, {}, "no");
    httpRequest.stream({}).write("no");
  });
  const caller = await open();
  caller.send(["GET / HTTP/1.1", "Host: localhost"]);
  const answer = await caller.answer();
  expect(answer).toMatchObject({
    status: 200,
    headers: { "content-length": "8", "content-type": "application/json" },
  });
  expect(Buffer.from(answer.body, "latin1").toString()).toBe('"gr\u00fc\u00df"');
  caller.send(["GET / HTTP/1.1", "Host: localhost", "Connection: close"]);
  await caller.answer();
  expect(await caller.rest()).toBe("");
});

it.each([202, 204])("a response without a body: %i", async (status) => {
  const { open } = await nodeHttpServer((httpRequest) => httpRequest.respond(status, {}));
  const caller = await open();
  caller.send(["GET / HTTP/1.1", "Host: localhost"]);
  const { headers } = await caller.answer();
  expect(headers["content-length"]).toBe(status === 204 ? undefined : "0");
  expect(headers["transfer-encoding"]).toBeUndefined();
});

it("a response keeps the connection before a small body, and closes it before a large or chunked one", async () => {
  const { open } = await nodeHttpServer((httpRequest) => httpRequest.respond(403, {}, "no"));
  const caller = await open();
  caller.send([...POST, "Content-Length: 5"], "hello").send([...POST, "Content-Length: 5"], "hello");
  expect((await caller.answer()).status).toBe(403);
  expect((await caller.answer()).headers["connection"]).toBe("keep-alive");
  caller.send([...POST, "Content-Length: 100000"], "x");
  expect((await caller.answer()).headers["connection"]).toBe("close");
  const other = await open();
  other.send([...POST, "Transfer-Encoding: chunked"]);
  expect(await other.answer()).toMatchObject({ status: 403, body: "no", headers: { connection: "close" } });
});

it("a response passes headers as an object to a framework's writeHead", async () => {
  const seen: unknown[] = [];
  const { open } = await nodeHttpServer((httpRequest, _request, response) => {
    const plain = response.writeHead.bind(response);
    response.writeHead = (status: number, headers: unknown) => {
      seen.push(headers);
      return plain(status, headers as Record<string, string>);
    };
    httpRequest.respond(200, { "x-own": "1" }, "hi");
  });
  const caller = await open();
  caller.send(["GET / HTTP/1.1", "Host: localhost"]);
  expect(await caller.answer()).toMatchObject({ body: "hi", headers: { "x-own": "1", "content-length": "2" } });
  expect(seen).toEqual([{ "x-own": "1", "content-length": 2 }]);
});

it("a response that is not read does not stay in memory", async () => {
  const sockets: Socket[] = [];
  const { open } = await nodeHttpServer((httpRequest, request) => {
    sockets.push(request.socket);
    httpRequest.respond(200, {}, httpRequest.path === "/small" ? "x" : "x".repeat(32 * 1024 * 1024));
  });
  const [quick, stalled] = [await open(), await open()];
  await quick.send(["GET /small HTTP/1.1", "Host: localhost"]).answer();
  stalled.send(["GET /large HTTP/1.1", "Host: localhost"]);
  await stalled.head();
  stalled.socket.pause();
  const [taken, waiting] = sockets as [Socket, Socket];
  // Node takes the part that the system has buffered for progress, and waits a second time: 30 s at most.
  expect(taken.timeout).not.toBe(15_000);
  expect(waiting.timeout).toBe(15_000);
  waiting.emit("timeout");
  expect(waiting.destroyed).toBe(true);
});

it("a response keeps the order of pipelined requests", async () => {
  const httpRequests: NodeHttpRequest[] = [];
  const { open } = await nodeHttpServer((httpRequest) => {
    httpRequests.push(httpRequest);
    if (httpRequests.length < 3) return;
    for (const one of httpRequests.toReversed()) one.respond(200, {}, one.path);
  });
  const caller = await open();
  for (const path of ["/1", "/2", "/3"]) caller.send([`GET ${path} HTTP/1.1`, "Host: localhost"]);
  expect([(await caller.answer()).body, (await caller.answer()).body, (await caller.answer()).body]).toEqual([
    "/1",
    "/2",
    "/3",
  ]);
});

it("a stream sends its head at once, and then each event", async () => {
  let sink: StreamSink | undefined;
  const { open } = await nodeHttpServer((httpRequest) => {
    sink = httpRequest.stream({ "mcp-session-id": "s" });
  });
  const caller = await open();
  caller.send(["GET / HTTP/1.1", "Host: localhost"]);
  expect(await caller.head()).toMatchObject({
    status: 200,
    headers: {
      "content-type": "text/event-stream",
      "cache-control": "no-cache, no-transform",
      "x-accel-buffering": "no",
      "mcp-session-id": "s",
    },
  });
  sink?.write("data: 1\n\n");
  await caller.until("data: 1\n\n");
  sink?.write("data: \u00fc\n\n");
  sink?.end();
  sink?.write("data: late\n\n");
  sink?.end();
  expect(await caller.until("0\r\n\r\n")).toContain("data: \u00c3\u00bc\n\n");
  // The connection can be reused.
  caller.send(["GET / HTTP/1.1", "Host: localhost"]);
  expect((await caller.head()).status).toBe(200);
});

it("a stream closes at once when it is destroyed", async () => {
  const gone: string[] = [];
  const { open } = await nodeHttpServer((httpRequest) => {
    const sink = httpRequest.stream({});
    httpRequest.onDisconnect({ disconnect: () => gone.push("gone") });
    sink.write("data: 1\n\n");
    setImmediate(() => {
      sink.destroy();
      sink.write("data: 2\n\n");
      sink.end();
    });
  });
  const caller = await open();
  caller.send(["GET / HTTP/1.1", "Host: localhost"]);
  expect(await caller.rest()).not.toContain("0\r\n\r\n");
  expect(gone).toEqual([]);
});

it("a stream counts unread bytes", async () => {
  const sinks: StreamSink[] = [];
  const { open } = await nodeHttpServer((httpRequest) => sinks.push(httpRequest.stream({})));
  const caller = await open();
  caller.send(["GET / HTTP/1.1", "Host: localhost"]);
  await caller.head();
  caller.socket.pause();
  const sink = sinks[0] as StreamSink;
  const text = "x".repeat(1024 * 1024);
  for (let count = 0; count < 32; count += 1) sink.write(text);
  expect(sink.bufferedBytes).toBeGreaterThan(16 * text.length);
  caller.socket.resume();
  while (sink.bufferedBytes > 0) await new Promise(setImmediate);
  expect(sink.bufferedBytes).toBe(0);
});

it("a disconnect calls the last callback once, before the response is complete", async () => {
  const gone: string[] = [];
  const left = new Promise<NodeHttpRequest>((resolve) => {
    void nodeHttpServer((httpRequest) => {
      httpRequest.onDisconnect({ disconnect: () => gone.push("first") });
      httpRequest.onDisconnect({
        disconnect: () => {
          gone.push("last");
          resolve(httpRequest);
        },
      });
    }).then(async ({ open }) => {
      const caller = await open();
      caller.send(["GET / HTTP/1.1", "Host: localhost"]);
      await new Promise(setImmediate);
      caller.destroy();
    });
  });
  const httpRequest = await left;
  expect(httpRequest.isDisconnected).toBe(true);
  httpRequest.onDisconnect({ disconnect: () => gone.push("late") });
  httpRequest.respond(200, {}, "ignored");
  const sink = httpRequest.stream({});
  sink.write("ignored");
  sink.end();
  sink.destroy();
  expect(gone).toEqual(["last", "late"]);
});

it("a disconnect after the response is ignored", async () => {
  const gone: string[] = [];
  const httpRequests: NodeHttpRequest[] = [];
  const { open } = await nodeHttpServer((httpRequest) => {
    httpRequests.push(httpRequest);
    httpRequest.onDisconnect({ disconnect: () => gone.push("gone") });
    httpRequest.respond(200, {}, "whole");
    httpRequest.onDisconnect({ disconnect: () => gone.push("gone") });
  });
  const caller = await open();
  caller.send(["GET / HTTP/1.1", "Host: localhost"]);
  await caller.answer();
  caller.destroy();
  await caller.closed;
  await new Promise(setImmediate);
  expect(gone).toEqual([]);
  expect(httpRequests[0]?.isDisconnected).toBe(false);
});

it("a disconnect is reported to all pipelined requests, without a listener warning", async () => {
  const warnings: unknown[] = [];
  const warn = (warning: unknown): void => void warnings.push(warning);
  process.on("warning", warn);
  let gone = 0;
  let httpRequests = 0;
  const all = new Promise<void>((resolve) => {
    void nodeHttpServer((httpRequest) => {
      httpRequests += 1;
      httpRequest.stream({});
      httpRequest.onDisconnect({
        disconnect: () => {
          gone += 1;
          if (gone === 20) resolve();
        },
      });
    }).then(async ({ open }) => {
      const caller = await open();
      for (let count = 0; count < 20; count += 1) caller.send(["GET / HTTP/1.1", "Host: localhost"]);
      while (httpRequests < 20) await new Promise(setImmediate);
      caller.destroy();
    });
  });
  await all;
  await new Promise(setImmediate);
  process.off("warning", warn);
  expect(warnings).toEqual([]);
});
