// How a command ends early: by one or two signals, a closed stdout or stderr, or a full disk. In each case the exit code
// is right and no process is left.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  CLI,
  TEST_SERVER_COMMAND,
  startTestServer,
  markProcesses,
  expectNoProcesses,
  CliProcess,
} from "./cli-process.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-interruption-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

it.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)(
  "an early end: %s cancels the call, and the exit code is 130",
  async (signal) => {
    const log = join(folder, `${signal}.log`);
    const run = new CliProcess(["call", "hang", "--json", "--", ...TEST_SERVER_COMMAND], {
      env: { CATENARY_TEST_LOG: log },
    });
    await run.waitForStderr("hanging");
    run.process.kill(signal);
    expect(await run.exited).toBe(130);
    expect(run.err).toContain("Cancelling");
    expect(JSON.parse(run.out)).toEqual({ error: { kind: "interrupted", message: "Cancelled", reason: "cancelled" } });
    expect(readFileSync(log, "utf8")).toContain("aborted");
    await expectNoProcesses(run.mark);
  },
);

it("an early end: a second signal exits at once, and the child process ends too", async () => {
  const log = join(folder, "block.log");
  const run = new CliProcess(["call", "block", "--", ...TEST_SERVER_COMMAND], { env: { CATENARY_TEST_LOG: log } });
  await run.waitForStderr("blocked");
  await expect.poll(() => readFileSync(log, "utf8")).toContain("blocked");
  run.process.kill("SIGINT");
  await run.waitForStderr("Cancelling");
  run.process.kill("SIGINT");
  expect(await run.exited).toBe(130);
  await expectNoProcesses(run.mark);
});

it("an early end over HTTP the tool is cancelled too", async () => {
  const log = join(folder, "http.log");
  const other = await startTestServer({ env: { CATENARY_TEST_LOG: log } });
  try {
    const run = new CliProcess(["call", other.url, "hang"]);
    await run.waitForStderr("hanging");
    run.process.kill("SIGINT");
    expect(await run.exited).toBe(130);
    await expect.poll(() => readFileSync(log, "utf8")).toContain("aborted");
  } finally {
    await other.close();
  }
});

it("an early end: a closed stderr is not a failure", async () => {
  const run = new CliProcess(["call", "count", "to=12", "ms=150", "--", ...TEST_SERVER_COMMAND]);
  await run.waitForStderr("progress");
  run.process.stderr.destroy();
  expect(await run.exited).toBe(0);
  expect(run.out).toBe("counted to 12\n");
  await expectNoProcesses(run.mark);
});

it.skipIf(!existsSync("/dev/full"))(
  "an early end: a full disk is a failure, and the child process ends too",
  async () => {
    const line = [process.execPath, CLI, "read", "demo://note", "--", ...TEST_SERVER_COMMAND];
    const { mark, env } = markProcesses();
    const shell = spawn("sh", ["-c", 'exec "$@" > /dev/full', "sh", ...line], { env: { ...process.env, ...env } });
    const exited = once(shell, "exit");
    expect(await text(shell.stderr)).toMatch(/^catenary: Cannot write to stdout: ENOSPC.*\n$/);
    expect(await exited).toEqual([1, null]);
    await expectNoProcesses(mark);
  },
);

it("an early end: a closed stdout is not a failure", async () => {
  const run = new CliProcess(["call", "echo", "text=x", "times=100000", "--", ...TEST_SERVER_COMMAND]);
  run.process.stdout.destroy();
  expect(await run.exited).toBe(0);
  expect(run.err).toBe("");
  await expectNoProcesses(run.mark);
});
