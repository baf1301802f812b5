// Formats of responses that the client accepts: content types with parameters, bodies without a length, interim responses,
// batches, answers on another stream. And formats that it rejects, with the reason.

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
  result: { resultType: "complete", content: [{ type: "text", text: "the result" }], isError: false },
});
const bodyOf = (request: RawRequest): string => JSON.stringify(resultOf(request));
const eventsOf = (request: RawRequest): string => `data: ${bodyOf(request)}\n\n`;

const FORMS: Readonly<Record<string, Fault>> = {
  "with a charset": (request) =>
    request.answer(200, bodyOf(request), { "content-type": "application/json; charset=utf-8" }),
  "with a type in capitals": (request) => request.answer(200, bodyOf(request), { "Content-Type": "Application/JSON" }),
  "as events with a charset": (request) =>
    request.answer(200, eventsOf(request), { "content-type": "text/event-stream;charset=UTF-8" }),
  "as an event without a name": (request) =>
    request.answer(200, eventsOf(request), { "content-type": "text/event-stream" }),
  "as an event over several lines": (request) => {
    const body = JSON.stringify(resultOf(request), undefined, 2);
    const lines = body.split("\n").map((line) => `data: ${line}\n`);
    request.answer(200, `${lines.join("")}\n`, { "content-type": "text/event-stream" });
  },
  "as events with CR line breaks": (request) =>
    request.answer(200, `: hi\r\r${eventsOf(request).replaceAll("\n", "\r")}`, { "content-type": "text/event-stream" }),
  "as events with a BOM and CR LF line breaks": (request) =>
    request.answer(200, `\uFEFF${eventsOf(request).replaceAll("\n", "\r\n")}`, { "content-type": "text/event-stream" }),
  "as JSON with a BOM": (request) =>
    request.answer(200, `\uFEFF${bodyOf(request)}`, { "content-type": "application/json" }),
  "as HTTP/1.0, ended by the end of the connection": (request) => {
    request.write(`HTTP/1.0 200 OK\r\ncontent-type: application/json\r\n\r\n${bodyOf(request)}`);
    request.hangUp();
  },
  "as events that end with the connection": (request) => {
    request.write(
      `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n${eventsOf(request)}`,
    );
    request.hangUp();
  },
  "after interim responses": (request) => {
    request.write("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n");
    request.answer(200, bodyOf(request), { "content-type": "application/json" });
  },
  "in chunks of one character": (request) => {
    request.begin(200, { "content-type": "application/json" });
    for (const character of bodyOf(request)) request.chunk(character);
    request.end();
  },
  "with a connection that is closed after it": (request) => {
    request.answer(200, bodyOf(request), { "content-type": "application/json", connection: "close" });
    request.hangUp();
  },
  "with a header twice": (request) =>
    request.answer(200, bodyOf(request), { "content-type": "application/json", "x-one": "a\r\nx-one: b" }),
  "with status 201": (request) => request.answer(201, bodyOf(request), { "content-type": "application/json" }),
};

describe.each([
  ["stateless", STYLES["stateless"] ?? {}],
  ["sessions", SESSION],
])("a response (%s)", (_, options) => {
  it.each(Object.entries(FORMS))("a response may come %s", async (_form, form) => {
    const { server, client } = await startAndConnect(options);
    server.inject("tools/call", form);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("the result");
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
    expect(server.count("tools/call")).toBe(2);
  });

  it("a response may be a JSON-RPC error with any status", async () => {
    const { server, client } = await startAndConnect(options);
    for (const code of [200, 400, 404, 422, 500, 503]) {
      if (code === 404 && options === SESSION) continue;
      server.inject("tools/call", (request) =>
        request.answer(code, {
          jsonrpc: "2.0",
          id: request.json?.["id"],
          error: { code: -32603, message: `Error: ${code}` },
        }),
      );
      const { error } = await outcome(client.callTool("run", { key: "a" }));
      expect(error, String(code)).toMatchObject({ code: -32603, message: `Error: ${code}` });
    }
    expect(server.backend.runCount("a")).toBe(0);
  });

  it("a response is rejected if it is compressed, and the error names the encoding", async () => {
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
    ["an endless head", (request: RawRequest) => request.write(`HTTP/1.1 200 OK\r\nx-long: ${"x".repeat(100_000)}`)],
    ["an invalid head", (request: RawRequest) => request.write("SSH-2.0-OpenSSH_9.6\r\n\r\n")],
    ["an invalid length", (request: RawRequest) => request.write("HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n{}")],
    [
      "two lengths",
      (request: RawRequest) =>
        request.write("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}"),
    ],
    [
      "an invalid chunk",
      (request: RawRequest) => request.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"),
    ],
  ])("a response with %s is rejected at once", async (_form, form) => {
    const { server, client } = await startAndConnect(options);
    server.inject("tools/call", form);
    const { error } = await outcome(client.callTool("run", { key: "a" }));
    expectHelpful(error);
    expect(error).not.toMatchObject({ kind: "timeout" });
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  });
});

it("the answer to a call in a session may be a batch of one, if the revision has batches", async () => {
  const { server, client } = await startAndConnect(SESSION, {
    revision: REVISIONS.find(({ batches }) => batches)?.name ?? "",
  });
  server.inject("tools/call", (request) => request.answer(200, [resultOf(request)]));
  expect(textOf(await client.callTool("run", { key: "a" }))).toBe("the result");
});

it("the answer to a call in a session may come on the GET stream, after a 202", async () => {
  const { server, client } = await startAndConnect(SESSION);
  await server.untilSubscribed();
  server.inject("tools/call", (request) => {
    request.answer(202);
    const stream = server.requests.find(({ operation }) => operation === "GET");
    stream?.chunk(eventsOf(request));
  });
  expect(textOf(await client.callTool("run", { key: "a" }))).toBe("the result");
});

it("the answer to a call in a session may be an event stream for the handshake too, with or without event ids", async () => {
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

it("the option `headers` adds headers to each request, in each style", async () => {
  for (const options of [STYLES["stateless"] ?? {}, SESSION]) {
    const { server, client } = await startAndConnect(options, {
      headers: { "X-Team": "green", Authorization: "Basic eDp5" },
    });
    await client.callTool("run", { key: "a" });
    await client.close();
    for (const { headers } of server.requests) {
      expect(headers).toMatchObject({ "x-team": "green", authorization: "Basic eDp5" });
    }
  }
});

it("the option `headers` is checked before the first request, and errors do not show the value", async () => {
  const server = await startServer();
  const { error } = await outcome(connectTo(server, { headers: { authorization: "Bearer secret\r\nx: y" } }));
  expect(error).toMatchObject({ mayHaveRun: false });
  expect(String(error?.message) + String(error?.stack)).not.toContain("secret");
  expect(server.requests).toEqual([]);
});
