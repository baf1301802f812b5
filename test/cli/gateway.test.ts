// `catenary serve CONFIG`, `up` and `check`, as processes: a config's servers as one, on stdio and over HTTP; what is
// told of a config that is wrong, and of ends that fail; who is let in; and how it all comes to its end.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "catenary";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ENTER, HAS_TERMINAL, Terminal } from "../support/terminal.ts";
import { catenary, CLI, DESK_COMMAND, marking, nobodyLeft, type Run, runner } from "./stage.ts";

const TOKEN = "correct-horse-battery";
const [NODE, ...DESK_ARGS] = DESK_COMMAND;
const DESK = { command: NODE, args: DESK_ARGS };
/** A server without a package, in a module: it needs no process of its own. */
const MINE = `
export default async ({ method, params }) => {
  if (method === "server/discover") return { capabilities: { tools: {} } };
  if (method === "tools/list") return { tools: [{ name: "mine", inputSchema: { type: "object" } }] };
  return { content: [{ type: "text", text: "mine says " + params.name }], isError: false };
};`;

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-gateway-"));
  writeFileSync(join(folder, "mine.mjs"), MINE);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** Written with a comment, as people do. */
function config(name: string, value: object): string {
  const file = join(folder, name);
  writeFileSync(file, `// for a test\n${JSON.stringify(value, undefined, 2)}\n`);
  return file;
}

const run = runner();

async function ready(one: Run): Promise<{ url: string; ends: Record<string, { state: string; target: string }> }> {
  const isOver = (): boolean => one.out.includes("\n") || one.process.exitCode !== null;
  await expect.poll(isOver, { timeout: 20_000 }).toBe(true);
  return JSON.parse(one.out || one.err) as Awaited<ReturnType<typeof ready>>;
}

describe("check", () => {
  const wrong = '{\n  "mcpServers": {\n    "notes": { "comand": "npx", "env": { "API_KEY": "sk-secret" } }\n  }\n}\n';

  it("explains each mistake with its place, and shows no key", async () => {
    const file = join(folder, "wrong.json");
    writeFileSync(file, wrong);
    const { code, out, err } = await catenary(["check", "wrong.json"], "", { cwd: folder });
    expect(code).toBe(1);
    expect(out).toMatch(
      /^wrong\.json:3:16: error: .*\n {2}3 \| {5}"notes": \{ "comand": .*\n {4}\| {16}\^\n {2}did you mean command /,
    );
    expect(out + err).not.toContain("sk-secret");
    expect(out).not.toContain("\u001b");
    expect(err).toMatch(/^wrong\.json has \d errors?\n$/);
    const json = await catenary(["check", file, "--json"]);
    expect(json).toMatchObject({ code: 1, err: "" });
    expect(JSON.parse(json.out)).toMatchObject({
      ok: false,
      problems: expect.arrayContaining([
        expect.objectContaining({ line: 3, column: 16, severity: "error", message: expect.any(String) }),
      ]),
    });
    // Whoever would serve it hears the same, and nothing is started.
    const serving = await catenary(["serve", "wrong.json"], "", { cwd: folder });
    expect(serving).toMatchObject({ code: 1, out: "" });
    expect(serving.err).toContain(out);
    expect(serving.err).toMatch(/^catenary: wrong\.json has \d errors?; nothing was started\n$/m);
  });

  it("says what there is, and what there is not", async () => {
    const file = config("right.json", { mcpServers: { a: DESK, b: DESK } });
    const right = await catenary(["check", file]);
    expect(right).toMatchObject({ code: 0, out: `ok: ${file} has 2 servers (a, b)\n`, err: "" });
    expect(JSON.parse((await catenary(["check", file, "--json"])).out)).toEqual({
      ...{ ok: true, servers: ["a", "b"], links: [], problems: [] },
    });
    const none = await catenary(["check"], "", { cwd: folder });
    expect(none).toMatchObject({ code: 2, out: "" });
    expect(none.err).toContain("catenary: There is no catenary.json here: name a config, `catenary check FILE`");
  });
});

describe("serve", () => {
  it("makes one server of those of a config, on stdio", async () => {
    config("catenary.json", { mcpServers: { desk: DESK } });
    const through = [process.execPath, CLI, "serve"];
    const said = await catenary(["call", "echo", "text=hi", "--", ...through], "", { cwd: folder });
    expect(said).toMatchObject({ code: 0, out: "hi\n" });
    rmSync(join(folder, "catenary.json"));
    const none = await catenary(["serve", "other.json"], "", { cwd: folder });
    expect(none).toMatchObject({ code: 2, out: "", err: "catenary: There is no config other.json\n" });
  });

  it("says of a module that never comes to its end that it does not", async () => {
    writeFileSync(join(folder, "never.mjs"), "await new Promise(() => undefined);");
    const said = await catenary(["serve", join(folder, "never.mjs")]);
    expect(said).toMatchObject({ code: 1, out: "" });
    expect(said.err).toContain("waits for something that never comes");
  });

  it("asks callers over HTTP for the token of the config, and says no word of it", async () => {
    const file = config("closed.json", {
      mcpServers: { desk: DESK },
      listen: { token: "${MY_TOKEN}", path: "/gate" },
    });
    const one = run(["serve", file, "--http", "127.0.0.1:0", "--json"], { env: { MY_TOKEN: TOKEN } });
    const { url } = await ready(one);
    expect(url).toMatch(/\/gate$/);
    const refused = async (headers: Record<string, string>): Promise<number> =>
      (await fetch(url, { method: "POST", headers, body: "{}" })).status;
    expect(await refused({})).toBe(401);
    expect(await refused({ authorization: `Bearer ${TOKEN}x` })).toBe(401);
    const client = await connect(url, { headers: { authorization: `Bearer ${TOKEN}` } });
    expect(await client.callTool("echo", { text: "in" })).toMatchObject({ content: [{ text: "in" }] });
    await client.close();
    expect(one.err + one.out).not.toContain(TOKEN);
  });
});

describe("up", () => {
  it("tells of its ends, at the start and when one fails, and drains at a signal", async () => {
    const far = { url: "http://127.0.0.1:1/${FAR}/mcp" };
    const file = config("two.json", { mcpServers: { desk: DESK, far, gone: { command: "catenary-no-such-command" } } });
    const one = run(["up", file, "--http", ":0"], { env: { FAR: "a-key-in-a-path" } });
    await one.says("A client's entry:");
    const [, url = ""] = /^Serving .*two\.json at (http:\S+)$/m.exec(one.err) ?? [];
    expect(one.err).toMatch(/^ {2}desk +\S*node \S+ +asleep, starts when/m);
    expect(one.err).toContain(`{"mcpServers":{"two":{"type":"http","url":"${url}"}}}`);
    expect(one.out).toBe("");
    const client = await connect(url);
    expect((await client.callTool("echo", { text: "hi" })).content).toEqual([{ type: "text", text: "hi" }]);
    await one.says("desk started (process ");
    await one.says("gone failed, and is started again in a while: ");
    await one.says("far failed: Nothing listens at 127.0.0.1:1");
    const listed = await catenary(["tools", url, "--json"]);
    expect(listed.err).toContain("What far has is missing: The end far failed: Nothing listens at 127.0.0.1:1");
    const missing = (JSON.parse(listed.out) as { _meta: Record<string, { end: string }[]> })._meta[
      "catenary/unavailable"
    ];
    expect(missing?.map(({ end }) => end)).toEqual(["far", "gone"]);
    const [, pid] = /desk started \(process (\d+)/.exec(one.err) ?? [];
    process.kill(Number(pid), "SIGKILL");
    await one.says("desk failed");
    expect((await client.callTool("echo", { text: "again" })).content).toEqual([{ type: "text", text: "again" }]);
    await one.says("desk restarted (process ");
    await client.close();
    one.process.kill("SIGINT");
    expect(await one.exited).toBe(130);
    expect(one.err.match(/far failed/g)).toHaveLength(1);
    expect(one.err + listed.err + listed.out).not.toContain("a-key-in-a-path");
  });

  it("serves what a module exports beside commands, and says it to programs in one line", async () => {
    const file = config("mine.json", { mcpServers: { mine: { module: "./mine.mjs" } }, listen: { port: 0 } });
    const one = run(["up", file, "--json"]);
    const { url, ends } = await ready(one);
    expect(ends).toMatchObject({ mine: { state: "running", target: "in this process" } });
    const client = await connect(url);
    expect(await client.callTool("mine")).toMatchObject({ content: [{ text: "mine says mine" }] });
    await client.close();
    one.process.kill("SIGTERM");
    expect(await one.exited).toBe(0);
    const module = await catenary(["up", join(folder, "mine.mjs")]);
    expect(module).toMatchObject({ code: 1, out: "" });
    expect(module.err).toContain("is no config; a module is served by catenary serve");
  });
});

describe("inputs", () => {
  const asking = (): string =>
    config("asking.json", {
      inputs: [{ id: "desk-key", type: "promptString", description: "The key", password: true }],
      servers: { desk: { ...DESK, env: { KEY: "${input:desk-key}" } } },
    });

  it("are taken from the environment, which keeps none of it, or missed by name", async () => {
    const through = [process.execPath, CLI, "serve", asking()];
    const env = { CATENARY_INPUT_DESK_KEY: "from outside" };
    const value = async (name: string): Promise<string> =>
      (await catenary(["call", "environment", `name=${name}`, "--", ...through], "", { env })).out;
    expect(await value("KEY")).toBe("from outside\n");
    expect(await value("CATENARY_INPUT_DESK_KEY")).toBe("undefined\n");
    const missed = await catenary(["serve", asking()]);
    expect(missed).toMatchObject({ code: 1, out: "" });
    expect(missed.err).toContain("CATENARY_INPUT_DESK_KEY");
  });

  it.runIf(HAS_TERMINAL)("are asked of the person, who does not see a password", async () => {
    const { mark, env } = marking();
    const terminal = new Terminal([process.execPath, CLI, "up", asking(), "--http", ":0"], { env });
    await terminal.shows("The key:");
    terminal.type(`${TOKEN}${ENTER}`);
    await terminal.shows("A client's entry:");
    expect(terminal.bytes).not.toContain(TOKEN);
    const [, url = ""] = /at (http:\S+)/.exec(terminal.screen) ?? [];
    expect(terminal.bytes).toContain("\u001b[36m");
    const client = await connect(url);
    expect(await client.callTool("environment", { name: "KEY" })).toMatchObject({ content: [{ text: TOKEN }] });
    await client.close();
    terminal.type("\u0003");
    expect(await terminal.exited).toBe(130);
    await nobodyLeft(mark);
  });
});
