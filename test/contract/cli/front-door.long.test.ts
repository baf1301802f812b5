// The first minute on a new machine: a clone of the repository in a folder with a space, `npm ci && npm start` as a user who
// is not root, with bubblewrap and without it, and a call of a tool by the official SDK.

import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chownSync, cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { npm, outputOf } from "../../support/blocking-program.ts";
import { lastingPort } from "../../support/http/raw-server.ts";
import { sandboxProblem } from "../../../src/live/sandbox.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const UNPRIVILEGED = 65_534;
const isRoot = process.getuid?.() === 0;
const user = isRoot ? { uid: UNPRIVILEGED, gid: UNPRIVILEGED } : {};

let folder: string;
let clone: string;
let env: NodeJS.ProcessEnv;
let started: ChildProcess | undefined;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary first minute-"));
  clone = join(folder, "my clone");
  const home = join(folder, "home");
  const files = outputOf("git", ["ls-files", "-z"], { cwd: ROOT }).split("\0").filter(Boolean);
  for (const file of files) {
    if (!existsSync(join(ROOT, file))) continue;
    mkdirSync(dirname(join(clone, file)), { recursive: true });
    cpSync(join(ROOT, file), join(clone, file));
  }
  mkdirSync(home);
  if (isRoot)
    for (const path of outputOf("find", [folder, "-print0"]).split("\0")) {
      if (path !== "") chownSync(path, UNPRIVILEGED, UNPRIVILEGED);
    }
  // What npm sets for the scripts that it runs is not what a person's shell has.
  const shell = Object.entries(process.env).filter(
    ([name]) => !/^(?:npm_(?!config_)|CATENARY_|XDG_|CI$|FORCE_COLOR$)/.test(name),
  );
  env = {
    ...Object.fromEntries(shell),
    HOME: home,
    npm_config_cache: join(home, "npm"),
    npm_config_update_notifier: "false",
  };
  // npm fills an empty cache.
  npm(["ci", "--no-audit", "--no-fund"], { cwd: clone, env, ...user });
}, 600_000);

afterEach(async () => {
  if (started?.pid === undefined || started.exitCode !== null) return;
  // npm passes the signal on to the gateway.
  process.kill(-started.pid, "SIGTERM");
  await once(started, "close");
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The programs that npm needs, and no others. */
function pathWithoutBubblewrap(): string {
  const bin = join(folder, "bin");
  mkdirSync(bin, { recursive: true });
  for (const name of ["node", "npm", "sh", "env", "prlimit"]) {
    const found = (process.env["PATH"] ?? "")
      .split(delimiter)
      .map((one) => join(one, name))
      .find((file) => existsSync(file));
    if (found !== undefined && !existsSync(join(bin, name))) symlinkSync(found, join(bin, name));
  }
  return bin;
}

/** Resolves to what is printed until the gateway is ready. */
async function start(port: number, PATH = env["PATH"]): Promise<string> {
  let output = "";
  const child = spawn("npm", ["start", "--", "--http", `:${port}`], {
    cwd: clone,
    env: { ...env, PATH },
    ...user,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  started = child;
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  await expect.poll(() => output, { timeout: 150_000 }).toContain("Ctrl-C stops the gateway.");
  return output;
}

/** How many lines there are, but for what npm itself prints about the script. */
function linesOf(output: string): number {
  return output.split("\n").filter((line) => !/^(?:npm |> |$)/.test(line)).length;
}

async function evaluate(output: string): Promise<unknown> {
  const { mcpServers } = JSON.parse(/\{"mcpServers".*$/m.exec(output)?.[0] ?? "{}") as {
    mcpServers: { catenary: { url: string; headers: Record<string, string> } };
  };
  const { url, headers } = mcpServers.catenary;
  const client = new Client({ name: "first-minute", version: "1.0.0" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  const result = await client.callTool({ name: "evaluate-js", arguments: { code: "6 * 7" } });
  await client.close();
  return result.content;
}

it("npm ci && npm start serves a sandboxed session where bubblewrap works, in at most 15 lines", async () => {
  const output = await start(await lastingPort());
  expect(linesOf(output)).toBeLessThanOrEqual(15);
  // A user who is not root may have no sandbox where root has one.
  expect(output).toMatch(/JavaScript sessions that keep their state, (?:in a sandbox|not in a sandbox)/);
  if (!isRoot && (await sandboxProblem()) === undefined) expect(output).toContain("in a sandbox: no network");
  expect(await evaluate(output)).toEqual([{ type: "text", text: "=> 42" }]);
});

it("npm ci && npm start says plainly that there is no sandbox without bubblewrap, and what to install", async () => {
  const output = await start(await lastingPort(), pathWithoutBubblewrap());
  expect(linesOf(output)).toBeLessThanOrEqual(15);
  expect(output).toContain("not in a sandbox: code has your rights");
  expect(output).toContain("bubblewrap");
  expect(await evaluate(output)).toEqual([{ type: "text", text: "=> 42" }]);
});
