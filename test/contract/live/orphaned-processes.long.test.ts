// No process is left running: not when a live server is closed while its sessions work, and not when the server's own
// process is killed, in which case each guest must notice that by itself.

import { afterEach, describe, expect, it } from "vitest";
import { javascript, lisp, type Live } from "../../../src/live/index.ts";
import { expectNoProcesses } from "../cli/cli-process.ts";
import { hasSbcl } from "../../support/setup/sbcl.ts";
import { canListProcesses, commandLine, processes } from "../../support/processes.ts";
import { ServeProcess } from "./serve-process.ts";
import { LiveFixture } from "./live-fixture.ts";

interface Language {
  readonly name: "js" | "lisp";
  open(): Live;
  /** Starts a child process in the background; returns the pid of the session's process and of the child. */
  readonly start: string;
  readonly loop: string;
  /** Code that cannot be interrupted. */
  readonly blocking: string;
}

const LANGUAGES: readonly Language[] = [
  {
    name: "js",
    open: () => javascript(),
    start: `const child = require("node:child_process").spawn("sleep", ["600"], { detached: true, stdio: "ignore" });
      child.unref(); process.pid + " " + child.pid`,
    loop: "for (;;);",
    blocking: 'require("node:child_process").execSync("sleep 600")',
  },
  {
    name: "lisp",
    open: () => lisp(),
    start: `(format nil "~a ~a" (eval (read-from-string "(sb-posix:getpid)"))
      (sb-ext:process-pid (sb-ext:run-program "sleep" (list "600") :search t :wait nil)))`,
    loop: "(loop)",
    blocking: "(sb-sys:without-interrupts (loop))",
  },
];

const programs: ServeProcess[] = [];
afterEach(async () => {
  for (const program of programs.splice(0)) await program.kill();
});

/** Zombies do not count, nor does a process that is exiting: it has lost its memory, and so its command line. */
function running(pids: readonly number[]): string[] {
  return processes()
    .filter(({ pid, state }) => pids.includes(pid) && state !== "Z" && commandLine(pid) !== "")
    .map(({ pid }) => `${pid} ${commandLine(pid)}`);
}

function guardianOf({ run }: ServeProcess): number {
  const children = processes().filter(({ parent }) => parent === run.process.pid);
  const found = children.find(({ pid }) => commandLine(pid).includes("catenary-guardian"));
  if (found === undefined) throw new Error("There is no guardian");
  return found.pid;
}

describe.each(LANGUAGES)("sessions in $name", ({ name, open, start, loop, blocking }) => {
  const isSkipped = !canListProcesses || (name === "lisp" && !hasSbcl());

  it.skipIf(isSkipped)("sessions end with their server, together with their child processes", async () => {
    const live = open();
    const fixture = await LiveFixture.open(live, name);
    const started = await Promise.all(
      ["rests", "loops", "blocks"].map((session) => fixture.evaluate(start, { session })),
    );
    const pids = started.flatMap(({ values }) => (values[0] ?? "").match(/\d+/g)?.map(Number) ?? []);
    expect(running(pids)).toHaveLength(6);
    const lost = [fixture.answer(loop, { session: "loops" }), fixture.answer(blocking, { session: "blocks" })];
    const settled = Promise.allSettled(lost);
    await expect.poll(() => fixture.call("list-sessions")).toMatch(/blocks: busy \(eval/);
    await live.close();
    expect(running(pids)).toEqual([]);
    await settled;
    await fixture.close();
  });

  it.skipIf(isSkipped)("sessions end with the server's process, even if it is killed", async () => {
    const program = new ServeProcess({ [name]: { live: name } });
    programs.push(program);
    const clientInfo = { name: "test", version: "1" };
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
    program.send(JSON.stringify({ jsonrpc: "2.0", id: 0, method: "initialize", params }));
    await program.next();
    program.send('{"jsonrpc":"2.0","method":"notifications/initialized"}');
    const call = (id: number, code: string, session: string): void => {
      const asked = { name: `evaluate-${name}`, arguments: { code, session } };
      program.send(JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: asked }));
    };
    const [guests, theirs]: [number[], number[]] = [[], []];
    for (const [id, session] of ["rests", "loops", "blocks"].entries()) {
      call(id + 1, start, session);
      const answer = await program.next();
      const [, guest, child] = /"text":"=> [^\d]*(\d+) (\d+)/.exec(answer) ?? [];
      expect(guest, answer).toBeDefined();
      guests.push(Number(guest));
      theirs.push(Number(child));
    }
    expect(running([...guests, ...theirs])).toHaveLength(6);
    call(4, loop, "loops");
    call(5, blocking, "blocks");
    const list = { jsonrpc: "2.0", id: 6, method: "tools/call", params: { name: "list-sessions" } };
    let listed = "";
    while (!/blocks: busy \(eval/.test(listed)) {
      program.send(JSON.stringify(list));
      listed = await program.next();
    }
    const guardian = guardianOf(program);
    // With the guardian stopped, the guests must notice by themselves. Only the guardian ends their children.
    process.kill(guardian, "SIGSTOP");
    try {
      await program.kill();
      await expect.poll(() => running(guests)).toEqual([]);
    } finally {
      process.kill(guardian, "SIGCONT");
    }
    await expect.poll(() => running([...theirs, guardian])).toEqual([]);
    await expectNoProcesses(program.run.mark);
  });
});
