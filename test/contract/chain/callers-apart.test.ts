// Middleware that remembers something, over HTTP with several authenticated callers in both styles: no caller gets what
// was given to another, and each is judged by its own list.

import { afterEach, expect, it } from "vitest";
import { cache, confirm, readOnly } from "../../../src/chain/middleware/index.ts";
import type { Authenticator } from "../../../src/core/authentication.ts";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { chain, connect, serve, type Client, type Handler, type Middleware } from "../../../src/index.ts";

const closing: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of closing.splice(0).toReversed()) await one.close();
});

/** What a caller sees depends on who it is: `look` is read-only for ada alone. */
const upstream: Handler = async ({ method }, { caller }) => {
  const { principal } = caller;
  if (method === "server/discover") return { capabilities: { tools: {} }, resultType: "complete" };
  if (method !== "tools/list") return { content: [{ type: "text", text: `for ${principal}` }] };
  const annotations = principal === "ada" ? { readOnlyHint: true } : { destructiveHint: true };
  const tools = ["look", `of_${principal}`].map((name) => ({ name, inputSchema: { type: "object" }, annotations }));
  return { tools, ttlMs: 60_000, cacheScope: "private" };
};

async function start(revision: string, middleware: Middleware): Promise<(principal: string) => Promise<Client>> {
  const auth: Authenticator = {
    authenticate: async ({ headers }) => ({ principal: (headers["authorization"] ?? "").replace("Bearer ", "") }),
  };
  const gateway = chain(middleware).to(upstream);
  closing.push(gateway);
  const front = await serve(gateway, { http: { port: 0, auth } });
  closing.push(front);
  return async (principal) => {
    const headers = { Authorization: `Bearer ${principal}` };
    const client = await connect(front.url ?? "", { headers, cache: false, revision });
    closing.push(client);
    return client;
  };
}

it.each([NEWEST.name, NEWEST_SESSION.name])("a cache keeps callers apart, with %s", async (revision) => {
  const as = await start(revision, cache({ tools: { look: { ttlMs: 60_000 } } }));
  for (const principal of ["ada", "bea", "ada"]) {
    const client = await as(principal);
    for (let count = 0; count < 2; count += 1) {
      expect((await client.listTools()).tools.map((tool) => tool.name)).toEqual(["look", `of_${principal}`]);
      expect((await client.callTool("look")).content).toEqual([{ type: "text", text: `for ${principal}` }]);
    }
  }
});

it.each([NEWEST.name, NEWEST_SESSION.name])("each caller is judged by its own list, with %s", async (revision) => {
  for (const guard of [readOnly, confirm]) {
    const as = await start(revision, guard());
    const [ada, bea] = [await as("ada"), await as("bea")];
    for (let count = 0; count < 2; count += 1) {
      expect((await ada.callTool("look")).content).toEqual([{ type: "text", text: "for ada" }]);
      const kind = guard === readOnly ? "tool_not_found" : "missing_capability";
      await expect(bea.callTool("look")).rejects.toMatchObject({ kind });
    }
  }
});
