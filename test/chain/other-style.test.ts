// An end at an address that is exchanged for one of the other style while its callers stay: it is asked anew what it
// speaks, and calls go on. The end is written out here, in the answers that tell the styles apart.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { upstream } from "../../src/chain/upstream/upstream.ts";
import { call, caller, EXCHANGE, SESSION } from "./callers.ts";

/** Answers in the revision that it is told to speak; `ran` counts its calls. */
async function changingEnd(): Promise<{ url: string; speak(revision: string): void; readonly ran: number }> {
  const state = { revision: SESSION, ran: 0 };
  const answer = (response: ServerResponse, status: number, message?: object): void => {
    response.writeHead(status, { "content-type": "application/json", "mcp-session-id": "one" });
    response.end(message === undefined ? "" : JSON.stringify({ jsonrpc: "2.0", ...message }));
  };
  const take = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const chunks = (await request.toArray()) as Buffer[];
    if (request.method !== "POST") return answer(response, 405);
    const { id, method } = JSON.parse(Buffer.concat(chunks).toString("utf8")) as { id?: number; method: string };
    if (id === undefined) return answer(response, 202);
    const capabilities = { tools: {} };
    const isStateless = request.headers["mcp-protocol-version"] === EXCHANGE;
    if (state.revision === EXCHANGE && !isStateless && method !== "server/discover") {
      const data = { supported: [EXCHANGE] };
      return answer(response, 400, { id, error: { code: -32022, message: "Unsupported", data } });
    }
    if (state.revision === SESSION && isStateless) return answer(response, 404);
    if (method === "initialize") {
      const result = { protocolVersion: SESSION, capabilities, serverInfo: { name: "end", version: "1" } };
      return answer(response, 200, { id, result });
    }
    if (method === "server/discover") {
      return answer(response, 200, {
        id,
        result: { resultType: "complete", supportedVersions: [EXCHANGE], capabilities },
      });
    }
    if (method === "tools/list") {
      return answer(response, 200, { id, result: { tools: [{ name: "which", inputSchema: { type: "object" } }] } });
    }
    state.ran += 1;
    answer(response, 200, { id, result: { content: [{ type: "text", text: state.revision }] } });
  };
  const server = createServer((request, response) => void take(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    speak: (revision) => (state.revision = revision),
    get ran() {
      return state.ran;
    },
  };
}

it.each([
  [SESSION, EXCHANGE],
  [EXCHANGE, SESSION],
])("is spoken to as it wants to be: first %s, then %s", async (first, second) => {
  const far = await changingEnd();
  far.speak(first);
  const one = upstream(far.url, { name: "far" });
  onTestFinished(() => one.close());
  const { client } = await caller(one, EXCHANGE);
  expect(await call(client, "which")).toBe(first);
  far.speak(second);
  expect(await call(client, "which")).toBe(second);
  expect(await call(client, "which")).toBe(second);
  expect(far.ran).toBe(3);
  expect(one.status()).toMatchObject({ state: "running", revision: second });
});
