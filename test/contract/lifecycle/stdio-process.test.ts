// A server process on stdio: it exits soon after its client is gone, leaves no process behind, and first answers what it
// can. Also the usage errors of the command.

import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, expect, it } from "vitest";
import { compiled } from "../../support/programs.ts";
import { IS_LONG } from "../../support/thoroughness.ts";
import { NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";

const INITIALIZE = { id: 0, method: "initialize", params: { protocolVersion: NEWEST_SESSION.name } };
const MARK = "CATENARY_STDIO_TEST";

class Served {
  readonly process: ChildProcessWithoutNullStreams;
  readonly mark = `stdio-${process.pid}-${Math.random().toString(36).slice(2)}`;
  readonly exited: Promise<{ code: number | null; signal: string | null }>;
  out = "";
  err = "";

  constructor(...args: readonly string[]) {
    this.process = spawn(process.execPath, args, { env: { ...process.env, [MARK]: this.mark } });
    this.process.stdout.setEncoding("utf8").on("data", (text: string) => (this.out += text));
    this.process.stderr.setEncoding("utf8").on("data", (text: string) => (this.err += text));
    this.process.stdin.on("error", () => undefined);
    this.exited = new Promise((resolve) => this.process.once("close", (code, signal) => resolve({ code, signal })));
  }

  send(...messages: readonly object[]): void {
    for (const message of messages) this.process.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  get answers(): { id: unknown; result?: Record<string, unknown>; error?: Record<string, unknown> }[] {
    return this.out
      .trim()
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as never);
  }

  async answerTo(id: unknown): Promise<unknown> {
    await expect.poll(() => this.answers.some((answer) => answer.id === id)).toBe(true);
    return this.answers.find((answer) => answer.id === id);
  }

  /** The processes that have our mark in their environment. */
  left(): string[] {
    return readdirSync("/proc").filter((pid) => {
      try {
        return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/environ`, "utf8").includes(`${MARK}=${this.mark}\0`);
      } catch {
        return false;
      }
    });
  }
}

const started: Served[] = [];
function start(...args: readonly string[]): Served {
  const served = new Served(...args);
  started.push(served);
  return served;
}
const stubborn = (...args: readonly string[]): Served =>
  start(compiled("stubborn-server.ts", import.meta.url), ...args);
const cli = (...args: readonly string[]): Served =>
  start(fileURLToPath(new URL("../../../dist/cli/main.js", import.meta.url)), ...args);

afterEach(async () => {
  for (const served of started.splice(0)) {
    served.process.kill("SIGKILL");
    await served.exited;
  }
});

it("a server on its own stdio exits at the end of its input, even with a running timer", async () => {
  const served = stubborn();
  served.send(INITIALIZE);
  await served.answerTo(0);
  served.process.stdin.end();
  expect(await served.exited).toEqual({ code: 0, signal: null });
});

it.runIf(IS_LONG)("a server on its own stdio: first answers what it can within the grace period", async () => {
  const served = stubborn();
  served.send(INITIALIZE, { id: 1, method: "tools/call", params: { name: "wait", arguments: { ms: 200 } } });
  served.send({ id: 2, method: "tools/call", params: { name: "wait", arguments: { ms: 60_000 } } });
  served.process.stdin.end();
  expect(await served.exited).toEqual({ code: 0, signal: null });
  expect(served.answers.find(({ id }) => id === 1)).toMatchObject({ result: { content: [{ text: "waited" }] } });
});

it("a server on its own stdio exits after SIGTERM with 0 and after SIGINT with 130", async () => {
  for (const [signal, code] of [
    ["SIGTERM", 0],
    ["SIGINT", 130],
  ] as const) {
    const served = stubborn();
    served.send(INITIALIZE);
    await served.answerTo(0);
    served.process.kill(signal);
    expect(await served.exited).toEqual({ code, signal: null });
  }
});

it("a server on its own stdio exits when its stdout is closed", async () => {
  const served = stubborn();
  served.send(INITIALIZE);
  await served.answerTo(0);
  served.process.stdout.destroy();
  served.send({ id: 1, method: "ping" }, { id: 2, method: "ping" });
  expect((await served.exited).signal).toBe(null);
});

it.runIf(IS_LONG)("a server on its own stdio ends its children, even those that ignore SIGTERM", async () => {
  const served = stubborn("child");
  served.send(INITIALIZE);
  await served.answerTo(0);
  await expect.poll(() => served.left().length).toBeGreaterThan(1);
  served.process.stdin.end();
  expect(await served.exited).toEqual({ code: 0, signal: null });
  await expect.poll(() => served.left()).toEqual([]);
});

it.runIf(IS_LONG)("a server on its own stdio redirects the output of tools to stderr", async () => {
  const served = stubborn();
  served.send(INITIALIZE, { id: 1, method: "tools/call", params: { name: "print" } });
  await served.answerTo(1);
  expect(served.answers).toHaveLength(2);
  expect(served.err).toContain("printed line");
});

it.runIf(IS_LONG)("the command prints its usage", async () => {
  const help = cli("--help");
  expect(await help.exited).toEqual({ code: 0, signal: null });
  expect(help.out).toContain("serve");
  const bare = cli();
  expect(await bare.exited).toEqual({ code: 1, signal: null });
  expect(bare.out).toBe("");
  expect(bare.err).toContain("Usage");
  const serve = cli("serve", "--help");
  await serve.exited;
  expect(serve.out).toContain("MODULE");
});

it("the command prints its version", async () => {
  const version = cli("--version");
  await version.exited;
  const { version: expected } = JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8")) as {
    version: string;
  };
  expect(version.out).toBe(`${expected}\n`);
});

it.runIf(IS_LONG)("the command reports mistakes in one line with the right exit code", async () => {
  const mistakes: [string[], number, string][] = [
    [["nonsense"], 1, "no command nonsense"],
    [["serve", "a.js", "b.js"], 1, "one CONFIG or MODULE"],
    [["serve", "--wrong", "x"], 1, "--wrong"],
    [["serve", "no/such/module.js"], 2, "no/such/module.js"],
    [["serve", "package.json"], 1, "catenary: package.json has 1 error; nothing was started\n"],
  ];
  for (const [args, code, words] of mistakes) {
    const run = cli(...args);
    expect(await run.exited, args.join(" ")).toEqual({ code, signal: null });
    expect(run.err).toContain(words);
    expect(run.err).toMatch(/^catenary: /m);
    expect(run.out).toBe("");
  }
});

it("the command serves the server of a module", async () => {
  const served = cli("serve", fileURLToPath(new URL("../../../examples/weather/server.js", import.meta.url)));
  served.send(INITIALIZE, { id: 1, method: "tools/list" });
  expect(await served.answerTo(1)).toMatchObject({
    result: { tools: expect.arrayContaining([expect.objectContaining({ name: "get_weather" })]) as unknown },
  });
  served.process.stdin.end();
  expect(await served.exited).toEqual({ code: 0, signal: null });
});
