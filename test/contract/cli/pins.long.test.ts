// `catenary pins` beside a gateway with the middleware pin: what is held is shown, and can be used once it is approved.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { catenary, CLI, type CliResult } from "./cli-process.ts";

/** The description of its tool is in a file. */
const SERVER = `
import { readFileSync } from "node:fs";
export default async ({ method }) => {
  if (method === "server/discover") return { capabilities: { tools: {} } };
  const description = readFileSync(new URL("description.txt", import.meta.url), "utf8");
  if (method === "tools/list") return { tools: [{ name: "search", description, inputSchema: { type: "object" } }] };
  return { content: [{ type: "text", text: "found" }] };
};`;

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-pins-"));
  writeFileSync(join(folder, "notes.mjs"), SERVER);
  const config = { mcpServers: { notes: { module: "./notes.mjs", use: ["pin"] } } };
  writeFileSync(join(folder, "catenary.json"), JSON.stringify(config));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const run = (...args: string[]): Promise<CliResult> =>
  catenary(args, "", { cwd: folder, env: { ...process.env, XDG_STATE_HOME: join(folder, "state") } });
const describeTool = (text: string): void => writeFileSync(join(folder, "description.txt"), text);
const tools = async (): Promise<unknown> =>
  (JSON.parse((await run("tools", "catenary.json", "--json")).out) as { tools: unknown[] }).tools.length;

it("shows what is held and what has changed in it, approves it, and forgets it", async () => {
  describeTool("Finds notes\nin all folders");
  expect(await tools()).toBe(1);
  expect((await run("pins")).out).toBe("approved  tool notes/search\n");

  describeTool("Finds notes\u{e0041}\u{202e}\nin all folders");
  expect(await tools()).toBe(0);
  const call = await run("call", "catenary.json", "search");
  expect(call.code).toBe(2);
  expect(call.err).toMatch(
    /^catenary: warning: The tool "search" of "notes": changed since the approval, so not shown;/m,
  );
  expect(call.err).not.toContain("trace-warnings");
  const { out } = await run("pins", "catenary.json", "notes/search");
  expect(out).toBe(
    [
      "changed   tool notes/search",
      "    description:",
      "      - Finds notes",
      String.raw`      + Finds notes\u{e0041}\u{202e}`,
      "        in all folders",
      "",
      "Held back: 1. To approve: catenary pins approve catenary.json notes/search",
      "",
    ].join("\n"),
  );
  const { items } = JSON.parse((await run("pins", "--json")).out) as { items: object[] };
  expect(items).toMatchObject([
    { server: "notes", kind: "tool", name: "search", state: "changed", approved: { name: "search" } },
  ]);

  // With what has changed: the server may have changed it again since it was shown.
  // The config may come first or last.
  expect((await run("pins", "approve", "notes", "catenary.json")).out).toMatch(
    /^approved {2}tool notes\/search\n {4}description:\n/,
  );
  expect(await tools()).toBe(1);
  expect((await run("call", "catenary.json", "search")).out).toContain("found");
  expect((await run("pins", "approve", "notes")).out).toContain("there is nothing to approve");
  expect((await run("pins", "reset", "notes/search")).out).toBe("forgotten  tool notes/search\n");
  expect(await tools()).toBe(0);
  expect((await run("pins", "reset", "notes")).out).toBe("forgotten  tool notes/search\n");
  expect(await tools()).toBe(1);
});

it("explains mistakes", async () => {
  const unknown = await run("pins", "nothing");
  expect([unknown.code, unknown.err]).toEqual([
    2,
    "catenary: There are no definitions of nothing; write SERVER or SERVER/NAME; the servers are notes\n",
  ]);
  expect((await run("pins", "approve", "notes/serch")).err).toContain("; did you mean notes/search?");
  expect((await run("pins", "aprove", "notes")).err).toContain("did you mean catenary pins approve?");
  expect((await run("pins", "approve")).code).toBe(1);
  writeFileSync(join(folder, "plain.json"), JSON.stringify({ mcpServers: { notes: { module: "./notes.mjs" } } }));
  const plain = await run("pins", "plain.json");
  expect([plain.code, plain.err]).toEqual([
    1,
    'catenary: plain.json does not use the middleware pin; add it: "chain": ["pin"]\n',
  ]);
});

it("names the only server of a config as it does when there are more", async () => {
  const notes = { module: "./notes.mjs" };
  const write = (mcpServers: object): void =>
    writeFileSync(
      join(folder, "one.json"),
      JSON.stringify({ mcpServers, chain: [{ pin: { file: "one-pins.json", first: "hold" } }] }),
    );
  const listed = async (): Promise<string> => (await run("pins", "one.json")).out;
  write({ notes });
  expect(await listed()).toContain("To let the servers list what they offer: catenary tools CONFIG");
  await run("tools", "one.json");
  expect(await listed()).toContain("new       tool notes/search\n");
  expect((await run("pins", "approve", "one.json", "notes")).out).toMatch(/^approved {2}tool notes\/search\n {4}/);
  write({ notes, other: notes });
  await run("tools", "one.json");
  expect(await listed()).toMatch(
    /^approved {2}tool notes\/search\nnew {7}tool other\/search\n[^]*approve one\.json other\/search\n$/,
  );
});

it("compares with the running server if the gateway remembers no list", async () => {
  const notes = { command: process.execPath, args: [CLI, "serve", "notes.mjs"], cwd: folder, remember: false };
  const config = { mcpServers: { notes }, chain: [{ pin: { file: "command-pins.json" } }] };
  writeFileSync(join(folder, "command.json"), JSON.stringify(config));
  describeTool("Finds notes");
  expect((await run("call", "command.json", "search")).out).toContain("found");
  describeTool("Finds all notes");
  expect((await run("call", "command.json", "search")).code).toBe(2);
  expect((await run("pins", "command.json")).out).toContain("changed   tool notes/search\n");
});
