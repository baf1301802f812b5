// A preferred style of a server over HTTP: what the client tries first, what it uses if the server has only the other
// style, and that the result for one preference is not used for the other.

import { afterEach, expect, it } from "vitest";
import { openTarget } from "../../../src/client/connect.ts";
import type { Context } from "../../../src/core/handler.ts";
import type { ServerConnection, ServerConnectionOptions } from "../../../src/dialogue/connect.ts";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { status } from "../../support/faulty-server/faults.ts";
import type { FaultyServer } from "../../support/faulty-server/server.ts";
import { fakeCaller } from "../../support/handlers/fake-client.ts";
import { LEGACY_SSE, startServer, outcome, STYLES } from "./fixture.ts";

const context: Context = {
  revision: NEWEST.name,
  caller: fakeCaller(),
  signal: new AbortController().signal,
  notify: () => undefined,
  ask: () => Promise.reject(new Error("No client to ask")),
};

const connections: ServerConnection[] = [];
afterEach(async () => {
  for (const connection of connections.splice(0)) await connection.close();
});

async function openWith(server: FaultyServer, style?: ServerConnectionOptions["style"]): Promise<ServerConnection> {
  const how: ServerConnectionOptions = {
    info: { name: "us", version: "1" },
    capabilities: {},
    defaultContext: context,
  };
  const { opened: one } = await openTarget(server.url, {}, style === undefined ? how : { ...how, style });
  connections.push(one);
  return one;
}

it("with a preferred session, a server with both styles gets only a handshake", async () => {
  const server = await startServer({ style: "both" });
  expect(await openWith(server, "session")).toMatchObject({ revision: NEWEST_SESSION, attributesRequests: true });
  expect(server.operations[0]).toBe("initialize");
  expect(server.operations).not.toContain("server/discover");
  expect(await openWith(server)).toMatchObject({ revision: NEWEST, attributesRequests: true });
  expect(await openWith(server, "session")).toMatchObject({ revision: NEWEST_SESSION });
  expect(server.count("server/discover")).toBe(1);
});

it("with a preferred session, a server with the stateless style only is used stateless, the next time at once", async () => {
  const server = await startServer({ style: "stateless" });
  expect(await openWith(server, "session")).toMatchObject({ revision: NEWEST });
  expect(server.operations).toEqual(["initialize", "server/discover"]);
  await openWith(server, "session");
  expect(server.operations).toEqual(["initialize", "server/discover", "server/discover"]);
});

it("with a preferred session, a server with legacy HTTP+SSE is detected, and does not attribute its requests", async () => {
  const server = await startServer(LEGACY_SSE);
  expect(await openWith(server, "session")).toMatchObject({ attributesRequests: false });
  expect(server.operations.slice(0, 3)).toEqual(["initialize", "server/discover", "GET"]);
});

it("with a preferred session, a server is detected again after a restart in the other style", async () => {
  const server = await startServer(STYLES["sessions"] ?? {});
  await (await openWith(server, "session")).close();
  await server.restart("stateless");
  expect(await openWith(server, "session")).toMatchObject({ revision: NEWEST });
});

it("with a preferred session, a server with an authorization error gets no other request", async () => {
  const server = await startServer({ style: "both" });
  server.inject("*", status(401), 20);
  expect((await outcome(openWith(server, "session"))).error).toMatchObject({ kind: "unauthorized" });
  expect(server.operations).toEqual(["initialize"]);
});
