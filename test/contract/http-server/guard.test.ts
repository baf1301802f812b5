// The checks of Host and Origin, which come before the message, at each path and for each method. They stop web pages that
// reach a loopback address by DNS rebinding or by requests without a CORS preflight.

import { expect, it } from "vitest";
import { NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { initialize, LegacySseClient, SessionClient } from "../../support/http/mcp-clients.ts";
import { startServer } from "./fixture.ts";

const INITIALIZE = initialize(NEWEST_SESSION.name);

/** PORT is replaced by the port of the server. */
const HOSTS: readonly (readonly [string, boolean])[] = [
  ["127.0.0.1:PORT", true],
  ["localhost:PORT", true],
  ["[::1]:PORT", true],
  ["evil.example.com", false],
  ["evil.example.com:PORT", false],
  ["localhost.evil.example.com:PORT", false],
  ["127.0.0.1.nip.io:PORT", false],
  ["evil-localhost:PORT", false],
  ["localhostx:PORT", false],
  ["localhost@evil.example.com:PORT", false],
  ["127.0.0.1:PORT@evil.example.com", false],
  ["evil.example.com/127.0.0.1", false],
  ["evil.example.com#localhost", false],
  ["localhost:PORT:PORT", false],
  ["localhost:port", false],
  ["127.0.0.1.:PORTx", false],
  ["0.0.0.0:PORT", false],
  ["[::]:PORT", false],
  ["169.254.169.254:PORT", false],
  ["10.0.0.1:PORT", false],
  ["[::ffff:10.0.0.1]:PORT", false],
  ["localhost, evil.example.com", false],
  ["", false],
];

const ORIGINS: readonly (readonly [string, boolean])[] = [
  ["http://127.0.0.1:PORT", true],
  ["http://localhost:PORT", true],
  ["http://evil.example.com", false],
  ["http://evil.example.com:PORT", false],
  ["https://evil.example.com", false],
  ["http://localhost.evil.example.com:PORT", false],
  ["http://localhost:PORT@evil.example.com", false],
  ["http://localhost@evil.example.com:PORT", false],
  ["http://evil.example.com/http://localhost:PORT", false],
  ["http://evil.example.com#localhost", false],
  ["http://127.0.0.1.nip.io:PORT", false],
  ["http://0.0.0.0:PORT", false],
  ["null", false],
  ["", false],
  ["file://", false],
  ["chrome-extension://abcdef", false],
  ["localhost", false],
  ["ws://localhost:PORT", false],
  ["http://localhost:PORT http://evil.example.com", false],
  ["http://localhost:PORT, http://evil.example.com", false],
];

it.each(HOSTS)("Host and Origin: Host %j: %s", async (text, allowed) => {
  const { peer } = await startServer();
  const host = text.replaceAll("PORT", peer.url.port);
  const lines = ["POST /mcp HTTP/1.1", `Host: ${host}`, "Content-Type: application/json", "Connection: close"];
  const body = JSON.stringify(INITIALIZE);
  const answer = await peer.raw(`${lines.join("\r\n")}\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  const [, status] = /^HTTP\/1\.1 (\d+)/.exec(answer) ?? [];
  if (allowed) expect(status).toBe("200");
  else expect(status).toMatch(/^40[03]$/);
  if (!allowed) expect(answer).not.toMatch(/mcp-session-id/i);
});

it.each(ORIGINS)("Host and Origin: Origin %j: %s", async (text, allowed) => {
  const { peer } = await startServer();
  const origin = text.replaceAll("PORT", peer.url.port);
  const reply = await peer.post(INITIALIZE, { origin });
  expect(reply.status).toBe(allowed ? 200 : 403);
  if (allowed) expect(reply.headers["access-control-allow-origin"]).toBe(origin);
  else expect(reply.headers["access-control-allow-origin"]).toBeUndefined();
});

it("Host and Origin are checked at every path and for every method", async () => {
  const { peer } = await startServer();
  const legacy = await LegacySseClient.open(peer);
  const { session } = await SessionClient.open(peer, NEWEST_SESSION.name);
  const requests = [
    { method: "POST", path: "/mcp", body: INITIALIZE },
    { method: "GET", path: "/mcp" },
    { method: "DELETE", path: "/mcp" },
    { method: "OPTIONS", path: "/mcp" },
    { method: "GET", path: "/sse" },
    { method: "GET", path: "/mcp/sse" },
    { method: "POST", path: legacy.endpoint, body: INITIALIZE },
  ];
  for (const hostile of [{ origin: "http://evil.example.com" }, { host: "evil.example.com" }]) {
    for (const request of requests) {
      const reply = await peer.send({ ...request, headers: { ...hostile, "mcp-session-id": session } });
      expect([request.method, request.path, reply.status]).toEqual([request.method, request.path, 403]);
    }
  }
  expect((await peer.get({ "mcp-session-id": session })).status).toBe(200);
});

it("Host and Origin refuse pages of other sites, even without an Origin header", async () => {
  const { peer } = await startServer();
  expect((await peer.post(INITIALIZE, { "sec-fetch-site": "cross-site" })).status).toBe(403);
  expect((await peer.post(INITIALIZE, { "sec-fetch-site": "same-origin" })).status).toBe(200);
});

it("Host and Origin can be extended by name", async () => {
  const { peer } = await startServer({
    http: { allowedHosts: ["mcp.example.com"], allowedOrigins: ["https://app.example.com"] },
  });
  expect((await peer.post(INITIALIZE, { host: "mcp.example.com" })).status).toBe(200);
  expect((await peer.post(INITIALIZE, { origin: "https://app.example.com" })).status).toBe(200);
  expect((await peer.post(INITIALIZE, { origin: "http://app.example.com" })).status).toBe(403);
  expect((await peer.post(INITIALIZE, { host: "x.mcp.example.com" })).status).toBe(403);
  expect((await peer.post(INITIALIZE)).status).toBe(200);
});

it("Host and Origin answer CORS preflight requests of an allowed page", async () => {
  const { peer } = await startServer();
  const origin = `http://localhost:${peer.url.port}`;
  const preflight = {
    origin,
    "access-control-request-method": "POST",
    "access-control-request-headers": "mcp-session-id",
  };
  const reply = await peer.send({ method: "OPTIONS", headers: preflight });
  expect([200, 204]).toContain(reply.status);
  expect(reply.headers["access-control-allow-origin"]).toBe(origin);
  expect(reply.headers["vary"]?.toLowerCase()).toContain("origin");
  expect(reply.headers["access-control-allow-methods"]).toMatch(/POST/);
  const allowed = reply.headers["access-control-allow-headers"]?.toLowerCase() ?? "";
  for (const name of ["content-type", "mcp-session-id", "mcp-protocol-version", "last-event-id", "authorization"]) {
    expect(allowed).toContain(name);
  }
  const answer = await peer.post(INITIALIZE, { origin });
  expect(answer.headers["access-control-expose-headers"]?.toLowerCase()).toContain("mcp-session-id");
  const denied = await peer.send({ method: "OPTIONS", headers: { ...preflight, origin: "http://evil.example.com" } });
  expect(denied.status).toBe(403);
});
