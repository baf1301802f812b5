// A server that asks for a sign-in at a real authorization server (node-oidc-provider), through `up`, with two clients:
// one sign-in for both, the token is renewed while they work, and a restarted gateway does not ask again. A logout ends
// the use of the tokens in the gateway too.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { connect } from "catenary";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { serve } from "../../../src/serve.ts";
import { bearer, createServer } from "../../../src/server/index.ts";
import { type OidcProvider, openOidcProvider } from "../../support/auth/oidc-provider.ts";
import { compiled } from "../../support/programs.ts";
import { catenary, cliRunner } from "./cli-process.ts";

/** Renewed a tenth of its lifetime before it expires. */
const TOKEN_SEC = 10;
const BROWSER = `${process.execPath} ${compiled("../../support/auth/browser-program.ts", import.meta.url)}`;

let folder = "";
let provider: OidcProvider;
let front: Awaited<ReturnType<typeof serve>>;
const run = cliRunner();

beforeEach(async () => {
  // The package prints warnings about its development settings.
  vi.spyOn(console, "info").mockReturnValue();
  vi.spyOn(console, "warn").mockReturnValue();
  folder = mkdtempSync(join(tmpdir(), "catenary-oidc-"));
  provider = await openOidcProvider({ scope: "notes:read", accessTokenSec: TOKEN_SEC });
  const server = createServer({ name: "notes", version: "1.0.0" }).tool(
    "read",
    {},
    (_, { caller }) => `for ${String(caller.claims?.["sub"])}`,
  );
  const auth = bearer({ authorizationServers: [provider.issuer], scopes: ["notes:read"] });
  front = await serve(server, { http: { port: 0, auth } });
  writeFileSync(join(folder, "catenary.json"), JSON.stringify({ mcpServers: { notes: { url: front.url } } }));
});
afterEach(async () => {
  await Promise.all([front.close(), provider.close()]);
  rmSync(folder, { recursive: true, force: true });
  vi.restoreAllMocks();
});

const count = (what: string): number => provider.requests.filter((request) => request === what).length;
const options = (): { env: NodeJS.ProcessEnv; cwd: string } => ({
  env: { XDG_STATE_HOME: folder, BROWSER },
  cwd: folder,
});

async function up(): Promise<string> {
  const gateway = run(["up", "catenary.json", "--http", "127.0.0.1:0", "--json"], options());
  await expect.poll(() => gateway.out).toContain("\n");
  return (JSON.parse(gateway.out) as { url: string }).url;
}

const text = (result: object): unknown => (result as { content?: { text: string }[] }).content?.[0]?.text;

it("signs in once for two clients, renews the token, and survives a restart", async () => {
  expect(await catenary(["login", "notes"], "", options())).toMatchObject({ code: 0 });
  const url = await up();
  const ours = await connect(url);
  const sdk = new Client({ name: "sdk", version: "1.0.0" });
  await sdk.connect(new StreamableHTTPClientTransport(new URL(url)));
  const both = async (): Promise<unknown[]> =>
    (await Promise.all([ours.callTool("read"), sdk.callTool({ name: "read" })])).map((one) => text(one));
  expect(await both()).toEqual(["for ada", "for ada"]);
  expect([count("GET /auth"), count("POST /token")]).toEqual([1, 1]);
  // Both clients go on calling until the token has been renewed twice.
  await expect
    .poll(async () => [...(await both()), count("POST /token") >= 3], { interval: 500 })
    .toEqual(["for ada", "for ada", true]);
  await Promise.all([ours.close(), sdk.close()]);
  const again = await connect(await up());
  expect(text(await again.callTool("read"))).toBe("for ada");
  await again.close();
  expect([count("GET /auth"), count("POST /reg")]).toEqual([1, 1]);
});

it("stops at a logout, writes nothing back after the token's lifetime, and works again after the next login", async () => {
  expect(await catenary(["login", "notes"], "", options())).toMatchObject({ code: 0 });
  const client = await connect(await up());
  const call = (): Promise<unknown> => client.callTool("read").then(text, (error: Error) => error.message);
  expect(await call()).toBe("for ada");
  const logout = await catenary(["logout", "notes", "--json"], "", options());
  expect(JSON.parse(logout.out)).toMatchObject({ removed: [new URL(String(front.url)).origin] });
  expect(count("POST /token/revocation")).toBe(2);
  const advice = "asks for a sign-in or a token; run `catenary login notes` where the gateway runs";
  expect(await call()).toContain(advice);
  const begin = Date.now();
  await expect.poll(() => Date.now() - begin > TOKEN_SEC * 1000, { interval: 500 }).toBe(true);
  expect(await call()).toContain(advice);
  expect(count("POST /token")).toBe(1);
  const auth = await catenary(["auth", "--json"], "", options());
  expect(JSON.parse(auth.out)).toEqual({ servers: [] });
  expect(await catenary(["login", "notes"], "", options())).toMatchObject({ code: 0 });
  // The gateway asks a server that failed again after a moment.
  await expect.poll(call).toBe("for ada");
  await client.close();
});
