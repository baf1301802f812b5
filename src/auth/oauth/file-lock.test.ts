// The lock between processes, with real ones: many that count up one number, holders that are killed, files of owners
// that cannot be alive, and waiting that ends.

import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ConnectionError } from "../../core/errors.ts";
import { FileLock } from "./file-lock.ts";
import { fileTokens } from "./file-tokens.ts";
import { ownName, Watch } from "./lock-owner.ts";

const STORE = new URL("file-tokens.ts", import.meta.url).href;
const PROCESSES = 8;
const TIMES = 50;

let home = "";
let file = "";
const children = new Set<ChildProcess>();

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "catenary-lock-"));
  file = join(home, "tokens.json");
});

afterEach(async () => {
  await Promise.all([...children].map(end));
  rmSync(home, { recursive: true, force: true });
});

/** Another process with the same file, which runs this code with `store` in it, and what it says line by line. */
function start(code: string): { child: ChildProcess; lines: AsyncIterator<string>; ended: Promise<number | null> } {
  const script = `import { fileTokens } from ${JSON.stringify(STORE)};
    import { openSync, closeSync, unlinkSync } from "node:fs";
    const store = fileTokens(${JSON.stringify(file)});
    const inside = ${JSON.stringify(join(home, "inside"))};
    ${code}`;
  const args = ["--import", "tsx", "--input-type=module", "-e", script];
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] });
  children.add(child);
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  return { child, lines: createInterface(child.stdout)[Symbol.asyncIterator](), ended };
}

async function end(child: ChildProcess): Promise<void> {
  children.delete(child);
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGKILL");
  await ended;
}

/** Counts up when it is told to; two that are inside at once fail. */
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

/** Takes the lock, says so, and keeps it. */
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

/** The name of the one file in the directory of locks. */
const lockFile = (): string => {
  const names = readdirSync(`${file}.locks`);
  expect(names).toHaveLength(1);
  return names[0] ?? "";
};

describe("a lock between processes", { timeout: 120_000 }, () => {
  it(`loses nothing of what ${PROCESSES} processes count ${TIMES} times each`, async () => {
    await countTogether(TIMES);
  });

  it("is had by one of many after its holder was killed, and nothing is lost then either", async () => {
    const holder = start(HOLD);
    expect(await holder.lines.next()).toMatchObject({ value: "held" });
    const left = lockFile();
    await end(holder.child);
    expect(lockFile()).toBe(left);
    await countTogether(5);
  });

  it("goes to who waits when its holder is killed in between", async () => {
    const holder = start(HOLD);
    await holder.lines.next();
    const waiting = fileTokens(file).exclusively("count", () => Promise.resolve("had"));
    await expect.poll(() => readdirSync(`${file}.locks`)).toHaveLength(2);
    holder.child.kill("SIGKILL");
    expect(await waiting).toBe("had");
    expect(readdirSync(`${file}.locks`)).toEqual([]);
  });

  it("stays with a holder that is stopped", async () => {
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
});

describe("a lock", () => {
  const locks = (): string => join(home, "locks");
  /** A file of somebody who has the lock on "a" or waits for it, with what differs from a file of ours. */
  async function plant(change: (name: string) => string): Promise<string> {
    let planted = "";
    await new FileLock(locks()).exclusively("a", () => {
      planted = change(readdirSync(locks())[0] ?? "");
      return Promise.resolve();
    });
    writeFileSync(join(locks(), planted), "");
    return planted;
  }
  const other = (name: string): string => `${name.slice(0, -4)}beef`;

  it("is not held by a process that has our id and began at another time", async () => {
    await plant((name) => other(name).replace(/-(\d+)-(\d+)-/, "-$1-1$2-"));
    expect(await new FileLock(locks(), 5_000).exclusively("a", () => Promise.resolve("had"))).toBe("had");
    expect(readdirSync(locks())).toEqual([]);
  });

  it("is not held up by one that died while it chose its number", async () => {
    await plant((name) =>
      other(name)
        .replace(/\.\d+\./, ".choosing.")
        .replace(/-(\d+)-(\d+)-/, "-4194305-$2-"),
    );
    expect(await new FileLock(locks(), 5_000).exclusively("a", () => Promise.resolve("had"))).toBe("had");
    expect(readdirSync(locks())).toEqual([]);
  });

  it("is held by a process at another place, whatever its id, until it is silent for long", async () => {
    const planted = await plant((name) => other(name).replace(/\.[0-9a-f]+-\d+-/, ".0123456789ab-4194305-"));
    await expect(new FileLock(locks(), 200).exclusively("a", () => Promise.resolve())).rejects.toThrow(planted);
    expect(readdirSync(locks())).toEqual([planted]);

    const path = join(locks(), planted);
    const owner = planted.split(".")[2] ?? "";
    const watch = new Watch(0);
    const look = async (): Promise<boolean> => {
      // So that the clock has moved on from the look before.
      const now = performance.now();
      await expect.poll(() => performance.now()).toBeGreaterThan(now);
      return watch.hasEnded(owner, path);
    };
    expect(await look()).toBe(false);
    utimesSync(path, 1, 1);
    expect(await look()).toBe(false);
    expect(await look()).toBe(true);
    expect(await new Watch().hasEnded(ownName(), path)).toBe(false);
  });

  it("begins anew where its file is taken away while it waits", async () => {
    const lock = new FileLock(locks());
    let release!: () => void;
    const first = lock.exclusively("a", () => new Promise<void>((resolve) => (release = resolve)));
    await expect.poll(() => readdirSync(locks())).toHaveLength(1);
    const holder = readdirSync(locks())[0];
    const second = new FileLock(locks()).exclusively("a", () => Promise.resolve(readdirSync(locks())));
    await expect.poll(() => readdirSync(locks())).toHaveLength(2);
    for (const name of readdirSync(locks())) if (name !== holder) rmSync(join(locks(), name));
    release();
    await first;
    expect(await second).toHaveLength(1);
  });

  it("is left by who is aborted, and holds nobody up afterwards", async () => {
    const [one, two] = [new FileLock(locks()), new FileLock(locks())];
    let release!: () => void;
    const first = one.exclusively("a", () => new Promise<void>((resolve) => (release = resolve)));
    await expect.poll(() => readdirSync(locks())).toHaveLength(1);
    const stop = new AbortController();
    const inLine = one.exclusively("a", () => Promise.resolve(), stop.signal);
    const waiting = two.exclusively("a", () => Promise.resolve(), stop.signal);
    await expect.poll(() => readdirSync(locks())).toHaveLength(2);
    stop.abort(new Error("no longer wanted"));
    await expect(inLine).rejects.toThrow("no longer wanted");
    await expect(waiting).rejects.toThrow("no longer wanted");
    expect(readdirSync(locks())).toHaveLength(1);
    release();
    await first;
    expect(await two.exclusively("a", () => Promise.resolve("had"))).toBe("had");
    await expect(two.exclusively("a", () => Promise.resolve(), stop.signal)).rejects.toThrow("no longer wanted");
  });

  it("is waited for no longer than was said, within one process too", async () => {
    const lock = new FileLock(locks(), 50);
    let release!: () => void;
    const first = lock.exclusively("a", () => new Promise<void>((resolve) => (release = resolve)));
    await expect(lock.exclusively("a", () => Promise.resolve())).rejects.toMatchObject({
      kind: "timeout",
      message: expect.stringContaining(locks()),
    });
    release();
    await first;
  });

  it("is given back by work that fails", async () => {
    const lock = new FileLock(locks());
    await expect(lock.exclusively("a", () => Promise.reject(new Error("failed")))).rejects.toThrow("failed");
    expect(readdirSync(locks())).toEqual([]);
    expect(await lock.exclusively("a", () => Promise.resolve("had"))).toBe("had");
  });

  it("names its directory where that cannot be used", async () => {
    writeFileSync(locks(), "");
    const refused = new FileLock(locks()).exclusively("a", () => Promise.resolve());
    await expect(refused).rejects.toBeInstanceOf(ConnectionError);
    await expect(refused).rejects.toMatchObject({ kind: "refused", message: expect.stringContaining(locks()) });
    rmSync(locks());
    mkdirSync(locks(), { mode: 0o700 });
    expect(await new FileLock(locks()).exclusively("a", () => Promise.resolve("had"))).toBe("had");
  });
});
