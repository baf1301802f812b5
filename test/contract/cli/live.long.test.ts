// Live sessions from the command line: `up` and `serve` without a config, the token over HTTP, and `eval`.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "catenary";
import { afterAll, beforeAll, expect, it } from "vitest";
import { hasSbcl } from "../../support/setup/sbcl.ts";
import {
  catenary,
  CLI,
  markProcesses,
  expectNoProcesses,
  type CliProcess,
  cliRunner,
  type RunOptions,
} from "./cli-process.ts";

/** A server that is marked as evaluating code, without doing so. */
const MARKED = `
const server = async ({ method }) => {
  if (method === "server/discover") return { capabilities: { tools: {} } };
  return { tools: [{ name: "evaluate", inputSchema: { type: "object" } }] };
};
server[Symbol.for("catenary.evaluatesCode")] = true;
export default server;`;

let folder = "";
let empty = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-live-"));
  empty = join(folder, "empty");
  mkdirSync(empty);
  writeFileSync(join(folder, "marked.mjs"), MARKED);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const run = cliRunner();

/** The JSON line on stdout. */
async function ready(one: CliProcess): Promise<{ url: string; token?: string }> {
  await Promise.race([once(one.process.stdout, "data"), one.exited]);
  return JSON.parse(one.out || one.err) as { url: string; token?: string };
}

async function status(url: string, token?: string): Promise<number> {
  const headers = token === undefined ? undefined : { authorization: `Bearer ${token}` };
  return (await fetch(url, { method: "POST", headers: { ...headers }, body: "" })).status;
}

/** The status of an authenticated request without a valid body. */
const AUTHENTICATED = 415;

it("without a config up --live serves sessions, with a config entry that works", async () => {
  const one = run(["up", "--live", "js", "--http", ":0"], { cwd: empty });
  await one.waitForStderr("This token is valid until you stop the server");
  expect(one.err).toMatch(/^Serving live sessions of js at http:\S+\n {2}js +runs code on this machine +/);
  const entry = /^For a client's config: (.*)$/m.exec(one.err)?.[1] ?? "";
  const { js } = (JSON.parse(entry) as { mcpServers: Record<string, { url: string; headers: Record<string, string> }> })
    .mcpServers;
  if (js === undefined) throw new Error(entry);
  expect(await status(js.url)).toBe(401);
  expect(await status(js.url, "wrong")).toBe(401);
  const client = await connect(js.url, { headers: js.headers });
  const result = await client.callTool("evaluate-js", { code: "const x = 6; x * 7" });
  expect(result).toMatchObject({ content: [{ text: "=> 42" }], structuredContent: { status: "ok" } });
  await client.close();
  const token = js.headers["Authorization"]?.replace("Bearer ", "") ?? "";
  expect(one.err.split(token)).toHaveLength(2);
  one.process.kill("SIGTERM");
  expect(await one.exited).toBe(0);
});

it("without a config serve --live serves them on stdio", async () => {
  const through = [process.execPath, CLI, "serve", "--live", "javascript"];
  const call = ["call", "evaluate-js", "code=[1, 2].map((n) => n + 1)", "--", ...through];
  expect(await catenary(call, "", { cwd: empty })).toMatchObject({ code: 0, out: "=> [ 2, 3 ]\n" });
});

it("without a config serve and up --reload say that there is none, and what to do", async () => {
  for (const [command, ...flags] of [["serve"], ["up", "--reload"]]) {
    const none = await catenary([String(command), ...flags], "", { cwd: empty });
    expect(none).toMatchObject({ code: 2, out: "" });
    expect(none.err).toMatch(/^catenary: There is no catenary\.json here: name a config, /);
    expect(none.err).toContain(`for live sessions without a config, catenary ${command} --live js`);
  }
  const python = await catenary(["up", "--live", "pyton"]);
  expect(python).toMatchObject({
    code: 1,
    err: "catenary: --live pyton is not a language; write one of js, javascript, lisp, smalltalk\n",
  });
  expect(await catenary(["up", "x.json", "--live", "js"])).toMatchObject({ code: 2 });
});

it("the token is generated if the server of a module evaluates code, and printed as JSON", async () => {
  const { url, token } = await ready(run(["serve", join(folder, "marked.mjs"), "--http", ":0", "--json"]));
  expect(await status(url)).toBe(401);
  expect(await status(url, token)).toBe(AUTHENTICATED);
});

it("the token is not required with --no-token, with a warning", async () => {
  const one = run(["up", "--live", "js", "--http", ":0", "--json", "--no-token"], { cwd: empty });
  const { url, token } = await ready(one);
  expect(token).toBeUndefined();
  expect(await status(url)).toBe(AUTHENTICATED);
  await one.waitForStderr("Warning: no token is required, so every program on this machine\ncan run code as you.");
});

it("the token is that of the config, which is not printed and cannot be disabled", async () => {
  const file = join(folder, "closed.json");
  const listen = { token: "${MY_TOKEN}", port: 0 };
  writeFileSync(file, JSON.stringify({ mcpServers: { mine: { module: "./marked.mjs" } }, listen }));
  const env = { MY_TOKEN: "correct-horse" };
  const one = run(["up", file, "--json"], { env });
  const { url, token } = await ready(one);
  expect(token).toBeUndefined();
  expect(await status(url)).toBe(401);
  expect(await status(url, "correct-horse")).toBe(AUTHENTICATED);
  expect(one.out + one.err).not.toContain("correct-horse");
  const refused = await catenary(["up", file, "--no-token"], "", { env });
  expect(refused).toMatchObject({ code: 1, out: "" });
  expect(refused.err).toContain("--no-token contradicts listen.token");
  const stdio = await catenary(["serve", file, "--no-token"], "", { env });
  expect(stdio).toMatchObject({ code: 1, err: "catenary: --no-token needs --http HOST:PORT\n" });
});

const evaluate = (args: readonly string[], input = "", options: RunOptions = {}): ReturnType<typeof catenary> =>
  catenary(["eval", ...args], input, options);

it("eval prints output on its stream, and then the value", async () => {
  const code = 'console.log("out"); console.error("err"); process.stdout.write("half"); ({ a: [1, "b"] })';
  expect(await evaluate(["js", code])).toMatchObject({
    code: 0,
    out: "out\nhalf\n{ a: [ 1, 'b' ] }\n",
    err: "err\n",
  });
});

it("eval reads stdin and files, and supports types and promises", async () => {
  const code = "const n: number = await Promise.resolve(5); n + 1";
  expect(await evaluate(["js", "-"], code)).toMatchObject({ code: 0, out: "6\n", err: "" });
  const file = join(folder, "code.ts");
  writeFileSync(file, code);
  expect(await evaluate(["TS", "--file", file])).toMatchObject({ code: 0, out: "6\n", err: "" });
});

it("eval exits with 5 if the code fails, with a backtrace", async () => {
  const result = await evaluate(["js", 'console.log("before");\nfunction f() { null.x }\nf()']);
  expect(result).toMatchObject({ code: 5, out: "before\n" });
  expect(result.err).toMatch(/^TypeError: Cannot read properties of null.*\n {2}\d: .*f/);
});

it("eval shows the name of the file", async () => {
  const file = join(folder, "wrong.ts");
  writeFileSync(file, "let a = 1;\nnull.x");
  const result = await evaluate(["js", "--file", file]);
  expect(result).toMatchObject({ code: 5, out: "" });
  expect(result.err).toContain(`\n  0: ${file}:2:6\n`);
});

it("eval reports that the code ended its process", async () => {
  const err = "catenary: The code ended its process (exit code 3)\n";
  expect(await evaluate(["js", "process.exit(3)"])).toMatchObject({ code: 5, out: "", err });
});

it("eval prints everything as one JSON document", async () => {
  const result = await evaluate(["js", 'console.log("out"); throw new RangeError("no")', "--json"]);
  expect(result).toMatchObject({ code: 5, err: "" });
  expect(JSON.parse(result.out)).toMatchObject({
    status: "error",
    stdout: "out\n",
    values: [],
    condition: { type: "RangeError", message: "no" },
  });
});

it("eval times out", async () => {
  const result = await evaluate(["js", "for (;;);", "--timeout", "0.3"]);
  expect(result).toMatchObject({ code: 5, out: "" });
  expect(result.err).toMatch(/^catenary: Timed out after 0\.3 s and was interrupted; use --timeout to allow more\n/);
});

it("eval is interrupted by Ctrl-C, after printing output", async () => {
  const one = run(["eval", "js", 'console.log("begun"); for (;;);']);
  await once(one.process.stdout, "data");
  one.process.kill("SIGINT");
  expect(await one.exited).toBe(130);
  expect(one.out).toBe("begun\n");
  expect(one.err).toMatch(/^catenary: Cancelling.*\ncatenary: Interrupted after [\d.]+ s\n/);
});

it("eval ends when stdout is closed", async () => {
  const { mark, env } = markProcesses();
  const code = 'for (;;) console.log("y".repeat(1000));';
  const shell = spawn("sh", ["-c", '"$0" "$1" eval js "$2" | head -c 10', process.execPath, CLI, code], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let out = "";
  shell.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
  await once(shell, "close");
  expect(out).toBe("yyyyyyyyyy");
  await expectNoProcesses(mark);
});

it("eval gives the program arguments and stdin", async () => {
  const code = "let text = ''; for await (const part of process.stdin) text += part; [text, process.argv.slice(2)]";
  const result = await catenary(["eval", "js", code, "--", "a", "--help"], "typed");
  expect(result).toMatchObject({ code: 0, out: "[ 'typed', [ 'a', '--help' ] ]\n", err: "" });
});

it.runIf(hasSbcl())("eval supports Common Lisp, with several values, warnings and conditions", async () => {
  expect(await evaluate(["lisp", '(format t "hi") (floor 17 5)'])).toMatchObject({
    code: 0,
    out: "hi\n3\n2\n",
    err: expect.stringMatching(/^(?:catenary: Preparing Common Lisp.*\n)?$/) as string,
  });
  const failed = await evaluate(["lisp", '(warn "careful") (/ 1 0)']);
  expect(failed).toMatchObject({ code: 5, out: "" });
  expect(failed.err).toMatch(
    /^(?:catenary: Preparing Common Lisp.*\n)?Warning: SIMPLE-WARNING: careful\nDIVISION-BY-ZERO: arithmetic error/,
  );
  const file = join(folder, "code.lisp");
  writeFileSync(file, "\ufeff#!/usr/bin/sbcl --script\n(+ 2 4)");
  expect(await evaluate(["lisp", "--file", file])).toMatchObject({ code: 0, out: "6\n" });
});

it.runIf(hasSbcl())("eval explains the delay of the first start of Common Lisp", async () => {
  const one = run(["eval", "lisp", "1"], { env: { CATENARY_CACHE: join(folder, "cache") } });
  await one.waitForStderr("catenary: Preparing Common Lisp; this takes a few seconds the first time...\n");
  expect(one.out).toBe("");
});

it("eval supports Smalltalk on Amber, which needs no program", async () => {
  const code = "Transcript show: 'hi'; cr. #(1 2) collect: [:each | each * each]";
  expect(await evaluate(["smalltalk", code])).toMatchObject({ code: 0, out: "hi\nan Array (1 4)\n", err: "" });
  const failed = await evaluate(["smalltalk", "nil foo"]);
  expect(failed).toMatchObject({ code: 5, out: "" });
  expect(failed.err).toMatch(/^MessageNotUnderstood: nil does not understand #foo\n/);
});

it("eval says what to install if there is no SBCL", async () => {
  const result = await evaluate(["lisp", "(+ 1 2)"], "", { env: { PATH: empty } });
  expect(result).toMatchObject({ code: 4, out: "" });
  expect(result.err).toMatch(/^catenary: .*sbcl.*apt-get install sbcl/i);
});
