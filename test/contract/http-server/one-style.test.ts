// Servers with one style or one revision only. Clients of the other style get an error that tells them how to continue
// (2026-07-28, basic/versioning and basic/transports/streamable-http, "Backward Compatibility").

import { expect, it } from "vitest";
import { NEWEST, NEWEST_SESSION, REVISIONS } from "../../../src/protocol/revisions/index.ts";
import { StatelessClient, initialize, SessionClient } from "../../support/http/mcp-clients.ts";
import { startServer, textOf } from "./fixture.ts";

const [OLDEST = NEWEST] = REVISIONS;
const LATEST = NEWEST_SESSION.name;
/** Errors that show a client that the server is stateless. */
const STATELESS_ERRORS = new Set([-32020, -32021, -32022]);

it("stateless only answers a handshake with the supported revisions", async () => {
  const { peer } = await startServer({ revisions: [NEWEST.name] });
  const reply = await peer.post(initialize(LATEST));
  expect(reply.status).toBe(400);
  expect(reply.json).toMatchObject({ id: "init", error: { code: -32022, data: { supported: [NEWEST.name] } } });
  expect(reply.headers["mcp-session-id"]).toBeUndefined();
});

it("stateless only has no GET, no DELETE and no legacy HTTP+SSE", async () => {
  const { peer } = await startServer({ revisions: [NEWEST.name] });
  for (const method of ["GET", "DELETE"]) {
    const reply = await peer.send({ method, headers: { "mcp-session-id": "whatever" } });
    expect([method, reply.status]).toEqual([method, 405]);
  }
  expect((await peer.get({}, "/sse")).status).toBe(404);
});

it("stateless only treats each request as stateless", async () => {
  const { peer } = await startServer({ revisions: [NEWEST.name] });
  expect(await new StatelessClient(peer).request(1, "tools/list")).toMatchObject({ result: {} });
  const bare = await peer.post({ jsonrpc: "2.0", id: 1, method: "tools/list" }, { "mcp-session-id": "x" });
  expect([bare.status, bare.json["error"].code]).toEqual([400, -32602]);
  expect((await peer.post([{ jsonrpc: "2.0", id: 1, method: "tools/list" }])).status).toBe(400);
});

it("sessions only answers a stateless request so that its client falls back to the handshake", async () => {
  const { peer } = await startServer({ revisions: [LATEST] });
  const client = new StatelessClient(peer);
  for (const method of ["server/discover", "tools/list"]) {
    const reply = await client.post(1, method);
    expect([method, reply.status]).toEqual([method, 400]);
    expect([method, STATELESS_ERRORS.has(reply.json["error"]?.code as number)]).toEqual([method, false]);
  }
  const session = await SessionClient.open(peer, LATEST);
  expect(textOf(await session.request("tools/call", { name: "echo", arguments: { text: "x" } }))).toBe("x");
});

it("sessions only offers its only revision", async () => {
  const { peer } = await startServer({ revisions: [OLDEST.name] });
  for (const requested of [LATEST, NEWEST.name, OLDEST.name]) {
    const session = await SessionClient.open(peer, requested);
    expect(session.revision).toBe(OLDEST.name);
  }
  const { session } = await SessionClient.open(peer, OLDEST.name);
  const other = { "mcp-session-id": session, "mcp-protocol-version": LATEST };
  expect((await peer.post({ jsonrpc: "2.0", id: 1, method: "ping" }, other)).status).toBe(400);
});
