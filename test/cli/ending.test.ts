// How a command comes to its end: by signals, once and twice, by readers and listeners that leave, by a disk that is
// full. Whatever the way, the exit code says it, and nobody is left behind.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CLI, DESK_COMMAND, deskOverHttp, marking, nobodyLeft, Run } from "./stage.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-ending-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe("the end of it", () => {
  it.each(["SIGINT", "SIGTERM", "SIGHUP"] as const)("%s cancels the call, and the code is 130", async (signal) => {
    const log = join(folder, `${signal}.log`);
    const run = new Run(["call", "hang", "--json", "--", ...DESK_COMMAND], { env: { CATENARY_TEST_LOG: log } });
    await run.says("hanging");
    run.process.kill(signal);
    expect(await run.exited).toBe(130);
    expect(run.err).toContain("Cancelling");
    expect(JSON.parse(run.out)).toEqual({ error: { kind: "interrupted", message: "Cancelled", reason: "cancelled" } });
    expect(readFileSync(log, "utf8")).toContain("aborted");
    await nobodyLeft(run.mark);
  });

  it("a second signal does not wait, and the child is gone all the same", async () => {
    const log = join(folder, "deaf.log");
    const run = new Run(["call", "deaf", "--", ...DESK_COMMAND], { env: { CATENARY_TEST_LOG: log } });
    await run.says("deaf");
    await expect.poll(() => readFileSync(log, "utf8"), { timeout: 10_000 }).toContain("deaf");
    run.process.kill("SIGINT");
    await run.says("Cancelling");
    run.process.kill("SIGINT");
    expect(await run.exited).toBe(130);
    await nobodyLeft(run.mark);
  });

  it("over HTTP the tool hears of it too", async () => {
    const log = join(folder, "http.log");
    const other = await deskOverHttp({ env: { CATENARY_TEST_LOG: log } });
    try {
      const run = new Run(["call", other.url, "hang"]);
      await run.says("hanging");
      run.process.kill("SIGINT");
      expect(await run.exited).toBe(130);
      await expect.poll(() => readFileSync(log, "utf8")).toContain("aborted");
    } finally {
      await other.close();
    }
  });

  it("a listener that leaves early is no failure either", async () => {
    const run = new Run(["call", "count", "to=12", "ms=150", "--", ...DESK_COMMAND]);
    await run.says("progress");
    run.process.stderr.destroy();
    expect(await run.exited).toBe(0);
    expect(run.out).toBe("counted to 12\n");
    await nobodyLeft(run.mark);
  });

  it.skipIf(!existsSync("/dev/full"))("a disk that is full is one, and the child is gone all the same", async () => {
    const line = [process.execPath, CLI, "read", "desk://note", "--", ...DESK_COMMAND];
    const { mark, env } = marking();
    const shell = spawn("sh", ["-c", 'exec "$@" > /dev/full', "sh", ...line], { env: { ...process.env, ...env } });
    const exited = once(shell, "exit");
    expect(await text(shell.stderr)).toMatch(/^catenary: stdout cannot be written: ENOSPC.*\n$/);
    expect(await exited).toEqual([1, null]);
    await nobodyLeft(mark);
  });

  it("a reader that leaves early is no failure", async () => {
    const run = new Run(["call", "echo", "text=x", "times=100000", "--", ...DESK_COMMAND]);
    run.process.stdout.destroy();
    expect(await run.exited).toBe(0);
    expect(run.err).toBe("");
    await nobodyLeft(run.mark);
  });
});
