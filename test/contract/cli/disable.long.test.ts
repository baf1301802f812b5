// `catenary disable` and `enable`: what they write, and that a gateway which runs the config uses it at once, for clients
// that are connected, without a restart of the server.

import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "catenary";
import { beforeEach, expect, it, onTestFinished } from "vitest";
import { catenary, cliRunner, type CliResult } from "./cli-process.ts";

const SERVER = `
const tools = ["hello", "goodbye"].map((name) => ({ name, inputSchema: { type: "object" } }));
export default async ({ method }) => {
  if (method === "server/discover") return { capabilities: { tools: {} } };
  if (method === "tools/list") return { tools };
  return { content: [{ type: "text", text: "from " + process.pid }] };
};`;

const CONFIG = `{
  // Mine.
  "mcpServers": {
    "notes": { "module": "./notes.mjs" },
    "other": { "module": "./notes.mjs" }
  }
}
`;

let folder = "";
let file = "";
let env: NodeJS.ProcessEnv = {};
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-disable-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  file = join(folder, "catenary.json");
  env = { XDG_RUNTIME_DIR: join(folder, "run") };
  writeFileSync(join(folder, "notes.mjs"), SERVER);
  writeFileSync(file, CONFIG);
});

const run = cliRunner();
const command = (...args: string[]): Promise<CliResult> => catenary(args, "", { env, cwd: folder });

it("write the config with a backup, and keep everything else", async () => {
  const dry = await command("disable", "notes/hello", "--dry-run", "--json");
  expect(JSON.parse(dry.out)).toMatchObject({ server: "notes", tool: "hello", hidden: true, changed: true });
  expect(readFileSync(file, "utf8")).toBe(CONFIG);
  const refused = await command("disable", "notes/hello");
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("--yes writes without asking") });
  const done = await command("disable", "notes/hello", "catenary.json", "--yes");
  expect(done).toMatchObject({ code: 0, err: expect.stringContaining("hello of notes is hidden from clients") });
  expect(readFileSync(file, "utf8")).toBe(
    CONFIG.replace(
      '"notes": { "module": "./notes.mjs" }',
      '"notes": { "module": "./notes.mjs", "exclude": ["hello"] }',
    ),
  );
  expect(readdirSync(folder).filter((name) => name.endsWith(".bak"))).toHaveLength(1);
  expect((await command("disable", "notes/hello", "--yes")).err).toContain("hello of notes is hidden already");
  await command("enable", "notes/hello", "--yes");
  expect(readFileSync(file, "utf8")).toBe(CONFIG);
  chmodSync(file, 0o444);
  const protectedFile = await command("disable", "other", "--yes");
  expect(protectedFile).toMatchObject({ code: 1, err: expect.stringContaining("it is read-only") });
  expect(readFileSync(file, "utf8")).toBe(CONFIG);
  chmodSync(file, 0o644);
  await command("disable", "other", "--yes");
  expect(readFileSync(file, "utf8")).toContain('"disabled": true');
  const last = await command("disable", "notes", "--yes");
  expect(last).toMatchObject({ code: 1, err: expect.stringContaining("only server that is not hidden") });
  const unknown = await command("disable", "note", "--yes");
  expect(unknown).toMatchObject({ code: 2, err: expect.stringContaining("did you mean notes?") });
  expect(await command("disable", "notes", "nothing.json")).toMatchObject({ code: 2 });
  expect(await command("enable")).toMatchObject({ code: 1 });
});

it("take effect at once in a gateway that runs the config", async () => {
  const one = run(["up", file, "--http", ":0", "--json", "--no-token"], { env, cwd: folder });
  await expect.poll(() => one.out.includes("\n") || one.process.exitCode !== null).toBe(true);
  const { url } = JSON.parse(one.out || one.err) as { url: string };
  const client = await connect(url, { cache: false });
  const names = async (): Promise<string[]> => (await client.listTools()).tools.map(({ name }) => name).toSorted();
  let changes = 0;
  await client.listen({ toolsListChanged: true }, () => (changes += 1));
  expect(await names()).toEqual(["notes_goodbye", "notes_hello", "other_goodbye", "other_hello"]);
  const done = await command("disable", "notes/hello", "--yes");
  expect(done.err).toContain(`The gateway at ${url} uses it now`);
  await expect.poll(() => changes).toBeGreaterThan(0);
  expect(await names()).not.toContain("notes_hello");
  await expect(client.callTool("notes_hello", {})).rejects.toThrow(/hello/);
  await command("disable", "other", "--yes");
  expect((await names()).every((name) => !name.includes("other"))).toBe(true);
  await command("enable", "other", "--yes");
  await command("enable", "notes/hello", "--yes");
  expect(await names()).toHaveLength(4);
  expect(readFileSync(file, "utf8")).toBe(CONFIG);
  await client.close();
});
