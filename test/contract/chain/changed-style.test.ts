// An address whose server is replaced by one of the other style while callers stay connected: the style is negotiated
// again, and calls go on. The server is written by hand, with the answers by which the styles differ.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { upstream } from "../../../src/chain/upstream/upstream.ts";
import { call, caller, STATELESS, SESSION } from "./callers.ts";

/** A server whose revision can be changed; `ran` counts its calls. */
async function changingServer(): Promise<{ url: string; speak(revision: string): void; readonly ran: number }> {
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
    const isStateless = request.headers["mcp-protocol-version"] === STATELESS;
    if (state.revision === STATELESS && !isStateless && method !== "server/discover") {
      const data = { supported: [STATELESS] };
      return answer(response, 400, { id, error: { code: -32022, message: "Unsupported", data } });
    }
    if (state.revision === SESSION && isStateless) return answer(response, 404);
    if (method === "initialize") {
      const result = { protocolVersion: SESSION, capabilities, serverInfo: { name: "server", version: "1" } };
      return answer(response, 200, { id, result });
    }
    if (method === "server/discover") {
      return answer(response, 200, {
        id,
        result: { resultType: "complete", supportedVersions: [STATELESS], capabilities },
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
  [SESSION, STATELESS],
  [STATELESS, SESSION],
])("follows the style of the server: first %s, then %s", async (first, second) => {
  const far = await changingServer();
  far.speak(first);
  const one = upstream(far.url, { name: "far" });
  onTestFinished(() => one.close());
  const { client } = await caller(one, STATELESS);
  expect(await call(client, "which")).toBe(first);
  far.speak(second);
  expect(await call(client, "which")).toBe(second);
  expect(await call(client, "which")).toBe(second);
  expect(far.ran).toBe(3);
  expect(one.status()).toMatchObject({ state: "running", revision: second });
});
