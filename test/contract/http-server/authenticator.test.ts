// Faults that only a second look found: requests that are over before they began, retries by a lesser token, bodies
// that somebody else had begun to read as text, streams that open after the end.

import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { fetchHandler, nodeHandler } from "../../../src/http.ts";
import { createServer } from "../../../src/server/index.ts";
import { StatelessClient } from "../../support/http/mcp-clients.ts";
import { HttpPeer } from "../../support/http/http-peer.ts";
import { closeAfterTest, startServer } from "./fixture.ts";

const asks = createServer({ name: "s", version: "1" })
  .tool("echo", { inputSchema: { type: "object", properties: { constructor: { type: "string" } } } }, () => "heard")
  .tool("ask", { scopes: ["w"] }, async (_args, { ask }) => {
    const { action } = await ask.elicit({ message: "?", requestedSchema: { type: "object", properties: {} } });
    return action;
  });

it("a body that is being read as text is read all the same", async () => {
  const handler = nodeHandler(asks);
  const http = createHttpServer((request, response) => {
    request.setEncoding("utf8");
    handler(request, response);
  }).listen(0, "127.0.0.1");
  closeAfterTest({ close: () => new Promise((resolve) => http.close(resolve)) });
  await new Promise((resolve) => http.once("listening", resolve));
  const peer = closeAfterTest(new HttpPeer(`http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`));
  const client = new StatelessClient(peer);
  const answer = await client.request(1, "tools/call", { name: "echo", arguments: {} });
  expect(JSON.stringify(answer)).toContain("heard");
});

describe("a Request that was given up", () => {
  const made = (signal: AbortSignal): Request => {
    const { body, headers } = new StatelessClient(new HttpPeer("http://localhost/mcp")).build(1, "tools/list");
    const all = { "content-type": "application/json", ...(headers as Record<string, string>) };
    return new Request("http://localhost/mcp", { method: "POST", body: JSON.stringify(body), headers: all, signal });
  };

  it("before it came is settled all the same", async () => {
    expect((await fetchHandler(asks)(made(AbortSignal.abort()))).status).toBeGreaterThanOrEqual(400);
  });

  it("while its caller was being asked who it is", async () => {
    const given = new AbortController();
    const auth = {
      authenticate: async () => {
        given.abort();
        return { principal: "ada" };
      },
    };
    expect((await fetchHandler(asks, { auth })(made(given.signal))).status).toBeGreaterThanOrEqual(400);
  });
});

it("a retry goes on with a call only by what its beginner was allowed", async () => {
  const auth = {
    authenticate: async ({ headers }: { headers: Readonly<Record<string, string | undefined>> }) => ({
      principal: "ada",
      scopes: (headers["authorization"] ?? "").split(" ").slice(1),
    }),
  };
  const { peer } = await startServer({ http: { auth } }, asks);
  const client = (scopes: string): StatelessClient =>
    new StatelessClient(peer, { capabilities: { elicitation: {} }, headers: { authorization: `Bearer ${scopes}` } });
  const call = { name: "ask", arguments: {} };
  const { result } = await client("r w").request(1, "tools/call", call);
  expect(result.resultType).toBe("input_required");
  const { requestState, inputRequests } = result;
  const inputResponses = Object.fromEntries(Object.keys(inputRequests).map((key) => [key, { action: "decline" }]));
  const retry = { ...call, requestState, inputResponses };
  const thin = await client("r").post(2, "tools/call", retry);
  expect([thin.status, thin.json["error"].data.requiredScopes]).toEqual([403, ["w"]]);
  expect(JSON.stringify(await client("w r").request(3, "tools/call", retry))).toContain("decline");
});

it("the old transport does not open after the end has begun", async () => {
  let admit: () => void = () => undefined;
  const asked = new Promise<void>((resolve) => {
    admit = resolve;
  });
  let seen: () => void = () => undefined;
  const arrived = new Promise<void>((resolve) => {
    seen = resolve;
  });
  const auth = {
    authenticate: async () => {
      seen();
      await asked;
      return { principal: "ada" };
    },
  };
  const handler = fetchHandler(asks, { auth });
  const response = handler(new Request("http://localhost/sse"));
  await arrived;
  await handler.close();
  admit();
  expect((await response).status).toBe(503);
});
