// What a visit says of its request, its answers and its streams, on a real node:http server spoken to by hand.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { describe, expect, it } from "vitest";
import { visited } from "../../../test/support/visits.ts";
import { NodeHttpRequest } from "./node-request.ts";
import type { StreamSink } from "./http-request.ts";

const POST = ["POST /mcp HTTP/1.1", "Host: localhost"];

describe("what a visit says of its request", () => {
  const look = async (head: readonly string[]): Promise<NodeHttpRequest> => {
    const visits: NodeHttpRequest[] = [];
    const { open } = await visited((visit) => {
      visits.push(visit);
      visit.answer(204, {});
    });
    await (await open()).send(head).answer();
    return visits[0] as NodeHttpRequest;
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
  it.each(targets)("target %s", async (target, path, query) => {
    const visit = await look([`OPTIONS ${target} HTTP/1.1`, "Host: localhost"]);
    expect([visit.method, visit.path, visit.query]).toEqual(["OPTIONS", path, query]);
    expect(visit.ambiguous).toBe(false);
    expect(visit.origin).toBe("http://localhost");
  });

  it("has headers by lower-case names", async () => {
    const visit = await look(["GET / HTTP/1.1", "HOST: localhost:80", "X-Many: a", "x-many: b", "Empty:"]);
    expect(visit.headers).toMatchObject({ host: "localhost:80", "x-many": "a, b", empty: "" });
    expect(visit.headers["missing"]).toBeUndefined();
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
    [
      false,
      ["Host: localhost", "Origin: http://a.example", "Content-Type: x", "Authorization: x", "Mcp-Session-Id: a"],
    ],
  ];
  it.each(ambiguities)("is ambiguous (%s): %j", async (ambiguous, lines) => {
    expect((await look(["GET / HTTP/1.1", ...lines])).ambiguous).toBe(ambiguous);
  });

  it("is ambiguous where its target names another host", async () => {
    expect((await look(["GET http://evil.example/mcp HTTP/1.1", "Host: localhost"])).ambiguous).toBe(true);
    expect((await look(["GET http://u@localhost/mcp HTTP/1.1", "Host: localhost"])).ambiguous).toBe(true);
    expect((await look(["GET http://localhost/mcp HTTP/1.0"])).ambiguous).toBe(true);
  });

  it("has the whole path where a framework has cut it", async () => {
    const request = { method: "POST", headers: {}, rawHeaders: [], url: "/", originalUrl: "/api/mcp?x" };
    const visit = new NodeHttpRequest(request as unknown as IncomingMessage, {} as ServerResponse);
    expect([visit.path, visit.query]).toEqual(["/api/mcp", "x"]);
  });
});

describe("an answer", () => {
  it("has a length, and is the only one", async () => {
    const { open } = await visited((visit) => {
      visit.answer(200, { "content-type": "application/json" }, '"gr\u00fc\u00df"');
      visit.answer(500, {}, "no");
      visit.stream({}).write("no");
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

  it.each([202, 204])("without a body: %i", async (status) => {
    const { open } = await visited((visit) => visit.answer(status, {}));
    const caller = await open();
    caller.send(["GET / HTTP/1.1", "Host: localhost"]);
    const { headers } = await caller.answer();
    expect(headers["content-length"]).toBe(status === 204 ? undefined : "0");
    expect(headers["transfer-encoding"]).toBeUndefined();
  });

  it("before a small body keeps the connection, before a large one or one of unknown length it does not", async () => {
    const { open } = await visited((visit) => visit.answer(403, {}, "no"));
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

  it("has the plain form of headers where a framework has put itself in between", async () => {
    const seen: unknown[] = [];
    const { open } = await visited((visit, _request, response) => {
      const plain = response.writeHead.bind(response);
      response.writeHead = (status: number, headers: unknown) => {
        seen.push(headers);
        return plain(status, headers as Record<string, string>);
      };
      visit.answer(200, { "x-own": "1" }, "hi");
    });
    const caller = await open();
    caller.send(["GET / HTTP/1.1", "Host: localhost"]);
    expect(await caller.answer()).toMatchObject({ body: "hi", headers: { "x-own": "1", "content-length": "2" } });
    expect(seen).toEqual([{ "x-own": "1", "content-length": 2 }]);
  });

  it("that nobody takes does not stay in memory for good", async () => {
    const sockets: Socket[] = [];
    const { open } = await visited((visit, request) => {
      sockets.push(request.socket);
      visit.answer(200, {}, visit.path === "/small" ? "x" : "x".repeat(32 * 1024 * 1024));
    });
    const [quick, stalled] = [await open(), await open()];
    await quick.send(["GET /small HTTP/1.1", "Host: localhost"]).answer();
    stalled.send(["GET /large HTTP/1.1", "Host: localhost"]);
    await stalled.head();
    stalled.socket.pause();
    const [taken, waiting] = sockets as [Socket, Socket];
    expect(taken.timeout).not.toBe(30_000);
    expect(waiting.timeout).toBe(30_000);
    waiting.emit("timeout");
    expect(waiting.destroyed).toBe(true);
  });

  it("goes to requests that came in one breath in their order", async () => {
    const visits: NodeHttpRequest[] = [];
    const { open } = await visited((visit) => {
      visits.push(visit);
      if (visits.length < 3) return;
      for (const one of visits.toReversed()) one.answer(200, {}, one.path);
    });
    const caller = await open();
    for (const path of ["/1", "/2", "/3"]) caller.send([`GET ${path} HTTP/1.1`, "Host: localhost"]);
    expect([(await caller.answer()).body, (await caller.answer()).body, (await caller.answer()).body]).toEqual([
      "/1",
      "/2",
      "/3",
    ]);
  });
});

describe("a stream", () => {
  it("begins with its head at once, and events follow as they come", async () => {
    let sink: StreamSink | undefined;
    const { open } = await visited((visit) => {
      sink = visit.stream({ "mcp-session-id": "s" });
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
    // The connection is as good as new.
    caller.send(["GET / HTTP/1.1", "Host: localhost"]);
    expect((await caller.head()).status).toBe(200);
  });

  it("is over at once when it is cut", async () => {
    const gone: string[] = [];
    const { open } = await visited((visit) => {
      const sink = visit.stream({});
      visit.onGone(() => gone.push("gone"));
      sink.write("data: 1\n\n");
      setImmediate(() => {
        sink.cut();
        sink.write("data: 2\n\n");
        sink.end();
      });
    });
    const caller = await open();
    caller.send(["GET / HTTP/1.1", "Host: localhost"]);
    expect(await caller.rest()).not.toContain("0\r\n\r\n");
    expect(gone).toEqual([]);
  });

  it("counts what the reader has not taken", async () => {
    const sinks: StreamSink[] = [];
    const { open } = await visited((visit) => sinks.push(visit.stream({})));
    const caller = await open();
    caller.send(["GET / HTTP/1.1", "Host: localhost"]);
    await caller.head();
    caller.socket.pause();
    const sink = sinks[0] as StreamSink;
    const text = "x".repeat(1024 * 1024);
    for (let count = 0; count < 32; count += 1) sink.write(text);
    expect(sink.waiting).toBeGreaterThan(16 * text.length);
    caller.socket.resume();
    while (sink.waiting > 0) await new Promise(setImmediate);
    expect(sink.waiting).toBe(0);
  });
});

describe("a caller that hangs up", () => {
  it("is noticed once, by the last who asked, while the answer is not whole", async () => {
    const gone: string[] = [];
    const left = new Promise<NodeHttpRequest>((resolve) => {
      void visited((visit) => {
        visit.onGone(() => gone.push("first"));
        visit.onGone(() => {
          gone.push("last");
          resolve(visit);
        });
      }).then(async ({ open }) => {
        const caller = await open();
        caller.send(["GET / HTTP/1.1", "Host: localhost"]);
        await new Promise(setImmediate);
        caller.destroy();
      });
    });
    const visit = await left;
    expect(visit.isGone).toBe(true);
    visit.onGone(() => gone.push("late"));
    visit.answer(200, {}, "nobody");
    const sink = visit.stream({});
    sink.write("nobody");
    sink.end();
    sink.cut();
    expect(gone).toEqual(["last", "late"]);
  });

  it("is not one that was answered", async () => {
    const gone: string[] = [];
    const visits: NodeHttpRequest[] = [];
    const { open } = await visited((visit) => {
      visits.push(visit);
      visit.onGone(() => gone.push("gone"));
      visit.answer(200, {}, "whole");
      visit.onGone(() => gone.push("gone"));
    });
    const caller = await open();
    caller.send(["GET / HTTP/1.1", "Host: localhost"]);
    await caller.answer();
    caller.destroy();
    await caller.closed;
    await new Promise(setImmediate);
    expect(gone).toEqual([]);
    expect(visits[0]?.isGone).toBe(false);
  });

  it("is noticed by requests that wait behind another answer, without a warning for their number", async () => {
    const warnings: unknown[] = [];
    const warn = (warning: unknown): void => void warnings.push(warning);
    process.on("warning", warn);
    let gone = 0;
    let visits = 0;
    const all = new Promise<void>((resolve) => {
      void visited((visit) => {
        visits += 1;
        visit.stream({});
        visit.onGone(() => {
          gone += 1;
          if (gone === 20) resolve();
        });
      }).then(async ({ open }) => {
        const caller = await open();
        for (let count = 0; count < 20; count += 1) caller.send(["GET / HTTP/1.1", "Host: localhost"]);
        while (visits < 20) await new Promise(setImmediate);
        caller.destroy();
      });
    });
    await all;
    await new Promise(setImmediate);
    process.off("warning", warn);
    expect(warnings).toEqual([]);
  });
});
