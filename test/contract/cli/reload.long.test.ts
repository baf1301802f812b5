// What a running gateway says when its config changes, when a server is restarted, and when its port is taken. That no
// call is lost is tested in reload.test.ts.

import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { catenary, CLI, type CliProcess, cliRunner } from "./cli-process.ts";

let folder = "";
let env: NodeJS.ProcessEnv = {};
const start = cliRunner();
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "catenary-said-")));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  env = { XDG_STATE_HOME: join(folder, "state"), XDG_RUNTIME_DIR: undefined };
  writeFileSync(
    join(folder, "notes.mjs"),
    `export default async ({ method }) =>
       method === "server/discover" ? { capabilities: { tools: {} } } : { tools: [], resultType: "complete" };`,
  );
});

const CALLERS = { callers: { ada: { token: "ada-key" } } };

function write(more: object): void {
  const notes = { command: process.execPath, args: [CLI, "serve", join(folder, "notes.mjs")], start: true };
  writeFileSync(join(folder, "catenary.json"), JSON.stringify({ mcpServers: { notes }, ...more }));
}

async function up(): Promise<CliProcess> {
  const one = start(["up", "--http", "127.0.0.1:0"], { cwd: folder, env });
  await one.waitForStderr("For a client's config");
  return one;
}

/** Reads the config again, and returns what is said about it. */
async function reload(one: CliProcess, more: object | undefined, last: string): Promise<string> {
  if (more === undefined) rmSync(join(folder, "catenary.json"));
  else write(more);
  const { length } = one.err;
  one.process.kill("SIGHUP");
  await expect.poll(() => one.err.slice(length)).toContain(last);
  return one.err.slice(length);
}

it("changes of callers, profiles and listen are said, and a config that is gone", async () => {
  write(CALLERS);
  const one = await up();
  const profiles = { profiles: { work: { servers: ["notes"] } } };
  await reload(one, { ...CALLERS, ...profiles }, "was read again: other profiles");
  await reload(one, { callers: { ada: { token: "new-key" } }, ...profiles }, "was read again: other callers");
  const listen = { listen: { port: 47_114 } };
  await reload(one, { ...CALLERS, ...listen }, '"listen" has changed; that takes effect when you restart');
  const compat = { compat: "chain" };
  await reload(one, { ...CALLERS, ...listen, ...compat }, '"compat" has changed; that takes effect when you restart');
  await reload(one, { ...CALLERS, ...listen }, "was read again: no server has changed");
  expect(await reload(one, CALLERS, "was read again: no server has changed")).not.toContain('"listen" has changed');
  expect(await reload(one, undefined, "goes on as before")).toContain("catenary.json is gone; the gateway goes on");
  expect(one.err).not.toContain("ENOENT");
});

it("a restart says that the old process has stopped", async () => {
  write({});
  const one = await up();
  await one.waitForStderr("notes started (pid ");
  const [, pid] = /started \(pid (\d+)/.exec(one.err) ?? [];
  expect((await catenary(["restart", "notes"], "", { cwd: folder, env })).code).toBe(0);
  await one.waitForStderr(`notes stopped (pid ${pid})`);
});

it("a port in use names the gateway that has it, and another port", async () => {
  write({});
  const one = await up();
  const { port } = new URL(/http:\S+/.exec(one.err)?.[0] ?? "");
  const { code, err } = await catenary(["up", "--http", `127.0.0.1:${port}`], "", { cwd: folder, env });
  expect(code).toBe(4);
  expect(err).toContain(`A gateway runs at http://127.0.0.1:${port}/mcp already: ${folder}/catenary.json (pid `);
  expect(err).toContain(`tools http://127.0.0.1:${port}/mcp\n`);
  expect(err).toMatch(new RegExp(`up --http :${Number(port) + 1}\\n$`));
});
