// Endpoints besides the main one: which callers have them, and what the handler is told.

import { afterEach, describe, expect, it } from "vitest";
import { bearer } from "../../auth/bearer/bearer.ts";
import { connect } from "../../client/connect.ts";
import { NEWEST_SESSION } from "../../protocol/revisions/index.ts";
import { createServer } from "../../server/server.ts";
import { serve, type Serving } from "../../serve.ts";
import type { ServeHttpOptions } from "./mount.ts";

let front: (Serving & { readonly url: string }) | undefined;
afterEach(() => front?.close());

const server = createServer({ name: "s", version: "1" }).tool(
  "where",
  {},
  (_args, { caller }) => `${caller.principal ?? "nobody"} at ${caller.endpoint ?? "the main endpoint"}`,
);

async function start(options: ServeHttpOptions): Promise<string> {
  front = await serve(server, { http: { port: 0, ...options } });
  return new URL(front.url).origin;
}

async function statusOf(url: string, method = "POST", headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(url, { method, headers });
  await response.text();
  return response.status;
}

describe("other paths", () => {
  it("are endpoints if the option says so", async () => {
    const origin = await start({ paths: (path) => path === "/mcp/work" });
    for (const [path, said] of [
      ["/mcp", "nobody at the main endpoint"],
      ["/mcp/work", "nobody at /mcp/work"],
      ["/mcp/work/", "nobody at /mcp/work"],
    ] as const) {
      for (const revision of [NEWEST_SESSION.name, undefined]) {
        const client = await connect(`${origin}${path}`, revision === undefined ? {} : { revision });
        expect((await client.callTool("where")).content).toMatchObject([{ text: said }]);
        await client.close();
      }
    }
    expect(await statusOf(`${origin}/mcp/home`)).toBe(404);
    expect(await statusOf(`${origin}/mcp/work`, "PUT")).toBe(405);
  });

  it("depend on the caller, and are unknown to those who are not authenticated", async () => {
    const verify = (token: string): { principal: string } => ({ principal: token });
    const paths: ServeHttpOptions["paths"] = (path, principal) => path === `/of/${principal}`;
    const origin = await start({ paths, auth: bearer({ verify, resource: "http://127.0.0.1/mcp" }) });
    const as = (who: string): Record<string, string> => ({ authorization: `Bearer ${who}` });
    expect(await statusOf(`${origin}/of/ada`)).toBe(401);
    expect(await statusOf(`${origin}/of/nobody`)).toBe(401);
    expect(await statusOf(`${origin}/of/ada`, "POST", as("bob"))).toBe(404);
    const client = await connect(`${origin}/of/ada`, { headers: as("ada") });
    expect((await client.callTool("where")).content).toMatchObject([{ text: "ada at /of/ada" }]);
    await client.close();
  });
});
