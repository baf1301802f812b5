// `catenary run` as clients start it: the server behind it answers as if it stood there alone, what it says on stderr
// comes through, and a command that cannot be started is told to the client and to the person.

import { connect } from "catenary";
import { afterEach, describe, expect, it } from "vitest";
import { NEWEST, NEWEST_SESSION } from "../../src/protocol/revisions/index.ts";
import { HAS_TERMINAL, Terminal } from "../support/terminal.ts";
import { catenary, CLI, DESK_COMMAND, marking, nobodyLeft, Run } from "./stage.ts";

const THROUGH = [process.execPath, CLI, "run", "--", ...DESK_COMMAND] as const;
const FAILING = [process.execPath, "-e", "console.error('no key'); process.exit(3)"] as const;

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: NEWEST_SESSION.name, capabilities: {}, clientInfo: { name: "test", version: "1" } },
};

const started: Run[] = [];
afterEach(async () => {
  for (const one of started.splice(0)) {
    one.process.kill("SIGKILL");
    await one.exited;
    await nobodyLeft(one.mark);
  }
});

function start(args: readonly string[]): Run {
  const one = new Run(["run", ...args]);
  started.push(one);
  return one;
}

async function answered(run: Run): Promise<Record<string, unknown>> {
  const isOver = (): boolean => run.out.includes("\n") || run.process.exitCode !== null;
  await expect.poll(isOver, { timeout: 20_000 }).toBe(true);
  return JSON.parse(run.out.split("\n", 1)[0] || run.err) as Record<string, unknown>;
}

describe("run", () => {
  it.each([NEWEST.name, NEWEST_SESSION.name])("answers a client of %s as the command would", async (revision) => {
    const said = await catenary([
      "call",
      "arguments",
      "text=hi",
      "--revision",
      revision,
      "--verbose",
      "--",
      ...THROUGH,
    ]);
    expect(said).toMatchObject({ code: 0, out: '{"text":"hi"}\n' });
    expect(said.err).toContain(`Connected to desk 1.2.3, revision ${revision}\n`);
  });

  it("answers what was asked before its input ended, though the command had to be started for it", async () => {
    const run = start(["--", ...DESK_COMMAND]);
    const call = { method: "tools/call", params: { name: "arguments", arguments: { text: "last" } } };
    const asked = [INITIALIZE, { jsonrpc: "2.0", id: 2, ...call }].map((one) => `${JSON.stringify(one)}\n`).join("");
    run.process.stdin.end(asked);
    expect(await run.exited).toBe(0);
    expect(run.out).toContain("last");
  });

  it("passes stderr on as it comes, and ends with its stdin, and all that it started too", async () => {
    const run = start(["--env", "GIVEN=by us", "--", ...DESK_COMMAND]);
    const call = (id: number, name: string, args = {}): string =>
      JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: args } });
    run.process.stdin.write(`${JSON.stringify(INITIALIZE)}\n`);
    expect(await answered(run)).toMatchObject({ id: 1, result: { serverInfo: { name: "desk" } } });
    run.process.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    run.process.stdin.write(`${call(2, "logs")}\n${call(3, "environment", { name: "GIVEN" })}\n`);
    await expect.poll(() => run.out, { timeout: 10_000 }).toContain("by us");
    await run.says("own stderr\nwithout an end");
    run.process.stdin.end();
    expect(await run.exited).toBe(0);
  });

  it.each([
    ["is not there", ["catenary-no-such-command"], 2, "there is no command of that name on the PATH"],
    ["does not come to speak", FAILING, 4, "exited with code 3"],
  ])("answers for a command that %s, and says so", async (_name, command, code, words) => {
    const run = start(["--", ...command]);
    run.process.stdin.write(`${JSON.stringify(INITIALIZE)}\n`);
    const message = expect.stringContaining(words) as string;
    expect(await answered(run)).toMatchObject({ id: 1, error: { message, data: { kind: "unreachable" } } });
    if (code === 4) run.process.stdin.end();
    expect(await run.exited).toBe(code);
    expect(run.err).toContain(words);
    expect(run.err.includes("no key")).toBe(code === 4);
  });

  it("passes long messages on both ways, and tells what is no message", async () => {
    const program = `
      console.log("Listening on nothing");
      const result = { initialize: { protocolVersion: "${NEWEST_SESSION.name}", capabilities: { tools: {} }, serverInfo: { name: "long", version: "1" } },
        "tools/list": { tools: [{ name: "double", inputSchema: { type: "object" } }] } };
      require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
        const { id, method, params } = JSON.parse(line);
        const text = () => params.arguments.text.repeat(2);
        if (id !== undefined) console.log(JSON.stringify({ jsonrpc: "2.0", id, result: result[method] ?? { content: [{ type: "text", text: text() }] } }));
      });`;
    const args = [CLI, "run", "--revision", NEWEST_SESSION.name, "--", process.execPath, "-e", program];
    let said = "";
    const onStderr = (text: string): void => void (said += text);
    const limits = { messageBytes: 64 * 1024 * 1024 };
    const client = await connect({ command: process.execPath, args }, { onStderr, limits });
    const { content } = await client.callTool("double", { text: "x".repeat(5_000_000) });
    expect((content[0] as { text: string }).text).toHaveLength(10_000_000);
    await client.close();
    expect(said).toContain("stdout, but no message: Listening on nothing\n");
  });

  it("serves over HTTP where that is wanted", async () => {
    const run = start(["--http", "127.0.0.1:0", "--json", "--", ...DESK_COMMAND]);
    const { url } = (await answered(run)) as { url: string };
    const client = await connect(url);
    expect(await client.callTool("echo", { text: "hi" })).toMatchObject({ content: [{ text: "hi" }] });
    await client.close();
    run.process.kill("SIGTERM");
    expect(await run.exited).toBe(0);
  });

  it.runIf(HAS_TERMINAL)("does not wait for a client where a person sits", async () => {
    const { mark, env } = marking();
    const terminal = new Terminal([process.execPath, CLI, "run", "--", "catenary-no-such-command"], { env });
    expect(await terminal.exited).toBe(2);
    expect(terminal.screen).toContain('catenary: cannot start "catenary-no-such-command"');
    await nobodyLeft(mark);
  });
});
