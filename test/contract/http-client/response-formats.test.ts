// The many forms in which an answer may come over HTTP and still be one: types with parameters, bodies without a length,
// interim heads, batches, answers by another stream; and forms that are refused with a word on why.

import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { REVISIONS } from "../../../src/protocol/revisions/index.ts";
import type { Fault } from "../../support/faulty-server/server.ts";
import type { Json, RawRequest } from "../../support/http/raw-server.ts";
import { expectHelpful, connectTo, startAndConnect, startServer, outcome, STYLES, textOf } from "./fixture.ts";

const SESSION = STYLES["sessions"] ?? {};

const resultOf = (request: RawRequest): Json => ({
  jsonrpc: "2.0",
  id: request.json?.["id"],
  result: { resultType: "complete", content: [{ type: "text", text: "it came" }], isError: false },
});
const bodyOf = (request: RawRequest): string => JSON.stringify(resultOf(request));
const eventsOf = (request: RawRequest): string => `data: ${bodyOf(request)}\n\n`;

const FORMS: Readonly<Record<string, Fault>> = {
  "with a charset": (request) => request.answer(200, bodyOf(request), { "content-type": "application/json; charset=utf-8" }),
  "with a type in capitals": (request) => request.answer(200, bodyOf(request), { "Content-Type": "Application/JSON" }),
  "as events with a charset": (request) =>
    request.answer(200, eventsOf(request), { "content-type": "text/event-stream;charset=UTF-8" }),
  "as an event without a name": (request) => request.answer(200, eventsOf(request), { "content-type": "text/event-stream" }),
  "as an event over several lines": (request) => {
    const body = JSON.stringify(resultOf(request), undefined, 2);
    const lines = body.split("\n").map((line) => `data: ${line}\n`);
    request.answer(200, `${lines.join("")}\n`, { "content-type": "text/event-stream" });
  },
  "as events with the ends of lines of another age": (request) =>
    request.answer(200, `: hi\r\r${eventsOf(request).replaceAll("\n", "\r")}`, { "content-type": "text/event-stream" }),
  "as events with a mark before them": (request) =>
    request.answer(200, `\uFEFF${eventsOf(request).replaceAll("\n", "\r\n")}`, { "content-type": "text/event-stream" }),
  "as JSON with a mark before it": (request) =>
    request.answer(200, `\uFEFF${bodyOf(request)}`, { "content-type": "application/json" }),
  "with a head of an older HTTP, and an end that is that of the connection": (request) => {
    request.write(`HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n${bodyOf(request)}`);
    request.hangUp();
  },
  "as events that end with the connection": (request) => {
    request.write(`HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n${eventsOf(request)}`);
    request.hangUp();
  },
  "after interim heads": (request) => {
    request.write("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n");
    request.answer(200, bodyOf(request), { "content-type": "application/json" });
  },
  "in chunks of one byte": (request) => {
    request.begin(200, { "content-type": "application/json" });
    for (const letter of bodyOf(request)) request.chunk(letter);
    request.end();
  },
  "and the connection is closed after it": (request) => {
    request.answer(200, bodyOf(request), { "content-type": "application/json", connection: "close" });
    request.hangUp();
  },
  "with headers that are there twice": (request) =>
    request.answer(200, bodyOf(request), { "content-type": "application/json", "x-one": "a\r\nx-one: b" }),
  "as 201": (request) => request.answer(201, bodyOf(request), { "content-type": "application/json" }),
};

describe.each([
  ["exchanges", STYLES["exchanges"] ?? {}],
  ["sessions", SESSION],
])("an answer in %s", (_, options) => {
  it.each(Object.entries(FORMS))("may come %s", async (_form, form) => {
    const { server, client } = await startAndConnect(options);
    server.inject("tools/call", form);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("it came");
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
    expect(server.count("tools/call")).toBe(2);
  });

  it("may come with any status of its own, if it is an error of the protocol", async () => {
    const { server, client } = await startAndConnect(options);
    for (const code of [200, 400, 404, 422, 500, 503]) {
      if (code === 404 && options === SESSION) continue;
      server.inject("tools/call", (request) =>
        request.answer(code, { jsonrpc: "2.0", id: request.json?.["id"], error: { code: -32603, message: `No: ${code}` } }),
      );
      const { error } = await outcome(client.callTool("run", { key: "a" }));
      expect(error, String(code)).toMatchObject({ code: -32603, message: `No: ${code}` });
    }
    expect(server.backend.runCount("a")).toBe(0);
  });

  it("that is compressed though nobody asked for it is refused, and named", async () => {
    const { server, client } = await startAndConnect(options);
    server.inject("tools/call", (request) => {
      const body = gzipSync(bodyOf(request)).toString("latin1");
      request.answer(200, body, { "content-type": "application/json", "content-encoding": "gzip" });
    });
    const { error } = await outcome(client.callTool("run", { key: "a" }));
    expectHelpful(error);
    expect(error?.message).toContain("gzip");
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });

  it.each([
    ["a head that has no end", (request: RawRequest) => request.write(`HTTP/1.1 200 OK\r\nx-long: ${"x".repeat(100_000)}`)],
    ["a head that is none", (request: RawRequest) => request.write("SSH-2.0-OpenSSH_9.6\r\n\r\n")],
    ["a length that is none", (request: RawRequest) => request.write("HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n{}")],
    [
      "two lengths",
      (request: RawRequest) => request.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}"),
    ],
    [
      "a chunk that is none",
      (request: RawRequest) => request.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
    ],
  ])("with %s is no HTTP, and that is said", async (_form, form) => {
    const { server, client } = await startAndConnect(options);
    server.inject("tools/call", form);
    const { error } = await outcome(client.callTool("run", { key: "a" }, { timeoutMs: 5_000 }));
    expectHelpful(error);
    expect(error).not.toMatchObject({ kind: "timeout" });
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });
});

describe("an answer to a call in a session", () => {
  it("may be an array of one, where the revision has such", async () => {
    const { server, client } = await startAndConnect(SESSION, { revision: REVISIONS.find(({ batches }) => batches)?.name ?? "" });
    server.inject("tools/call", (request) => request.answer(200, [resultOf(request)]));
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("it came");
  });

  it("may come by the stream that belongs to no call, after a bare 202", async () => {
    const { server, client } = await startAndConnect(SESSION);
    await server.untilSubscribed();
    server.inject("tools/call", (request) => {
      request.answer(202);
      const stream = server.requests.find(({ operation }) => operation === "GET");
      stream?.chunk(eventsOf(request));
    });
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("it came");
  });

  it("to the handshake may come as a stream, with or without ids", async () => {
    for (const id of ["", "id: 1\n"]) {
      const server = await startServer(SESSION);
      server.inject("initialize", (request, serve) => {
        const { answer } = request;
        request.answer = (_status, body, headers) => {
          request.begin(200, { ...headers, "content-type": "text/event-stream" });
          request.chunk(`${id}data: ${JSON.stringify(body)}\n\n`);
          request.end();
          request.answer = answer;
        };
        return serve();
      });
      const client = await connectTo(server);
      expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    }
  });
});

describe("headers of a program's own", () => {
  it("go with every request, in every style", async () => {
    for (const options of [STYLES["exchanges"] ?? {}, SESSION]) {
      const { server, client } = await startAndConnect(options, { headers: { "X-Team": "green", Authorization: "Basic eDp5" } });
      await client.callTool("run", { key: "a" });
      await client.close();
      for (const { headers } of server.requests) {
        expect(headers).toMatchObject({ "x-team": "green", authorization: "Basic eDp5" });
      }
    }
  });

  it("that no header can be are refused before anything is sent, and their value is not shown", async () => {
    const server = await startServer();
    const { error } = await outcome(connectTo(server, { headers: { authorization: "Bearer secret\r\nx: y" } }));
    expect(error).toMatchObject({ mayHaveRun: false });
    expect(String(error?.message) + String(error?.stack)).not.toContain("secret");
    expect(server.requests).toEqual([]);
  });
});
