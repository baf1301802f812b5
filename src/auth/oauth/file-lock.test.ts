// The lock between real processes: many that increment a number, killed holders, files of dead owners, and timeouts.

import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { compiledImport } from "../../../test/support/programs.ts";
import { IS_LONG } from "../../../test/support/thoroughness.ts";
import { ConnectionError } from "../../core/errors.ts";
import { fileLock } from "../../core/file-lock.ts";
import { fileTokens } from "./token-stores.ts";

const STORE = compiledImport("token-stores.ts", import.meta.url);
const PROCESSES = IS_LONG ? 8 : 3;
const TIMES = IS_LONG ? 50 : 15;

let home = "";
let file = "";
const children = new Set<ChildProcess>();

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "catenary-lock-"));
  file = join(home, "tokens.json");
});

afterEach(async () => {
  vi.restoreAllMocks();
  await Promise.all([...children].map(kill));
  rmSync(home, { recursive: true, force: true });
});

/** Starts a process that runs this code with a `store` on the same file. */
function start(code: string): { child: ChildProcess; lines: AsyncIterator<string>; ended: Promise<number | null> } {
  const script = `import { fileTokens } from ${STORE};
    import { openSync, closeSync, unlinkSync } from "node:fs";
    const store = fileTokens(${JSON.stringify(file)});
    const inside = ${JSON.stringify(join(home, "inside"))};
    ${code}`;
  const args = ["--input-type=module", "-e", script];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  children.add(child);
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  return { child, lines: createInterface(child.stdout)[Symbol.asyncIterator](), ended };
}

async function kill(child: ChildProcess): Promise<void> {
  children.delete(child);
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await ended;
}

/** Increments the number on request. Fails if another process is inside at the same time. */
const count = (times: number): string => `
  process.stdout.write("ready\\n");
  await new Promise((resolve) => process.stdin.once("data", resolve));
  process.stdin.destroy();
  for (let i = 0; i < ${times}; i += 1) {
    await store.exclusively("count", async () => {
      closeSync(openSync(inside, "wx"));
      await store.set("count", String(Number((await store.get("count")) ?? 0) + 1));
      unlinkSync(inside);
    });
  }`;

/** Acquires the lock, reports it, and keeps it. */
const HOLD = `
  await store.exclusively("count", async () => {
    process.stdout.write("held\\n");
    await new Promise((resolve) => setTimeout(resolve, 600_000));
  });`;

async function countTogether(times: number): Promise<void> {
  const all = Array.from({ length: PROCESSES }, () => start(count(times)));
  await Promise.all(all.map(({ lines }) => lines.next()));
  for (const { child } of all) child.stdin?.write("go\n");
  expect(await Promise.all(all.map(({ ended }) => ended))).toEqual(all.map(() => 0));
  expect(await fileTokens(file).get("count")).toBe(String(PROCESSES * times));
  expect(readdirSync(`${file}.locks`)).toEqual([]);
}

/** The name of the only file in the lock directory. */
const lockFile = (): string => {
  const names = readdirSync(`${file}.locks`);
  expect(names).toHaveLength(1);
  return names[0] ?? "";
};

it(`a lock between processes loses no increment of ${PROCESSES} processes with ${TIMES} increments each`, async () => {
  await countTogether(TIMES);
});

it("a lock between processes is acquired by one of many after its holder was killed", async () => {
  const holder = start(HOLD);
  expect(await holder.lines.next()).toMatchObject({ value: "held" });
  const left = lockFile();
  await kill(holder.child);
  expect(lockFile()).toBe(left);
  await countTogether(5);
});

it("a lock between processes goes to a waiter when its holder is killed", async () => {
  const holder = start(HOLD);
  await holder.lines.next();
  let isAcquired = false;
  const waiting = fileTokens(file).exclusively("count", () => {
    isAcquired = true;
    return Promise.resolve("acquired");
  });
  await delay(200);
  expect(isAcquired).toBe(false);
  holder.child.kill("SIGKILL");
  expect(await waiting).toBe("acquired");
  expect(readdirSync(`${file}.locks`)).toEqual([]);
});

it("a lock between processes stays with a suspended holder", async () => {
  const holder = start(HOLD);
  await holder.lines.next();
  holder.child.kill("SIGSTOP");
  const waiting = fileTokens(file, { waitMs: 300 }).exclusively("count", () => Promise.resolve());
  const held = lockFile();
  await expect(waiting).rejects.toMatchObject({
    kind: "timeout",
    mayHaveRun: false,
    message: expect.stringContaining(`process ${holder.child.pid} for 300 ms`),
  });
  await expect(waiting).rejects.toThrow(join(`${file}.locks`, held));
  expect(lockFile()).toBe(held);
  expect(await fileTokens(file).exclusively("another key", () => Promise.resolve("free"))).toBe("free");
});

const locks = (): string => join(home, "locks");
/** Takes the lock on "a" and leaves a file of another owner, whose name is a change of ours. Returns its path. */
async function plant(change: (owner: string) => string, suffix = ""): Promise<string> {
  let owner = "";
  let path = "";
  await fileLock(locks()).exclusively("a", () => {
    path = join(locks(), readdirSync(locks())[0] ?? "");
    owner = readFileSync(path, "utf8");
    return Promise.resolve();
  });
  writeFileSync(path + suffix, change(owner));
  return path + suffix;
}
const otherStart = (owner: string): string => owner.replace(/-(\d+)-(\d+)-/, "-$1-1$2-");
const deadProcess = (owner: string): string => owner.replace(/-\d+-/, "-4194305-");
const otherScope = (owner: string): string => owner.replace(/^[0-9a-f]+-/, "0123456789ab-");

it("a lock is not held by a process with our ID and another start time", async () => {
  await plant(otherStart);
  expect(await fileLock(locks(), 5_000).exclusively("a", () => Promise.resolve("acquired"))).toBe("acquired");
  expect(readdirSync(locks())).toEqual([]);
});

it("a lock is not blocked by an owner that died while it removed the file of another dead one", async () => {
  await plant(deadProcess, ".steal");
  await plant(deadProcess);
  expect(await fileLock(locks(), 5_000).exclusively("a", () => Promise.resolve("acquired"))).toBe("acquired");
  expect(readdirSync(locks())).toEqual([]);
});

it.runIf(IS_LONG).each([
  ["in another PID scope", otherScope],
  ["that has not written its name", () => ""],
])("a lock is held by a process %s until it is silent for long", async (_which, change) => {
  const path = await plant(change);
  await expect(fileLock(locks(), 200).exclusively("a", () => Promise.resolve())).rejects.toThrow(path);
  let now = 0;
  vi.spyOn(performance, "now").mockImplementation(() => now);
  let isAcquired = false;
  const waiting = fileLock(locks(), 60_000).exclusively("a", () => {
    isAcquired = true;
    return Promise.resolve();
  });
  await delay(200);
  now = 29_999;
  await delay(200);
  utimesSync(path, 1, 1);
  await delay(200);
  now = 59_000;
  await delay(200);
  expect(isAcquired).toBe(false);
  const later = (): boolean => {
    now += 40_000;
    return isAcquired;
  };
  await expect.poll(later, { interval: 100 }).toBe(true);
  await waiting;
  expect(readdirSync(locks())).toEqual([]);
});

it("a lock is not removed by an owner that lost it", async () => {
  let path = "";
  await fileLock(locks()).exclusively("a", () => {
    path = join(locks(), readdirSync(locks())[0] ?? "");
    writeFileSync(path, "another owner");
    return Promise.resolve();
  });
  expect(readFileSync(path, "utf8")).toBe("another owner");
});

it("a lock is left by an aborted caller, which blocks no other", async () => {
  const [one, two] = [fileLock(locks()), fileLock(locks())];
  let release!: () => void;
  const first = one.exclusively("a", () => new Promise<void>((resolve) => (release = resolve)));
  await expect.poll(() => readdirSync(locks())).toHaveLength(1);
  const stop = new AbortController();
  const queued = one.exclusively("a", () => Promise.resolve(), stop.signal);
  const waiting = two.exclusively("a", () => Promise.resolve(), stop.signal);
  await delay(20);
  stop.abort(new Error("no longer wanted"));
  await expect(queued).rejects.toThrow("no longer wanted");
  await expect(waiting).rejects.toThrow("no longer wanted");
  expect(readdirSync(locks())).toHaveLength(1);
  release();
  await first;
  expect(await two.exclusively("a", () => Promise.resolve("acquired"))).toBe("acquired");
  await expect(two.exclusively("a", () => Promise.resolve(), stop.signal)).rejects.toThrow("no longer wanted");
});

it("a lock is waited for until the timeout, within one process too", async () => {
  const lock = fileLock(locks(), 50);
  let release: (() => void) | undefined;
  const first = lock.exclusively("a", () => new Promise<void>((resolve) => (release = resolve)));
  await expect.poll(() => release).toBeDefined();
  await expect(lock.exclusively("a", () => Promise.resolve())).rejects.toMatchObject({
    kind: "timeout",
    message: expect.stringContaining(locks()),
  });
  release?.();
  await first;
});

it("a lock is released by work that fails", async () => {
  const lock = fileLock(locks());
  await expect(lock.exclusively("a", () => Promise.reject(new Error("failed")))).rejects.toThrow("failed");
  expect(readdirSync(locks())).toEqual([]);
  expect(await lock.exclusively("a", () => Promise.resolve("acquired"))).toBe("acquired");
});

it("a lock names its directory if that cannot be used", async () => {
  writeFileSync(locks(), "");
  const refused = fileLock(locks()).exclusively("a", () => Promise.resolve());
  await expect(refused).rejects.toBeInstanceOf(ConnectionError);
  await expect(refused).rejects.toMatchObject({ kind: "refused", message: expect.stringContaining(locks()) });
  rmSync(locks());
  mkdirSync(locks(), { mode: 0o700 });
  expect(await fileLock(locks()).exclusively("a", () => Promise.resolve("acquired"))).toBe("acquired");
});
