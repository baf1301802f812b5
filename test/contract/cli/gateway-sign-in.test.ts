// Servers that ask for a sign-in, behind `up`, `serve` and `run URL`: without a user, callers are told what to do; with
// one, the browser opens once; `login`, `logout` and `auth` work with the same tokens. No token is printed.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "catenary";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { createServer, serve } from "../../../src/index.ts";
import { type AuthorizationServer, openAuthorizationServer } from "../../support/auth/authorization-server.ts";
import { HAS_TERMINAL, Terminal } from "../../support/terminal/terminal.ts";
import { catenary, CLI, cliRunner, markProcesses, type CliProcess } from "./cli-process.ts";
import { IS_LONG } from "../../support/thoroughness.ts";

const PATH = "/k/0123456789abcdef-secret/mcp";
let folder = "";
let browser = "";
let state = "";
let issuer: AuthorizationServer;
let front: Awaited<ReturnType<typeof serve>>;
const run = cliRunner();

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-gateway-sign-in-"));
  browser = join(folder, "browser.mjs");
  writeFileSync(browser, "await (await fetch(process.argv[2])).text();");
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

beforeEach(async () => {
  state = mkdtempSync(join(folder, "state-"));
  issuer = await openAuthorizationServer();
  const server = createServer({ name: "vault", version: "1.0.0" }).tool("open", {}, () => "opened");
  front = await serve(server, { http: { port: 0, path: PATH, auth: issuer.authenticator(PATH) } });
  writeFileSync(join(state, "catenary.json"), JSON.stringify({ mcpServers: { vault: { url: front.url } } }));
});
afterEach(async () => {
  await Promise.all([front.close(), issuer.close()]);
});

const env = (more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({
  XDG_STATE_HOME: state,
  BROWSER: `node ${browser}`,
  ...more,
});
const options = (more?: NodeJS.ProcessEnv): { env: NodeJS.ProcessEnv; cwd: string } => ({ env: env(more), cwd: state });

async function up(more?: NodeJS.ProcessEnv): Promise<{ url: string; gateway: CliProcess }> {
  const gateway = run(["up", "catenary.json", "--http", "127.0.0.1:0", "--json"], options(more));
  await expect.poll(() => gateway.out.includes("\n") || gateway.process.exitCode !== null).toBe(true);
  return { url: (JSON.parse(gateway.out || gateway.err) as { url: string }).url, gateway };
}

const text = ({ content }: { content?: unknown }): unknown => (content as { text: string }[])[0]?.text;
const stored = (): Record<string, string> =>
  JSON.parse(readFileSync(join(state, "catenary", "tokens.json"), "utf8")) as Record<string, string>;

/** Neither the tokens nor the path of the URL, except in the address of the sign-in, which has to name the server. */
function expectNoSecrets(printed: string): void {
  const shown = printed.replaceAll(/\S+\/authorize\?\S+/g, "");
  for (const token of issuer.issued.keys()) expect(shown).not.toContain(token);
  expect(shown).not.toMatch(/refresh-\d|0123456789abcdef/);
}

/** A server in a module, which needs no sign-in. */
const OTHER = `
export default async ({ method }) => {
  if (method === "server/discover") return { capabilities: { tools: {} } };
  if (method === "tools/list") return { tools: [{ name: "other", inputSchema: { type: "object" } }] };
  return { content: [{ type: "text", text: "other" }], isError: false };
};`;

it.runIf(IS_LONG)(
  "up without a terminal opens no browser and tells callers to sign in; after `login` it works",
  async () => {
    writeFileSync(join(state, "other.mjs"), OTHER);
    const mcpServers = { vault: { url: front.url }, other: { module: "./other.mjs" } };
    writeFileSync(join(state, "catenary.json"), JSON.stringify({ mcpServers }));
    const { url, gateway } = await up();
    const ada = await connect(url);
    const bob = await connect(url);
    const { host } = new URL(String(front.url));
    const advice = `${host} asks for a sign-in or a token; run \`catenary login vault\` where the gateway runs`;
    await expect(ada.callTool("open")).rejects.toThrow(advice);
    expect(text(await bob.callTool("other"))).toBe("other");
    expect([issuer.at("/authorize"), issuer.at("/register")]).toEqual([[], []]);

    const login = await catenary(["login", "vault"], "", options());
    expect(login).toMatchObject({ code: 0, out: "" });
    expect(login.err).toContain(`Signed in to ${host}; commands and gateways use the tokens from now on`);
    // The gateway asks a server that failed again after a moment.
    const again = (): Promise<unknown> => ada.callTool("open").then(text, (error: Error) => error.message);
    await expect.poll(again).toBe("opened");
    expect(text(await bob.callTool("open"))).toBe("opened");
    expect(issuer.at("/authorize")).toHaveLength(1);
    expectNoSecrets(login.err + gateway.err + gateway.out);
    await Promise.all([ada.close(), bob.close()]);
  },
);

it.runIf(IS_LONG)("up without a terminal renews the token, and other commands use the new one", async () => {
  await catenary(["login", String(front.url)], "", options());
  const first = [...issuer.issued.keys()];
  // As if an hour had passed.
  const expired = Object.entries(stored()).map(([key, value]) => {
    const { expires, ...rest } = JSON.parse(value) as { expires?: number };
    return [key, JSON.stringify(expires === undefined ? rest : { ...rest, expires: 1, renew: 1 })];
  });
  writeFileSync(join(state, "catenary", "tokens.json"), JSON.stringify(Object.fromEntries(expired)));
  const { url } = await up();
  const client = await connect(url);
  expect(text(await client.callTool("open"))).toBe("opened");
  await client.close();
  expect(issuer.grantsOf("refresh_token")).toHaveLength(1);
  expect(JSON.stringify(stored())).not.toContain(`"${first[0]}"`);
  const call = await catenary(["call", String(front.url), "open", "--no-login"], "", options());
  expect(call).toMatchObject({ code: 0, out: "opened\n" });
  expect(issuer.at("/authorize")).toHaveLength(1);
});

it.runIf(IS_LONG).each([
  ["serve", () => ["serve", "catenary.json"]],
  ["run URL", () => ["run", String(front.url)]],
])(
  "a client that starts us on stdio gets a sign-in in the browser, once for all requests (%s)",
  async (_name, args) => {
    const target = {
      command: process.execPath,
      args: [CLI, ...args()],
      env: env() as Record<string, string>,
      cwd: state,
    };
    let stderr = "";
    const client = await connect(target, { onStderr: (chunk) => (stderr += chunk) });
    const [one, other] = await Promise.all([client.callTool("open"), client.callTool("open"), client.listTools()]);
    expect([text(one), text(other)]).toEqual(["opened", "opened"]);
    await client.close();
    expect(issuer.at("/authorize")).toHaveLength(1);
    expect(stderr).toContain(`asks you to sign in at ${new URL(issuer.url).host}`);
    expectNoSecrets(stderr);
  },
);

it.runIf(IS_LONG)(
  "a client that starts us on stdio does not open the browser again if the sign-in was not finished",
  async () => {
    issuer.pages.set("/authorize", (_request, response) => {
      const [visit] = issuer.at("/authorize").slice(-1);
      const back = new URL(visit?.query.get("redirect_uri") ?? "");
      back.searchParams.set("error", "access_denied");
      back.searchParams.set("state", visit?.query.get("state") ?? "");
      back.searchParams.set("iss", issuer.url);
      response.writeHead(302, { location: back.href }).end();
    });
    const args = [CLI, "run", String(front.url)];
    const connecting = connect({ command: process.execPath, args, env: env() as Record<string, string> });
    await expect(connecting).rejects.toThrow("access_denied");
    const gateway = run(["serve", "catenary.json"], options());
    const ask = (id: number): void => {
      const params = { name: "open", _meta: META };
      gateway.process.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params })}\n`);
    };
    ask(1);
    await expect.poll(() => gateway.out).toContain("access_denied");
    ask(2);
    await expect.poll(() => gateway.out).toContain("that was not finished; run `catenary login vault`");
    expect(issuer.at("/authorize")).toHaveLength(2);
  },
);

it.runIf(IS_LONG)("a client that starts us on stdio is told what to do if there is no browser", async () => {
  const noBrowser = { BROWSER: "none", DISPLAY: "", WAYLAND_DISPLAY: "" };
  const target = { command: process.execPath, args: [CLI, "run", String(front.url)] };
  const connecting = connect({ ...target, env: env(noBrowser) as Record<string, string> });
  await expect(connecting).rejects.toThrow(/run `catenary login` with its URL/);
  expect(issuer.at("/register")).toEqual([]);
});

it.runIf(IS_LONG)("a client that starts us on stdio `run URL` sends the token of CATENARY_TOKEN instead", async () => {
  await catenary(["login", String(front.url)], "", options());
  const [token = ""] = issuer.issued.keys();
  rmSync(join(state, "catenary"), { recursive: true });
  const target = { command: process.execPath, args: [CLI, "run", String(front.url)] };
  const client = await connect({ ...target, env: { ...(env() as Record<string, string>), CATENARY_TOKEN: token } });
  expect(text(await client.callTool("open"))).toBe("opened");
  await client.close();
  expect(issuer.at("/authorize")).toHaveLength(1);
});

const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
  "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
};

it.runIf(HAS_TERMINAL && IS_LONG)("up at a terminal opens the browser", async () => {
  const args = [process.execPath, CLI, "up", "catenary.json", "--http", "127.0.0.1:0"];
  const terminal = new Terminal(args, { columns: 1_000, env: { ...markProcesses().env, ...env() }, cwd: state });
  try {
    await terminal.shows(/at (http\S+)/);
    const [, url = ""] = /at (http\S+)/.exec(terminal.screen) ?? [];
    const client = await connect(url);
    expect(text(await client.callTool("open"))).toBe("opened");
    await client.close();
    expect(terminal.screen).toContain(`asks you to sign in at ${new URL(issuer.url).host}`);
    expectNoSecrets(terminal.bytes);
  } finally {
    await terminal.close();
  }
});

it.runIf(IS_LONG)("login, auth and logout sign in, list and forget", async () => {
  const { origin } = new URL(String(front.url));
  expect(await catenary(["auth"], "", options())).toMatchObject({ code: 0, out: "" });
  const login = await catenary(["login", "vault", "--scope", "read", "--json"], "", options());
  expect(JSON.parse(login.out)).toEqual({ server: origin, status: "signed-in" });
  const again = await catenary(["login", "vault", "--config", "catenary.json", "--json"], "", options());
  expect(JSON.parse(again.out)).toEqual({ server: origin, status: "already-signed-in" });

  const auth = await catenary(["auth", "--json"], "", options());
  expect(JSON.parse(auth.out)).toEqual({
    servers: [
      {
        server: origin,
        issuer: issuer.url,
        scopes: ["read"],
        expires: expect.any(String),
        expired: false,
        renewable: true,
      },
    ],
  });
  const table = await catenary(["auth"], "", options());
  expect(table.out).toBe(`${origin}  renewed when needed  by ${issuer.url}  scopes read\n`);
  expectNoSecrets(login.err + again.err + auth.out + table.out);

  const logout = await catenary(["logout", "vault", "--json"], "", options());
  expect(JSON.parse(logout.out)).toEqual({ removed: [origin], notRevoked: [] });
  expect(issuer.issued.size).toBe(0);
  expect(stored()).toEqual({});
  expect(await catenary(["logout", origin], "", options())).toMatchObject({ code: 2 });
});

it.runIf(IS_LONG)("login, auth and logout logout forgets all servers of a host, or all", async () => {
  await catenary(["login", "vault"], "", options());
  const { origin, host } = new URL(String(front.url));
  expect((await catenary(["logout", origin], "", options())).err).toBe(`Deleted the tokens of ${host}\n`);
  await catenary(["login", "vault"], "", options());
  issuer.pages.set("/revoke", (_request, response) => response.writeHead(503).end());
  const all = await catenary(["logout", "--all"], "", options());
  expect(all).toMatchObject({ code: 0 });
  const issuerHost = new URL(issuer.url).host;
  expect(all.err).toBe(
    `Deleted the tokens of ${host}\n${host} may accept the deleted tokens until they expire: they could not be revoked at ${issuerHost} (it answered HTTP 503)\n`,
  );
  expect(stored()).toEqual({});
});

it.runIf(IS_LONG).each([
  [["login"], 1, "login takes one TARGET"],
  [["login", "nobody"], 2, "There is no server nobody in catenary.json; it has vault"],
  [["logout"], 1, "logout takes one TARGET, or --all"],
  [["logout", "x", "--all"], 1, "logout takes one TARGET, or --all"],
  [["auth", "x"], 1, "auth takes no arguments"],
  [["run", "https://example.com/mcp", "--", "node"], 1, "run: unexpected argument node"],
  [["run", "https://example.com/mcp", "--cwd", "."], 1, "--cwd needs a command, not a URL"],
  [["run", "--scope", "a", "--", "node"], 1, "--scope needs a URL, not a command"],
])("login, auth and logout: %j ends with %i", async (args, code, message) => {
  const result = await catenary(args, "", options());
  expect(result.code).toBe(code);
  expect(result.err).toContain(message);
});

it.runIf(IS_LONG)("login, auth and logout login says that a server does not ask", async () => {
  const open = await serve(
    createServer({ name: "open", version: "1" }).tool("a", {}, () => "a"),
    { http: { port: 0 } },
  );
  const result = await catenary(["login", open.url, "--json"], "", options());
  await open.close();
  expect(JSON.parse(result.out)).toEqual({ server: new URL(open.url).origin, status: "not-needed" });
});
