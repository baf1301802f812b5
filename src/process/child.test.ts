// Real processes, started and ended: every step of the termination, with none left behind.

import { readdirSync, readFileSync } from "node:fs";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, expect, it } from "vitest";
import { eventually, WAIT_MS } from "../../test/support/waiting.ts";
import { compiledImport } from "../../test/support/programs.ts";
import { listProcesses } from "./process-tree.ts";
import { startChild, type Child, type ChildOptions } from "./child.ts";
import { guardianPid } from "./guardian.ts";

const onLinux = process.platform === "linux";
const children: Child[] = [];

/** Starts a child and waits until it prints "ready". */
async function ready(options: ChildOptions): Promise<Child> {
  const child = await startChild({ stdinGraceMs: 150, termGraceMs: 150, ...options });
  children.push(child);
  for await (const line of createInterface({ input: child.stdout })) if (line === "ready") break;
  child.stdout.resume();
  return child;
}

const sh = (script: string): Promise<Child> => ready({ command: "sh", args: ["-c", script] });
const node = (script: string, options: Partial<ChildOptions> = {}): Promise<Child> =>
  ready({ command: process.execPath, args: ["-e", script], ...options });

async function survivors(mark: string): Promise<number[]> {
  return ((await listProcesses()) ?? []).filter((one) => one.marks.includes(mark)).map((one) => one.pid);
}

function zombies(): string[] {
  if (!onLinux) return [];
  const stats = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => {
      try {
        return readFileSync(`/proc/${name}/stat`, "latin1");
      } catch {
        return "";
      }
    });
  return stats.filter((stat) => stat.slice(stat.lastIndexOf(")") + 2).startsWith(`Z ${process.pid} `));
}

afterEach(async () => {
  for (const child of children.splice(0)) {
    await child.close(500);
    expect(await survivors(child.mark)).toEqual([]);
  }
  await eventually(() => expect(zombies()).toEqual([]));
  expect(guardianPid()).toBeUndefined();
});

it("closing a child needs no signal for a child that exits at the end of its input", async () => {
  const script = "process.stdin.resume().on('end', () => process.exit(7)); console.log('ready')";
  const child = await node(script, { stdinGraceMs: WAIT_MS });
  await child.close();
  expect(await child.exited).toEqual({ code: 7, signal: null });
});

it("closing a child sends SIGTERM to a child that ignores the end of its input", async () => {
  const child = await node("setInterval(() => {}, 1e6); console.log('ready')", { termGraceMs: WAIT_MS });
  await child.close();
  expect(await child.exited).toEqual({ code: null, signal: "SIGTERM" });
});

it("closing a child sends SIGKILL to a child that ignores SIGTERM", async () => {
  const child = await node("process.on('SIGTERM', () => {}); setInterval(() => {}, 1e6); console.log('ready')");
  await child.close();
  expect(await child.exited).toEqual({ code: null, signal: "SIGKILL" });
});

it("closing a child reaches a grandchild behind a shell that ignores SIGTERM", async () => {
  const child = await sh("trap '' TERM; sleep 1000 & echo ready; wait; sleep 1000");
  // A process that is just being started has no environment for a moment, and so no mark.
  if (onLinux) await expect.poll(async () => (await survivors(child.mark)).length).toBeGreaterThan(1);
  await child.close();
  expect(await survivors(child.mark)).toEqual([]);
});

it("closing a child stays within a budget, which may be set while it is under way", async () => {
  const child = await ready({
    command: process.execPath,
    args: ["-e", "process.on('SIGTERM', () => {}); setInterval(() => {}, 1e6); console.log('ready')"],
    stdinGraceMs: 1e6,
    termGraceMs: 1e6,
  });
  const slow = child.close();
  await child.close(200);
  await slow;
  expect(await child.exited).toEqual({ code: null, signal: "SIGKILL" });
});

it.runIf(onLinux)("closing a child finds a process that has left the group", async () => {
  const child = await sh("setsid sh -c 'trap \"\" TERM; echo ready; sleep 1000; sleep 1000' & wait");
  const before = (await listProcesses())?.filter((one) => one.marks.includes(child.mark)) ?? [];
  expect(before.some((one) => one.group !== child.pid)).toBe(true);
  await child.close();
  expect(await survivors(child.mark)).toEqual([]);
});

it.runIf(onLinux)("closing a child ends the children of a nested process of ours too", async () => {
  const here = compiledImport("child.ts", import.meta.url);
  const script = `import { startChild } from ${here};
      await startChild({ command: "sh", args: ["-c", "trap '' TERM; sleep 1000; sleep 1000"] });
      process.on("SIGTERM", () => {}); console.log("ready");`;
  const child = await ready({
    command: process.execPath,
    args: ["--input-type=module", "-e", script],
  });
  const inner = (await listProcesses())?.filter((one) => one.marks.includes(`${child.mark}.`)) ?? [];
  expect(inner.length).toBeGreaterThan(0);
  await child.close();
  expect(await survivors(child.mark)).toEqual([]);
});

/** Each piece takes a millisecond, and the first one `firstMs`. */
async function readStderr(
  script: string,
  firstMs = 1,
): Promise<{ tail: string; bytes: number; mostInOneTurn: number }> {
  let bytes = 0;
  let pieces = 0;
  let mostInOneTurn = 0;
  const nextTurn = (): void => {
    mostInOneTurn = Math.max(mostInOneTurn, pieces);
    pieces = 0;
    timer = setImmediate(nextTurn);
  };
  let timer = setImmediate(nextTurn);
  const child = await startChild({
    command: process.execPath,
    args: ["-e", script],
    onStderr: (piece) => {
      const end = performance.now() + (bytes === 0 ? firstMs : 1);
      bytes += piece.length;
      pieces += 1;
      while (performance.now() < end);
    },
  });
  await child.finished;
  clearImmediate(timer);
  return { tail: child.stderrTail(), bytes, mostInOneTurn: Math.max(mostInOneTurn, pieces) };
}

it("the stderr of a child is read for a few milliseconds in one turn, to its end", async () => {
  const { bytes, tail, mostInOneTurn } = await readStderr(
    "require('fs').writeSync(2, 'x\\n'.repeat(500_000)); process.stderr.write('y\\n'.repeat(500_000))",
  );
  expect(bytes).toBeGreaterThan(1_000_000);
  expect(tail).toMatch(/^(?:y\n)+$/);
  // Six milliseconds are more than five.
  expect(mostInOneTurn).toBeLessThanOrEqual(6);
});

it("the stderr of a child is read so too if the child has exited, and its output has ended", async () => {
  // The child writes the rest and exits while the first piece is handled.
  const { bytes, tail, mostInOneTurn } = await readStderr(
    "const w = (text) => require('fs').writeSync(2, text); w('x\\n'.repeat(30_000)); setTimeout(w, 20, 'y\\n'.repeat(30_000))",
    500,
  );
  expect(bytes).toBe(120_000);
  expect(tail).toMatch(/^(?:y\n)+$/);
  expect(mostInOneTurn).toBeLessThanOrEqual(6);
});

it("a child that exits by itself ends its descendants, and its output is read to the end", async () => {
  const child = await startChild({
    command: "sh",
    args: ["-c", "(trap 'echo last; exit' TERM; echo up; while :; do sleep 0.05; done) & read x; exit 3"],
    termGraceMs: WAIT_MS,
  });
  children.push(child);
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    if (output === "") child.stdin.end();
    output += chunk.toString();
  });
  expect(await child.finished).toEqual({ code: 3, signal: null });
  expect(output).toBe("up\nlast\n");
  expect(await survivors(child.mark)).toEqual([]);
});

it.runIf(onLinux)("a child that exits by itself ends a member of its group that has a fresh environment", async () => {
  const child = await sh("env -i /bin/sh -c 'echo $$; echo ready; exec sleep 1000' & read x");
  const member = (await listProcesses())?.find((one) => one.group === child.pid && one.marks === "");
  expect(member).toBeDefined();
  child.stdin.end();
  await child.finished;
  expect((await listProcesses())?.some((one) => one.pid === member?.pid)).toBe(false);
});

it.runIf(onLinux)(
  "a child that exits by itself finishes although a process out of reach holds its output open",
  async () => {
    const child = await startChild({
      command: "sh",
      args: ["-c", 'env -i setsid /bin/sh -c "echo \\$\\$; exec sleep 1000" & read x'],
    });
    children.push(child);
    const pid = await new Promise<number>((resolve) => child.stdout.once("data", (data) => resolve(Number(data))));
    child.stdout.resume();
    child.stdin.end();
    try {
      expect(await child.finished).toEqual({ code: 1, signal: null });
    } finally {
      process.kill(pid, "SIGKILL");
    }
  },
);

it("starting a child adds to our environment, uses the given folder, and opens three descriptors only", async () => {
  await ready({ command: "sh", args: ["-c", "echo ready; read x"] });
  const child = await startChild({
    command: "sh",
    args: ["-c", 'echo "$GREETING $PWD ${PATH:+path}"; ls -l /proc/$$/fd 2>/dev/null | grep -c socket'],
    env: { GREETING: "hello" },
    cwd: "/",
  });
  children.push(child);
  let output = "";
  child.stdout.on("data", (chunk: Buffer) => {
    output += chunk.toString();
  });
  await child.finished;
  expect(output).toBe(`hello / path\n${onLinux ? 3 : 0}\n`);
});

it("starting a child explains a failure", async () => {
  const folder = await mkdtemp(join(tmpdir(), "catenary-"));
  const plain = join(folder, "plain");
  const orphan = join(folder, "orphan");
  await writeFile(plain, "echo hi\n");
  await writeFile(orphan, "#!/no/such/interpreter\n");
  await chmod(orphan, 0o755);
  const tries: [ChildOptions, RegExp][] = [
    [{ command: "no-such-command" }, /"no-such-command": there is no command of that name on the PATH; install it/],
    [{ command: "node server.js" }, /put the program alone into "command" and its arguments into "args"/],
    [{ command: join(folder, "none") }, /there is no file .*none; check "command"/],
    [{ command: plain }, /plain is not executable; run chmod \+x/],
    [{ command: folder }, /is a folder; name the program in it/],
    [{ command: orphan }, /the interpreter that the first line of .*orphan names does not exist/],
    [{ command: "cat", cwd: join(folder, "none") }, /its folder .*none does not exist; create it or change "cwd"/],
    [{ command: "cat", cwd: plain }, /plain is not a folder; change "cwd"/],
    [{ command: "" }, /cannot start ""/],
  ];
  for (const [options, message] of tries) await expect(startChild(options)).rejects.toThrow(message);
  expect(guardianPid()).toBeUndefined();
  await rm(folder, { recursive: true });
});

it("the stderr of a child never blocks it; its last 8 KiB are kept", async () => {
  let bytes = 0;
  const child = await startChild({
    command: process.execPath,
    args: [
      "-e",
      "const { writeSync } = fs; for (let i = 0; i < 320; i++) write(); function write() {" +
        "let rest = Buffer.alloc(65536, 'x'); while (rest.length) try { rest = rest.subarray(writeSync(2, rest)) }" +
        "catch (e) { if (e.code !== 'EAGAIN') throw e } } writeSync(2, 'the end')",
    ],
    onStderr: (chunk) => {
      bytes += chunk.length;
    },
  });
  children.push(child);
  child.stdout.resume();
  expect(await child.finished).toEqual({ code: 0, signal: null });
  expect(bytes).toBe(320 * 65536 + 7);
  expect(child.stderrTail()).toBe("x".repeat(8192 - 7) + "the end");
});

it("the stderr of a child does not start in the middle of a character", async () => {
  const script = `process.stderr.write("\u20ac" + "z".repeat(8190))`;
  const child = await startChild({ command: process.execPath, args: ["-e", script] });
  children.push(child);
  child.stdout.resume();
  await child.finished;
  expect(child.stderrTail()).toBe("z".repeat(8190));
});
