// Signing in from the command line, with an authorization server and a browser that returns at once. The user sees where
// the browser goes, and never a token; the next run uses the saved token; without a terminal the error says what to do.

import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, serve } from "../../../src/index.ts";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { type AuthorizationServer, openAuthorizationServer } from "../../support/auth/authorization-server.ts";
import { CTRL_C, HAS_TERMINAL, Terminal } from "../../support/terminal/terminal.ts";
import { catenary, CLI, markProcesses, expectNoProcesses } from "./cli-process.ts";

let folder = "";
let browser = "";
let issuer: AuthorizationServer;
let front: Awaited<ReturnType<typeof serve>>;
let terminal: Terminal | undefined;
let state = "";
const { mark, env: marked } = markProcesses();

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-sign-in-"));
  browser = join(folder, "browser.mjs");
  writeFileSync(browser, "await (await fetch(process.argv[2])).text();");
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

beforeEach(async () => {
  state = mkdtempSync(join(folder, "state-"));
  issuer = await openAuthorizationServer();
  const server = createServer({ name: "vault", version: "1.0.0" }).tool(
    "open",
    { description: "Open it" },
    () => "opened",
  );
  front = await serve(server, { http: { port: 0, auth: issuer.authenticator("/mcp") } });
});
afterEach(async () => {
  await terminal?.close();
  terminal = undefined;
  await Promise.all([front.close(), issuer.close()]);
});

const env = (more: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv => ({
  XDG_STATE_HOME: state,
  BROWSER: `node ${browser}`,
  ...more,
});

function openTerminal(args: readonly string[], more?: NodeJS.ProcessEnv): Terminal {
  terminal = new Terminal([process.execPath, CLI, ...args], { columns: 1_000, env: { ...marked, ...env(more) } });
  return terminal;
}

const skipped = "signing in from a real terminal is skipped: python3 is not installed";
if (!HAS_TERMINAL) it.skipIf(process.env["CI"] !== "true")(skipped, () => expect.fail(skipped));

it.runIf(HAS_TERMINAL)("a user signs in with the browser; the next run uses the saved token", async () => {
  const url = String(front.url);
  const shown = openTerminal(["call", url, "open", "--scope", "read write"]);
  expect(await shown.exited).toBe(0);
  const { host } = new URL(url);
  expect(shown.screen).toContain(
    `${host} asks you to sign in at ${new URL(issuer.url).host}. If the browser does not open,`,
  );
  expect(shown.screen).toContain(`${issuer.url}/authorize?`);
  expect(shown.screen.split("\n").at(-1)).toBe("opened");
  expect(issuer.at("/authorize")[0]?.query.get("scope")).toBe("read write");
  const [token = ""] = issuer.issued.keys();
  expect(token).toMatch(/^access-/);
  expect(shown.bytes).not.toContain(token);
  const file = join(state, "catenary", "tokens.json");
  expect(readFileSync(file, "utf8")).toContain(token);
  expect(statSync(file).mode & 0o077).toBe(0);
  const asked = issuer.requests.length;
  const again = await catenary(["call", url, "open", "--no-login"], "", { env: env() });
  expect(again).toMatchObject({ code: 0, out: "opened\n", err: "" });
  expect(issuer.requests).toHaveLength(asked);
  await expectNoProcesses(mark);
});

it.runIf(HAS_TERMINAL)("a user may use a registered client, with its secret in the environment", async () => {
  issuer.metadata = { ...issuer.metadata, token_endpoint_auth_methods_supported: ["client_secret_basic"] };
  const flags = ["--client-id", "known", "--client-secret-env", "VAULT_SECRET"];
  const shown = openTerminal(["call", String(front.url), "open", ...flags], { VAULT_SECRET: "hush-hush" });
  expect(await shown.exited).toBe(0);
  expect(issuer.at("/register")).toEqual([]);
  expect([...issuer.issued.values()].map(({ client }) => client)).toEqual(["known"]);
  expect(shown.bytes).not.toContain("hush-hush");
});

it.runIf(HAS_TERMINAL)("a user can cancel with Ctrl-C", async () => {
  const shown = openTerminal(["tools", String(front.url)], { BROWSER: "true" });
  await shown.shows("/authorize?");
  shown.type(CTRL_C);
  expect(await shown.exited).toBe(130);
  await expectNoProcesses(mark);
});

it.runIf(HAS_TERMINAL)("a user is not sent to the browser with --no-login", async () => {
  const shown = openTerminal(["tools", String(front.url), "--no-login"]);
  expect(await shown.exited).toBe(3);
  expect(shown.screen).not.toContain("/authorize");
  expect(shown.screen).toContain("without --no-login");
  expect(issuer.at("/authorize")).toEqual([]);
});

it("without a terminal, no browser opens, and the error says what to do", async () => {
  const result = await catenary(["tools", String(front.url)], "", { env: env() });
  expect(result).toMatchObject({ code: 3, out: "" });
  expect(result.err).toContain("What you can do: sign in from a terminal, without --no-login, or set a token in");
  expect(issuer.at("/authorize")).toEqual([]);
  expect(issuer.at("/register")).toEqual([]);
});

it.each([
  [["--client-secret-env", "X"], "--client-secret-env needs --client-id"],
  [["--client-id", "a", "--client-secret-env", "NOT_SET_AT_ALL"], "the variable NOT_SET_AT_ALL is not set"],
  [["--client-metadata", "http://x/y"], "--client-metadata must be an https URL with a path"],
])("without a terminal, %j is refused", async (flags, message) => {
  const result = await catenary(["tools", String(front.url), ...flags], "", { env: env() });
  expect(result.code).toBe(1);
  expect(result.err).toContain(message);
});
