// A config, or a server of the config in the current folder, as the target of a command.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { catenary, CLI, TEST_SERVER_COMMAND } from "./cli-process.ts";
import { IS_LONG } from "../../support/thoroughness.ts";

const [command, ...args] = TEST_SERVER_COMMAND;
/** Writes to stderr and exits. */
const BROKEN = { command: process.execPath, args: ["-e", "console.error('no key'); process.exit(1)"] };

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-config-target-"));
  const mcpServers = { first: { command, args }, second: { command, args } };
  writeFileSync(join(folder, "catenary.json"), JSON.stringify({ mcpServers }));
  writeFileSync(join(folder, "one.json"), JSON.stringify({ mcpServers: { first: { command, args } } }));
  writeFileSync(
    join(folder, "some.json"),
    JSON.stringify({ mcpServers: { first: { command, args }, broken: BROKEN } }),
  );
  writeFileSync(join(folder, "wrong.json"), '{"mcpServers": {"first": {"command": 3}}}');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (...line: string[]): ReturnType<typeof catenary> => catenary(line, "", { cwd: folder });
const toolNames = (out: string): string[] =>
  (JSON.parse(out) as { tools: { name: string }[] }).tools.map(({ name }) => name);

it("a config as the target lists the tools of all its servers, also those that take long to start", async () => {
  const [one, both] = await Promise.all([run("tools", "one.json", "--json"), run("tools", "catenary.json", "--json")]);
  expect([one.code, both.code]).toEqual([0, 0]);
  expect(toolNames(both.out)).toHaveLength(toolNames(one.out).length * 2);
});

it("a config as the target is suggested if there is no target", async () => {
  const { code, err } = await run("tools");
  expect(code).toBe(1);
  expect(err).toContain("tools needs a target; for all servers of this folder: catenary tools catenary.json\n");
});

it.runIf(IS_LONG)("a config as the target calls a tool of one of its servers", async () => {
  expect(await run("call", "one.json", "echo", "text=hi")).toMatchObject({ code: 0, out: "hi\n", err: "" });
});

it.runIf(IS_LONG)(
  "a config as the target takes the name of a server before that of a tool, whether or not the gateway shows it so",
  async () => {
    expect(await run("call", "some.json", "first_echo", "text=hi")).toMatchObject({ code: 0, out: "hi\n" });
    expect(await run("call", "catenary.json", "second_echo", "text=hi")).toMatchObject({ code: 0, out: "hi\n" });
    expect(await run("call", "some.json", "broken_echo")).toMatchObject({ code: 2 });
  },
);

it.runIf(IS_LONG)("a config as the target can be one server by its name", async () => {
  expect(await run("call", "second", "echo", "text=hi")).toMatchObject({ code: 0, out: "hi\n", err: "" });
  expect(await run("call", "secnod", "echo")).toMatchObject({
    code: 2,
    err: "catenary: There is no server secnod in catenary.json; did you mean second?\n",
  });
});

it.runIf(IS_LONG)("a config as the target names the servers that failed, and says why", async () => {
  const { code, out, err } = await run("tools", "some.json", "--json");
  expect(code).toBe(0);
  expect(toolNames(out)).toContain("echo");
  expect(err).toContain("Not listed: broken (");
});

it.runIf(IS_LONG)("a config as the target is reported like any config if it is wrong or missing", async () => {
  const wrong = await run("tools", "wrong.json");
  expect(wrong.code).toBe(1);
  expect(wrong.err).toContain("wrong.json:1:38: error: ");
  expect(await run("tools", "none.json")).toMatchObject({
    code: 2,
    err: "catenary: There is no config none.json; check the path\n",
  });
});

it.runIf(IS_LONG)("run takes its command without --, and leaves the options after it to the command", async () => {
  const line = [process.execPath, CLI, "run", ...TEST_SERVER_COMMAND, "--stdio"];
  expect(await run("call", "echo", "text=hi", "--", ...line)).toMatchObject({ code: 0, out: "hi\n" });
});
