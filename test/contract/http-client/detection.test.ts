// How the client detects the style of a server: first stateless, then a session, then legacy HTTP+SSE. A missing token or
// the error page of a proxy says nothing about the style.

import { expect, it } from "vitest";
import { ConnectionError } from "../../../src/client/index.ts";
import { NEWEST, NEWEST_SESSION, REVISIONS } from "../../../src/protocol/revisions/index.ts";
import { hangUp, respondWith, errorResponse, silence, status } from "../../support/faulty-server/faults.ts";
import type { Fault } from "../../support/faulty-server/server.ts";
import {
  expectHelpful,
  connectTo,
  startAndConnect,
  LEGACY_SSE,
  startServer,
  outcome,
  STYLES,
  textOf,
} from "./fixture.ts";

const SESSION = STYLES["sessions"] ?? {};

it("a new server is detected as stateless by the first request", async () => {
  const { server, client } = await startAndConnect({ style: "stateless" });
  expect(client.revision).toBe(NEWEST.name);
  await client.listTools();
  expect(server.operations).toEqual(["server/discover", "tools/list"]);
  const [first] = server.requests;
  expect(first?.headers).toMatchObject({
    "mcp-protocol-version": NEWEST.name,
    "mcp-method": "server/discover",
    "content-type": expect.stringContaining("application/json"),
    accept: expect.stringMatching(/application\/json.*text\/event-stream/),
  });
  expect(first?.headers["mcp-session-id"]).toBeUndefined();
});

it("a new server is used in the stateless style if it has both", async () => {
  const { server, client } = await startAndConnect({ style: "both" });
  expect(client.revision).toBe(NEWEST.name);
  expect(server.operations).toEqual(["server/discover"]);
});

it("a new server is detected as session-style by the handshake", async () => {
  const { server, client } = await startAndConnect(SESSION);
  expect(client.revision).toBe(NEWEST_SESSION.name);
  await server.untilSubscribed();
  expect(server.operations).toEqual(["server/discover", "initialize", "notifications/initialized", "GET"]);
  const [, initialize, initialized, get] = server.requests;
  expect(initialize?.headers["mcp-session-id"]).toBeUndefined();
  for (const request of [initialized, get]) {
    expect(request?.headers).toMatchObject({
      "mcp-session-id": "session-1-of-this-server",
      "mcp-protocol-version": NEWEST_SESSION.name,
    });
  }
  expect(get?.headers["accept"]).toContain("text/event-stream");
});

it("a new server is detected as legacy HTTP+SSE after the other two", async () => {
  const { server, client } = await startAndConnect(LEGACY_SSE);
  await server.until(() => server.count("notifications/initialized") === 1);
  expect(server.operations).toEqual([
    "server/discover",
    "initialize",
    "GET",
    "initialize",
    "notifications/initialized",
  ]);
  expect(REVISIONS.map(({ name }) => name)).toContain(client.revision);
  expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
});

const answers: Record<string, Fault> = {
  "400 and another error": errorResponse(400, { code: -32000, message: "Bad Request: Server not initialized" }),
  "400 and an empty body": (request) => request.answer(400),
  "400 and a page": status(400),
  "404 and a page": status(404),
  "405": status(405),
  "406 and an error": errorResponse(406, { code: -32000, message: "Not Acceptable" }),
  "415": status(415),
  "422 and an error": errorResponse(422, { code: -32000, message: "Unprocessable" }),
  "200 and an unknown method": errorResponse(200, { code: -32601, message: "Method not found" }),
  "200 and bad params": errorResponse(200, { code: -32602, message: "Invalid params" }),
  "400 and an unknown revision": errorResponse(400, {
    code: -32000,
    message: "Bad Request: Unsupported protocol version",
  }),
  "500 and an error": errorResponse(500, { code: -32603, message: "Internal error" }),
};
it.each(Object.entries(answers))(
  "a new server is detected as session-style if the stateless request gets %s",
  async (_, fault) => {
    const server = await startServer(SESSION);
    server.inject("server/discover", fault);
    const client = await connectTo(server);
    expect(client.revision).toBe(NEWEST_SESSION.name);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(server.count("server/discover")).toBe(1);
  },
);

it("a new server may list its revisions, of which the client uses one", async () => {
  const supported = [NEWEST_SESSION.name];
  const server = await startServer(SESSION);
  server.inject("server/discover", errorResponse(400, { code: -32022, message: "Unsupported", data: { supported } }));
  expect((await connectTo(server)).revision).toBe(NEWEST_SESSION.name);
});

it("a new server is rejected if it supports none of our revisions", async () => {
  const server = await startServer({ style: "stateless" });
  const error = { code: -32022, message: "Unsupported", data: { supported: ["2031-01-01"], requested: NEWEST.name } };
  server.inject("*", errorResponse(400, error), 20);
  const { error: failure } = await outcome(connectTo(server));
  expect(failure).toMatchObject({ kind: "protocol", message: expect.stringContaining("2031-01-01") });
  expect(server.operations).not.toContain("GET");
});

it("a new server is rejected if the address answers 404 to everything", async () => {
  const server = await startServer();
  server.inject("*", status(404), 20);
  const { error } = await outcome(connectTo(server));
  expectHelpful(error);
  expect(error).toMatchObject({ kind: "http", status: 404 });
  expect(error?.message).toMatch(/address|path|endpoint/);
  expect(server.operations).toEqual(["server/discover", "initialize", "GET"]);
});

it("a new server is rejected if the address answers everything with a web page", async () => {
  const server = await startServer();
  server.inject("*", respondWith("<html>Welcome</html>", { "content-type": "text/html" }), 20);
  const { error } = await outcome(connectTo(server));
  expectHelpful(error);
  expect(error).toMatchObject({ kind: "http" });
  expect(error?.message).toContain("text/html");
});

it.each([502, 503, 504])("a new server is not taken for an older one while a proxy answers %i", async (code) => {
  const server = await startServer({ style: "stateless" });
  server.inject("*", status(code), 20);
  const { error } = await outcome(connectTo(server));
  expectHelpful(error);
  expect(error).toMatchObject({ kind: "http", status: code });
  server.clearFaults();
  const client = await connectTo(server);
  expect(client.revision).toBe(NEWEST.name);
});

it.each([502, 503, 504])("a new server is not taken for an older one after a single %i", async (code) => {
  const server = await startServer({ style: "both" });
  server.inject("server/discover", status(code));
  const { error, value } = await outcome(connectTo(server));
  if (error === undefined) expect(value?.revision).toBe(NEWEST.name);
  else expect(error).toMatchObject({ kind: "http", status: code });
  expect((await connectTo(server)).revision).toBe(NEWEST.name);
});

it("a new server is reported as refused if it is not running", async () => {
  const server = await startServer();
  await server.server.stop();
  const { error } = await outcome(connectTo(server));
  expectHelpful(error);
  expect(error).toMatchObject({ kind: "refused", mayHaveRun: false });
});

it("a new server is reported as closed if it closes every connection", async () => {
  const server = await startServer();
  server.inject("*", hangUp, 50);
  const { error } = await outcome(connectTo(server));
  expectHelpful(error);
  expect(error).toMatchObject({ kind: "closed" });
});

it("a new server times out after startTimeoutMs if it never answers", async () => {
  const server = await startServer();
  server.inject("*", silence, 50);
  const { error } = await outcome(connectTo(server, { startTimeoutMs: 200 }));
  expectHelpful(error);
  expect(error).toMatchObject({ kind: "timeout", message: expect.stringContaining("startTimeoutMs") });
});

it("a new server can be aborted while it does not answer", async () => {
  const server = await startServer();
  server.inject("*", silence, 50);
  const stop = new AbortController();
  const { error: failure, ...rest } = await outcome(
    Promise.all([
      connectTo(server, { signal: stop.signal }),
      server.until(() => server.requests.length > 0).then(() => stop.abort()),
    ]),
  );
  expect(rest).toEqual({});
  expect(failure).toMatchObject({ kind: "cancelled" });
});

it.each([401, 403])("an authorization error: %i says nothing about the style: nothing else is tried", async (code) => {
  for (const options of [{ style: "stateless" as const }, SESSION, LEGACY_SSE]) {
    const server = await startServer(options);
    server.inject("*", status(code, { "www-authenticate": "Bearer" }), 20);
    const { error } = await outcome(connectTo(server));
    expectHelpful(error);
    expect(error).toMatchObject({ kind: "unauthorized", mayHaveRun: false, status: code });
    expect(server.operations).toEqual(["server/discover"]);
    server.clearFaults();
    const client = await connectTo(server);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
  }
});

it("an authorization error during a connection fails only its call", async () => {
  for (const options of [{ style: "stateless" as const }, SESSION]) {
    const { server, client } = await startAndConnect(options);
    server.inject("tools/call", status(401));
    const { error } = await outcome(client.callTool("run", { key: "a" }));
    expect(error).toMatchObject({ kind: "unauthorized", mayHaveRun: false });
    expect(server.backend.runCount("a")).toBe(0);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
  }
});

it.each(REVISIONS.filter(({ style }) => style === "session").map(({ name }) => name))(
  "the option `revision`: %s is used without a probe, also over legacy HTTP+SSE",
  async (revision) => {
    const { server, client } = await startAndConnect(SESSION, { revision });
    expect(client.revision).toBe(revision);
    expect(server.operations[0]).toBe("initialize");
    const legacy = await startAndConnect(LEGACY_SSE, { revision });
    expect(legacy.client.revision).toBe(revision);
    expect(legacy.server.operations).not.toContain("server/discover");
    expect(textOf(await legacy.client.callTool("run", { key: "a" }))).toBe("ran a");
  },
);

it("the option `revision` fails if it is stateless and the server is session-style", async () => {
  const server = await startServer(SESSION);
  const { error } = await outcome(connectTo(server, { revision: NEWEST.name }));
  expect(error).toBeInstanceOf(ConnectionError);
  expect(error?.message).toContain(NEWEST.name);
  expect(server.operations).toEqual(["server/discover"]);
});
