// The client remembers the style of a server: the next connection uses it at once. A style that has changed is detected
// again, and a failed detection is not remembered.

import { expect, it } from "vitest";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { status } from "../../support/faulty-server/faults.ts";
import { connectTo, LEGACY_SSE, startServer, outcome, STYLES, textOf } from "./fixture.ts";

const SESSION = STYLES["sessions"] ?? {};

it("a known server that is stateless gets one request, as the first time", async () => {
  const server = await startServer({ style: "stateless" });
  await connectTo(server);
  await connectTo(server);
  expect(server.operations).toEqual(["server/discover", "server/discover"]);
});

it("a known server that is session-style gets the handshake at once", async () => {
  const server = await startServer(SESSION);
  await connectTo(server);
  await server.untilSubscribed();
  const before = server.requests.length;
  const client = await connectTo(server);
  await server.until(() => server.count("GET") === 2);
  expect(server.operations.slice(before)).toEqual(["initialize", "notifications/initialized", "GET"]);
  expect(client.revision).toBe(NEWEST_SESSION.name);
});

it("a known server with legacy HTTP+SSE gets the GET at once", async () => {
  const server = await startServer(LEGACY_SSE);
  await connectTo(server);
  await server.until(() => server.count("notifications/initialized") === 1);
  const before = server.requests.length;
  const client = await connectTo(server);
  await server.until(() => server.count("notifications/initialized") === 2);
  expect(server.operations.slice(before)).toEqual(["GET", "initialize", "notifications/initialized"]);
  expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
});

it.each([
  ["sessions", "stateless", NEWEST.name],
  ["stateless", "session", NEWEST_SESSION.name],
  ["stateless", "legacy-sse", undefined],
  ["sessions", "legacy-sse", undefined],
] as const)("a known server is detected again if it changes from %s to %s", async (was, is, revision) => {
  const server = await startServer(STYLES[was] ?? {});
  const first = await connectTo(server);
  await first.close();
  await server.restart(is);
  const client = await connectTo(server);
  if (revision !== undefined) expect(client.revision).toBe(revision);
  expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
  expect(server.backend.runCount("a")).toBe(1);
});

it("a known server is detected again if it changes from legacy HTTP+SSE to stateless", async () => {
  const server = await startServer(LEGACY_SSE);
  await (await connectTo(server)).close();
  await server.restart("stateless");
  const client = await connectTo(server);
  expect(client.revision).toBe(NEWEST.name);
});

it("a known server is not remembered from errors of a proxy", async () => {
  const server = await startServer({ style: "stateless" });
  server.inject("*", status(503), 20);
  await outcome(connectTo(server));
  server.clearFaults();
  const client = await connectTo(server);
  expect(client.revision).toBe(NEWEST.name);
  expect(server.operations.at(-1)).toBe("server/discover");
});
