// A server over HTTP that speaks as another document: the handshake and an error of session-style callers, from the first
// request on, and over the legacy transport.

import { describe, expect, it } from "vitest";
import { fetchHandler } from "../../../src/http.ts";
import { createServer } from "../../../src/server/index.ts";
import { LegacySseClient, SessionClient } from "../../support/http/mcp-clients.ts";
import { startServer } from "./fixture.ts";

const REVISION = "2025-06-18";
const unknownMethod = (data?: unknown): object => ({
  code: -32601,
  message: "Method not found",
  ...(data ? { data } : {}),
});
const ERRORS = [
  ["cl-mcp", unknownMethod("Method 'no/such' is not supported")],
  ["llm-pharo", { code: -32601, message: expect.stringContaining("no/such") as string }],
  ["chain", unknownMethod("Unknown method: no/such")],
  ["reference", unknownMethod({ details: expect.any(String) as string })],
] as const;

const noBatches = `Revision ${REVISION} has no batches: send one message at a time`;
const BATCH_ERRORS: Readonly<Record<string, object>> = {
  "cl-mcp": { code: -32600, message: "Invalid Request", data: noBatches },
  "llm-pharo": { code: -32600, message: expect.stringContaining(noBatches) as string },
  chain: { code: -32600, message: "Invalid Request", data: noBatches },
  reference: { code: -32600, message: "Invalid Request", data: { details: noBatches } },
};

describe.each(ERRORS)("compat: %s", (compat, error) => {
  it("a server of compat answers the handshake and errors of a session over HTTP", async () => {
    const { peer } = await startServer({ compat });
    const client = await SessionClient.open(peer, REVISION);
    expect(client.initializeResponse).toMatchObject({ result: { protocolVersion: REVISION } });
    expect((await client.request("no/such")).error).toEqual(error);
  });

  it("a server of compat answers them over legacy HTTP+SSE", async () => {
    const { peer } = await startServer({ compat });
    const client = await LegacySseClient.open(peer);
    expect(await client.handshake(REVISION)).toMatchObject({ result: { protocolVersion: REVISION } });
    expect((await client.request("no/such")).error).toEqual(error);
  });

  it("a server of compat refuses a batch over both transports", async () => {
    const { peer } = await startServer({ compat });
    const batch = [{ jsonrpc: "2.0", id: 1, method: "ping" }];
    const client = await SessionClient.open(peer, REVISION);
    const reply = await client.post(batch);
    expect([reply.status, JSON.parse(reply.text)]).toEqual([
      400,
      { jsonrpc: "2.0", id: null, error: BATCH_ERRORS[compat] },
    ]);
    const legacy = await LegacySseClient.open(peer);
    await legacy.handshake(REVISION);
    await peer.post(batch, {}, legacy.endpoint);
    expect(await legacy.stream.answerTo(null)).toEqual({ jsonrpc: "2.0", id: null, error: BATCH_ERRORS[compat] });
  });

  it("a server of compat answers a request that arrives before the rules are loaded", async () => {
    const handle = fetchHandler(createServer({ name: "test", version: "1" }), { compat, allowedHosts: ["localhost"] });
    const params = { protocolVersion: REVISION, capabilities: {}, clientInfo: { name: "test", version: "1" } };
    const response = await handle(
      new Request("http://localhost/mcp", {
        method: "POST",
        headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params }),
      }),
    );
    expect(await response.text()).toContain(`"protocolVersion":"${REVISION}"`);
    await handle.close();
  });
});
