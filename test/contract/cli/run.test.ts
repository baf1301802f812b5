// `catenary run` as clients start it: the server answers as if it were connected directly, its stderr is passed on, and a
// command that cannot be started is reported to the client and on stderr.

import { connect } from "catenary";
import { afterEach, expect, it } from "vitest";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { HAS_TERMINAL, Terminal } from "../../support/terminal/terminal.ts";
import { catenary, CLI, TEST_SERVER_COMMAND, markProcesses, expectNoProcesses, CliProcess } from "./cli-process.ts";
import { IS_LONG, sampleOf } from "../../support/thoroughness.ts";

const THROUGH = [process.execPath, CLI, "run", "--", ...TEST_SERVER_COMMAND] as const;
const FAILING = [process.execPath, "-e", "console.error('no key'); process.exit(3)"] as const;

const INITIALIZE = {
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: NEWEST_SESSION.name, capabilities: {}, clientInfo: { name: "test", version: "1" } },
};

const started: CliProcess[] = [];
afterEach(async () => {
  for (const one of started.splice(0)) {
    one.process.kill("SIGKILL");
    await one.exited;
    await expectNoProcesses(one.mark);
  }
});

function start(args: readonly string[]): CliProcess {
  const one = new CliProcess(["run", ...args]);
  started.push(one);
  return one;
}

async function answered(run: CliProcess): Promise<Record<string, unknown>> {
  const isOver = (): boolean => run.out.includes("\n") || run.process.exitCode !== null;
  await expect.poll(isOver).toBe(true);
  return JSON.parse(run.out.split("\n", 1)[0] || run.err) as Record<string, unknown>;
}

it.each(sampleOf(1, [NEWEST_SESSION.name, NEWEST.name]))(
  "run answers a client of %s as the command would",
  async (revision) => {
    const result = await catenary([
      "call",
      "arguments",
      "text=hi",
      "--revision",
      revision,
      "--verbose",
      "--",
      ...THROUGH,
    ]);
    expect(result).toMatchObject({ code: 0, out: '{"text":"hi"}\n' });
    expect(result.err).toContain(`Connected to demo 1.2.3, revision ${revision}\n`);
  },
);

it.runIf(IS_LONG)(
  "run answers requests sent before its input ended, although the command must be started first",
  async () => {
    const run = start(["--", ...TEST_SERVER_COMMAND]);
    const call = { method: "tools/call", params: { name: "arguments", arguments: { text: "last" } } };
    const requests = [INITIALIZE, { jsonrpc: "2.0", id: 2, ...call }].map((one) => `${JSON.stringify(one)}\n`).join("");
    run.process.stdin.end(requests);
    expect(await run.exited).toBe(0);
    expect(run.out).toContain("last");
  },
);

it("run passes stderr on, and ends with all its processes when stdin closes", async () => {
  const run = start(["--env", "GIVEN=by us", "--", ...TEST_SERVER_COMMAND]);
  const call = (id: number, name: string, args = {}): string =>
    JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: args } });
  run.process.stdin.write(`${JSON.stringify(INITIALIZE)}\n`);
  expect(await answered(run)).toMatchObject({ id: 1, result: { serverInfo: { name: "demo" } } });
  run.process.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  run.process.stdin.write(`${call(2, "logs")}\n${call(3, "environment", { name: "GIVEN" })}\n`);
  await expect.poll(() => run.out).toContain("by us");
  await run.waitForStderr("own stderr\nincomplete line");
  run.process.stdin.end();
  expect(await run.exited).toBe(0);
});

it.each([
  ["does not exist", ["catenary-no-such-command"], 2, "there is no command of that name on the PATH"],
  ["exits at once", FAILING, 4, "exited with code 3"],
])("run reports a command that %s", async (_name, command, code, problem) => {
  const run = start(["--", ...command]);
  run.process.stdin.write(`${JSON.stringify(INITIALIZE)}\n`);
  const message = expect.stringContaining(problem) as string;
  expect(await answered(run)).toMatchObject({ id: 1, error: { message, data: { kind: "unreachable" } } });
  if (code === 4) run.process.stdin.end();
  expect(await run.exited).toBe(code);
  expect(run.err).toContain(problem);
  expect(run.err.includes("no key")).toBe(code === 4);
});

it.runIf(IS_LONG)("run passes long messages both ways, and reports stdout lines that are not messages", async () => {
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
  let stderr = "";
  const onStderr = (text: string): void => void (stderr += text);
  const client = await connect({ command: process.execPath, args }, { onStderr });
  const { content } = await client.callTool("double", { text: "x".repeat(5_000_000) });
  expect((content[0] as { text: string }).text).toHaveLength(10_000_000);
  await client.close();
  expect(stderr).toContain("stdout (not a message): Listening on nothing\n");
});

it.runIf(IS_LONG)("run serves over HTTP", async () => {
  const run = start(["--http", "127.0.0.1:0", "--json", "--", ...TEST_SERVER_COMMAND]);
  const { url } = (await answered(run)) as { url: string };
  const client = await connect(url);
  expect(await client.callTool("echo", { text: "hi" })).toMatchObject({ content: [{ text: "hi" }] });
  await client.close();
  run.process.kill("SIGTERM");
  expect(await run.exited).toBe(0);
});

it.runIf(IS_LONG)("run requires a token over HTTP if it is asked to", async () => {
  const run = start(["--http", "127.0.0.1:0", "--json", "--require-token", "--", ...TEST_SERVER_COMMAND]);
  const { url, token } = (await answered(run)) as { url: string; token: string };
  await expect(connect(url)).rejects.toThrow("it was printed when the server was started");
  const client = await connect(url, { headers: { Authorization: `Bearer ${token}` } });
  expect(await client.callTool("echo", { text: "hi" })).toMatchObject({ content: [{ text: "hi" }] });
  await client.close();
  run.process.kill("SIGTERM");
  expect(await run.exited).toBe(0);
});

it.runIf(HAS_TERMINAL)("run does not wait for a client in a terminal", async () => {
  const { mark, env } = markProcesses();
  const terminal = new Terminal([process.execPath, CLI, "run", "--", "catenary-no-such-command"], { env });
  expect(await terminal.exited).toBe(2);
  expect(terminal.screen).toContain('catenary: cannot start "catenary-no-such-command"');
  await expectNoProcesses(mark);
});
