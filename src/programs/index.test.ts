// Programs as tools, with real processes: their tools, results, limits, environment and end.

import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest";
import { connect } from "../client/connect.ts";
import type { Client } from "../client/client.ts";
import { evaluatesCode } from "../core/handler-marks.ts";
import { errorMessage } from "../core/values.ts";
import { listProcesses } from "../process/process-tree.ts";
import { programs, type Programs, type ProgramsOptions } from "./index.ts";

const TOOL = `#!/bin/sh
case "$1" in
  --help) cat <<'END'
Usage: tool [OPTION] COMMAND
Does what the tests need.

Options:
  --size=N    a size
END
  ;;
  words) shift; for word; do echo "<$word>"; done ;;
  fail) echo out; echo err >&2; exit 3 ;;
  crash) kill -SEGV $$ ;;
  bytes) printf 'a\\377b' ;;
  many) printf 'begin'; head -c 300000 /dev/zero | tr '\\0' 'x'; printf 'end' ;;
  faces) i=0; while [ $i -lt 100 ]; do printf '\\360\\237\\230\\200'; i=$((i + 1)); done ;;
  where) pwd; echo "[$SECRET_KEY][$GIVEN]" ;;
  input) cat; echo done ;;
  hang) sleep 1000 & echo "$!"; wait ;;
  *) [ "\${1#--size}" != "$1" ] && echo "$1 $2" ;;
esac
`;

const folder = mkdtempSync(join(tmpdir(), "catenary-programs-"));
const tool = join(folder, "tool");
const opened: { client: Client; server: Programs }[] = [];

async function open(options: Partial<ProgramsOptions> = {}): Promise<Client> {
  const server = programs({ programs: [tool], ...options });
  const client = await connect(server);
  opened.push({ client, server });
  return client;
}

async function run(client: Client, ...words: string[]): Promise<{ text: string; isError: boolean | undefined }> {
  const { content, isError } = await client.callTool("tool", { _args: words });
  return { text: (content[0] as { text: string }).text, isError };
}

/** Without /proc, nothing is known to be alive. */
async function isAlive(pid: number): Promise<boolean> {
  return ((await listProcesses()) ?? []).some((one) => one.pid === pid);
}

function script(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\n${text}\n`);
  chmodSync(path, 0o755);
  return path;
}

beforeAll(() => {
  writeFileSync(tool, TOOL);
  chmodSync(tool, 0o755);
});

afterEach(async () => {
  for (const { client, server } of opened.splice(0)) {
    await client.close();
    await server.close();
  }
});

afterAll(() => rmSync(folder, { recursive: true }));

it("a program is a tool with the options of its help", async () => {
  const client = await open({ include: ["tool words*"] });
  expect((await client.listTools()).tools).toEqual([
    {
      name: "tool",
      description:
        "Does what the tests need.\nUsage: tool [OPTION] COMMAND\n_args begins with the subcommand.\nAllowed: tool words*",
      inputSchema: {
        type: "object",
        properties: {
          _args: expect.objectContaining({ type: "array" }) as unknown,
          size: { type: "number", description: "a size (--size)" },
        },
        additionalProperties: false,
      },
      annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
    },
  ]);
  expect(await run(client, "words", "a b", "$(id)", "*", "")).toEqual({
    text: "STDOUT:\n<a b>\n<$(id)>\n<*>\n<>",
    isError: false,
  });
  expect(await run(client, "fail")).toEqual({
    text: "`tool fail` is not allowed; the patterns that are allowed: tool words*",
    isError: true,
  });
});

it("a program has the description that is given", async () => {
  const client = await open({ descriptions: { tool: "My own" } });
  expect((await client.listTools()).tools[0]?.description).toBe("My own");
});

it("a program does not fail with an exit code that is no failure of this program", async () => {
  const client = await open({ okExitCodes: { tool: [3] } });
  expect(await run(client, "fail")).toEqual({ text: "STDOUT:\nout\n\nSTDERR:\nerr\n\nExit code: 3", isError: false });
  expect(await run(client, "crash")).toEqual({ text: "Ended by the signal SIGSEGV", isError: true });
  const other = await open({ okExitCodes: { [tool]: [1, 2] } });
  expect(await run(other, "fail")).toMatchObject({ isError: true });
});

it("a program fails with its exit code, its signal, or the arguments that are wrong", async () => {
  const client = await open();
  expect(await run(client, "fail")).toEqual({ text: "STDOUT:\nout\n\nSTDERR:\nerr\n\nExit code: 3", isError: true });
  expect(await run(client, "crash")).toEqual({ text: "Ended by the signal SIGSEGV", isError: true });
  expect(await run(client, "words")).toEqual({ text: "Command completed with no output", isError: false });
  expect(await client.callTool("tool", { sise: 1 })).toMatchObject({
    content: [
      { text: "Invalid arguments for the tool tool:\n- sise: is not an option of this program; did you mean size?" },
    ],
    isError: true,
  });
  expect(await client.callTool("tool", { size: 2, _args: ["x"] })).toMatchObject({
    content: [{ text: "STDOUT:\n--size=2 x" }],
  });
});

it("a program gets no input, its folder, and only the variables that it needs", async () => {
  vi.stubEnv("SECRET_KEY", "s3cret");
  const plain = await open({ cwd: folder, env: { GIVEN: "given" } });
  expect(await run(plain, "where")).toMatchObject({
    text: expect.stringMatching(/\/catenary-programs-\w+\n\[\]\[given\]$/) as string,
  });
  expect(await run(plain, "input")).toMatchObject({ text: "STDOUT:\ndone" });
  const inheriting = await open({ inheritEnv: ["SECRET_*"] });
  expect((await run(inheriting, "where")).text).toContain("[s3cret][]");
  vi.unstubAllEnvs();
});

it("a program has its output cut in the middle, between two characters", async () => {
  const client = await open({ maxOutputBytes: 1_001 });
  const { text } = await run(client, "many");
  expect(text).toBe(`STDOUT:\nbegin${"x".repeat(496)}\n[299006 bytes left out]\n${"x".repeat(498)}end`);
  expect((await run(client, "bytes")).text).toBe("STDOUT:\na\ufffdb");
  const narrow = await open({ maxOutputBytes: 10 });
  const face = "\u{1f600}";
  expect((await run(narrow, "faces")).text).toBe(`STDOUT:\n${face}\n[392 bytes left out]\n${face}`);
});

it("a program is ended with all its processes by the time limit, a cancelled call, and the end of the server", async () => {
  let { text, isError } = await run(await open({ timeoutMs: 300 }), "hang");
  // On a busy machine, the program may not have begun so soon.
  if (!text.startsWith("STDOUT")) ({ text, isError } = await run(await open({ timeoutMs: 20_000 }), "hang"));
  expect(text).toMatch(/^STDOUT:\n\d+\n\nEnded after (?:0.3|20) seconds, the time limit$/);
  expect(isError).toBe(true);
  const child = Number(/\d+/.exec(text)?.[0]);
  expect(await isAlive(child)).toBe(false);
  for (const end of ["cancel", "close"]) {
    const client = await open({ timeoutMs: 0 });
    const controller = new AbortController();
    let started: (pid: number) => void;
    const pid = new Promise<number>((resolve) => (started = resolve));
    const call = client.callTool(
      "tool",
      { _args: ["hang"] },
      { signal: controller.signal, onProgress: ({ message = "" }) => started(Number(message)) },
    );
    const outcome = call.then(({ content }) => JSON.stringify(content), errorMessage);
    const sleeping = await pid;
    if (process.platform === "linux") expect(await isAlive(sleeping)).toBe(true);
    if (end === "cancel") controller.abort();
    await opened.at(-1)?.server.close();
    expect(await outcome).toContain(end === "cancel" ? "aborted" : "The server of the programs was closed");
    expect(await isAlive(sleeping)).toBe(false);
    await expect(client.callTool("tool", { _args: ["words"] })).rejects.toThrow("closed");
  }
});

it("the help of a program is asked for with --help alone, and with help only if the program says so", async () => {
  const log = join(folder, "asked");
  const asks = script(
    "asks",
    `echo "$*" >> ${log}\n[ "$1" = help ] && echo 'Usage: asks [--deep]' || echo "Type 'asks help' for usage" >&2`,
  );
  const silent = script("silent", `echo "$*" >> ${log}\nexit 1`);
  const client = await open({ programs: [asks, silent] });
  const { tools } = await client.listTools();
  expect(tools.map(({ name, inputSchema }) => [name, Object.keys(inputSchema.properties ?? {})])).toEqual([
    ["asks", ["_args", "deep"]],
    ["silent", ["_args"]],
  ]);
  expect(readFileSync(log, "utf8").trim().split("\n").toSorted()).toEqual(["--help", "--help", "help"]);
});

it("a missing program is left out with a warning", async () => {
  const printed = vi.spyOn(console, "error").mockImplementation(() => undefined);
  const client = await open({ programs: ["no-such-program", tool] });
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["tool"]);
  expect(printed.mock.calls).toEqual([
    [
      'catenary: programs(): cannot start "no-such-program": there is no command of that name on the PATH; install it, or write its full path; its tool is left out until then',
    ],
  ]);
  printed.mockRestore();
});

it("a missing program is an error if there is no other", async () => {
  const server = programs(["no-such-program"]);
  await expect(connect(server)).rejects.toThrow(
    'No program can be started: cannot start "no-such-program": there is no command of that name',
  );
  await server.close();
});

it("a server of programs runs code, so HTTP callers must authenticate", () => {
  expect(evaluatesCode(programs(["git"]))).toBe(true);
});

it.each<[unknown, string]>([
  [[], 'programs(): `programs` must name at least one program, such as ["git"]'],
  [{}, 'programs(): `programs` must name at least one program, such as ["git"]'],
  [["git", "/usr/bin/git"], "programs(): `programs` has git and /usr/bin/git, which both become git"],
  [{ programs: ["git"], inclde: [] }, "programs() has no option `inclde`; did you mean `include`?"],
  [
    { programs: ["git"], timeoutMs: -1 },
    "programs(): `timeoutMs` must be a number of milliseconds above 0, at most 2147483647, not -1",
  ],
  [{ programs: ["git"], env: { A: 1 } }, "programs(): `env` must be an object of strings"],
  [{ programs: ["git"], okExitCodes: { gut: [1] } }, "programs(): `okExitCodes.gut` is not one of the programs: git"],
  [{ programs: ["git"], okExitCodes: { git: 1 } }, "programs(): `okExitCodes.git` must be an array of exit codes"],
  [{ programs: ["git"], descriptions: { gut: "x" } }, "programs(): `descriptions.gut` is not one of the programs: git"],
  [{ programs: ["git"], extraOptions: "yes" }, "programs(): `extraOptions` must be true or false"],
])("refuses %j", (options, message) => {
  expect(() => programs(options as ProgramsOptions)).toThrow(message);
});
