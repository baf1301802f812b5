// Authenticators of users: which methods they need, how their failures are handled, and that invalid return values never
// reach a client. The checks of identities are in identity.test.ts.

import { describe, expect, it, vi } from "vitest";
import { AuthError, type Authenticator } from "../../../src/core/authentication.ts";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { createServer } from "../../../src/server/index.ts";
import { SessionClient, StatelessClient } from "../../support/http/mcp-clients.ts";
import { startServer } from "./fixture.ts";

const LATEST = NEWEST_SESSION.name;

const scoped = createServer({ name: "s", version: "1" }).tool("t", { scopes: ["w"] }, () => "done");
const identity = { principal: "ada", scopes: [] };

it("an authenticator needs only authenticate()", async () => {
  const { peer } = await startServer({ http: { auth: { authenticate: async () => identity } } }, scoped);
  const client = await SessionClient.open(peer, LATEST);
  const reply = await client.call(1, "t");
  expect([reply.status, reply.headers["www-authenticate"]]).toEqual([403, 'Bearer error="insufficient_scope"']);
  expect((await peer.get({}, "/.well-known/oauth-protected-resource")).status).toBe(404);
});

it("an authenticator that throws in other methods still denies access", async () => {
  const fails = (): never => {
    throw new Error("broken");
  };
  const auth: Authenticator = { authenticate: async () => identity, insufficientScope: fails, document: fails };
  const { peer } = await startServer({ http: { auth } }, scoped);
  const client = await SessionClient.open(peer, LATEST);
  expect((await client.call(1, "t")).status).toBe(403);
  expect((await peer.get({}, "/.well-known/oauth-protected-resource")).status).toBe(404);
});

it("an authenticator that fails is reported to onError, and clients do not see the reason", async () => {
  const onError = vi.fn();
  const auth = { authenticate: () => Promise.reject(new Error("the database of secrets is down")) };
  const { peer } = await startServer({ http: { auth, onError } }, scoped);
  const reply = await peer.post({ jsonrpc: "2.0", id: 7, method: "ping" });
  expect([reply.status, reply.headers["retry-after"]]).toEqual([503, "5"]);
  expect(reply.text).not.toContain("secrets");
  expect(onError.mock.calls).toEqual([[new Error("the database of secrets is down"), expect.any(String)]]);
});

it("a caller that is refused gets the code of the compat, unless it is stateless", async () => {
  const auth = { authenticate: () => Promise.reject(new AuthError(401, "no", "Bearer")) };
  const { peer } = await startServer(
    { compat: "reference", http: { auth } },
    createServer({ name: "s", version: "1" }),
  );
  const ping = { jsonrpc: "2.0", id: 7, method: "ping" };
  const session = await peer.post(ping);
  expect([session.status, session.json]).toMatchObject([
    401,
    { error: { code: -32003, message: "Unauthorized", data: { details: "no" } } },
  ]);
  const stateless = await peer.post(ping, { "mcp-protocol-version": NEWEST.name });
  expect([stateless.status, stateless.json]).toMatchObject([401, { error: { code: -32600 } }]);
});

describe("an authenticator that misbehaves", () => {
  const scoped = createServer({ name: "s", version: "1" }).tool("t", { scopes: ["files:read"] }, () => "done");
  const rejecting = (challenge: unknown, status: unknown = 401): Authenticator => ({
    authenticate: () => Promise.reject(new AuthError(status as 401, "no", challenge as string)),
  });

  it.each([["naïve ✓"], ["a\r\nX-Evil: 1"], [undefined], [7], [""]])(
    "an authenticator that misbehaves cannot send the invalid challenge %j",
    async (challenge) => {
      const { peer } = await startServer({ http: { auth: rejecting(challenge) } }, scoped);
      const reply = await peer.post({ jsonrpc: "2.0", id: 1, method: "ping" });
      expect([reply.status, reply.headers["www-authenticate"], reply.headers["x-evil"]]).toEqual([
        401,
        "Bearer",
        undefined,
      ]);
    },
  );

  it("an authenticator that misbehaves cannot send an invalid status", async () => {
    const { peer } = await startServer({ http: { auth: rejecting("Bearer", 1e9) } }, scoped);
    expect((await peer.post({ jsonrpc: "2.0", id: 1, method: "ping" })).status).toBe(401);
  });

  it("an authenticator that misbehaves cannot return scopes as one string, whose parts would match", async () => {
    const onError = vi.fn();
    const identity = { principal: "ada", scopes: "files:readonly other" as unknown as string[] };
    const { peer } = await startServer({ http: { auth: { authenticate: async () => identity }, onError } }, scoped);
    const reply = await peer.post({ jsonrpc: "2.0", id: 1, method: "ping" });
    expect([reply.status, onError.mock.calls.length]).toEqual([503, 1]);
  });

  it("an authenticator that misbehaves may return a document that is not JSON, and onError may throw", async () => {
    const onError = (): never => {
      throw new Error("onError failed");
    };
    const auth = { authenticate: () => Promise.reject(new Error("down")), document: () => ({ n: 1n }) };
    const { peer } = await startServer({ http: { auth, onError } }, scoped);
    expect((await peer.get({}, "/.well-known/oauth-protected-resource")).status).toBe(404);
    expect((await peer.post({ jsonrpc: "2.0", id: 1, method: "ping" })).status).toBe(503);
  });
});

it("a retry needs the scopes of the tool too", async () => {
  const auth = {
    authenticate: async ({ headers }: { headers: Readonly<Record<string, string | undefined>> }) => ({
      principal: "ada",
      scopes: (headers["authorization"] ?? "").split(" ").slice(1),
    }),
  };
  const server = createServer({ name: "s", version: "1" }).tool("ask", { scopes: ["w"] }, async (_args, { ask }) => {
    const { action } = await ask.elicit({ message: "?", requestedSchema: { type: "object", properties: {} } });
    return action;
  });
  const { peer } = await startServer({ http: { auth } }, server);
  const client = (scopes: string): StatelessClient =>
    new StatelessClient(peer, { capabilities: { elicitation: {} }, headers: { authorization: `Bearer ${scopes}` } });
  const call = { name: "ask", arguments: {} };
  const { result } = await client("r w").request(1, "tools/call", call);
  expect(result.resultType).toBe("input_required");
  const { requestState, inputRequests } = result;
  const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, { action: "decline" }]));
  const retry = { ...call, requestState, inputResponses };
  const refused = await client("r").post(2, "tools/call", retry);
  expect([refused.status, refused.json["error"].data.requiredScopes]).toEqual([403, ["w"]]);
  expect(JSON.stringify(await client("w r").request(3, "tools/call", retry))).toContain("decline");
});
