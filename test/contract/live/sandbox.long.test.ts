// Code that tries to leave the sandbox, in every language, on real bubblewrap: sockets to real listeners, files and
// processes of the host, and using up disk and processes. Each is refused, and the session is usable afterwards. Then
// what `network`, `read`, `write`, `env` and `cwd` open.

import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { javascript, lisp, smalltalk, type Live, type LiveOptions } from "../../../src/live/index.ts";
import type { SandboxOptions } from "../../../src/live/options.ts";
import { sandboxProblem } from "../../../src/live/sandbox.ts";
import { hasProcessLimit } from "../../../src/live/sandbox-limit.ts";
import { commandLine, processes } from "../../support/processes.ts";
import { hasSbcl } from "../../support/setup/sbcl.ts";
import { gstProgram } from "../../support/setup/smalltalk.ts";
import { LiveFixture } from "./live-fixture.ts";
import { ATTACKS, isFile, SNIPPETS, Targets, type Snippets } from "./sandbox-attacks.ts";

const run = promisify(execFile);
const problem = await sandboxProblem();
const isBounded = await hasProcessLimit();
const gst = gstProgram();
if (!isBounded) console.error("Skipped: the limit of processes in a sandbox; root needs a cgroup for it.");

const DISK_MB = 8;
const SLOW = { timeout: 60 };

interface LanguageCase {
  readonly name: keyof typeof SNIPPETS;
  readonly language: "js" | "lisp" | "smalltalk";
  readonly isMissing?: boolean;
  /** What it must read beyond its own files. */
  readonly read?: readonly string[];
  create(options: LiveOptions & { readonly cwd?: string; readonly inheritEnv?: readonly string[] }): Live;
}

const LANGUAGES: readonly LanguageCase[] = [
  { name: "js", language: "js", create: javascript },
  { name: "lisp", language: "lisp", isMissing: !hasSbcl(), create: lisp },
  { name: "amber", language: "smalltalk", create: smalltalk },
  {
    name: "gst",
    language: "smalltalk",
    isMissing: gst === undefined,
    // On x86-64 it is a script with its libraries beside it.
    ...(gst?.includes("/") === true && { read: [dirname(gst)] }),
    create: (options) => smalltalk({ ...options, command: gst ?? "gst" }),
  },
];

describe.skipIf(problem !== undefined)("a sandbox", () => {
  let targets: Targets;
  beforeAll(async () => {
    process.env["HOST_SECRET"] = "in the environment of the host";
    targets = await Targets.create();
  });
  afterAll(async () => {
    delete process.env["HOST_SECRET"];
    await targets.close();
  });

  it("a sandbox has targets that can be reached from outside", async () => {
    for (const name of Object.keys(targets.listeners)) {
      // Not spawnSync, since the listeners are in this process.
      const { stdout } = await run("/bin/sh", ["-c", targets.connect(name)], { timeout: 20_000 });
      expect([name, stdout]).toEqual([name, "REACHED hello\n"]);
    }
  });

  for (const { name, language, isMissing = false, read = [], create } of LANGUAGES) {
    describe.skipIf(isMissing)(`around ${name}`, () => {
      const snippets: Snippets = SNIPPETS[name];
      let fixture: LiveFixture;
      const open = (sandbox: SandboxOptions, options = {}): Promise<LiveFixture> =>
        LiveFixture.open(
          create({ ...options, sandbox: { ...sandbox, read: [...read, ...(sandbox.read ?? [])] } }),
          language,
        );
      /** Evaluates code and checks that the session is as it was. Returns the text of the result. */
      const attempt = async (code: string): Promise<string> => {
        const { text, status } = await fixture.evaluate(code, SLOW);
        expect(status).toMatch(/^(?:ok|error)$/);
        expect((await fixture.evaluate(snippets.read("/tmp/session/kept"), SLOW)).text).toContain("kept");
        // JavaScript prints long strings in parts, with escapes.
        return text
          .replaceAll(/' \+\n {2}'/g, "")
          .replaceAll("\\n", "\n")
          .replaceAll("\\t", "\t");
      };

      beforeAll(async () => {
        // The program that connects, and Node, which may be anywhere, are shown to all.
        fixture = await open({ read: [process.execPath, targets.program], diskMb: DISK_MB });
        await fixture.evaluate(snippets.shell("echo kept > /tmp/session/kept"), SLOW);
      });
      afterAll(() => fixture.close());

      it("a sandbox around a language cannot reach a listener of the host", async () => {
        const { reached } = targets;
        for (const listener of Object.keys(targets.listeners))
          expect([listener, await attempt(snippets.shell(targets.connect(listener)))]).toEqual([
            listener,
            expect.stringMatching(/refused E/),
          ]);
        expect(targets.reached).toBe(reached);
      });

      it.each(ATTACKS)(
        "a sandbox around a language refuses $name",
        async ({ command, not = () => /REACHED/, shows = /^/ }) => {
          const text = await attempt(snippets.shell(command(targets)));
          expect(text).not.toMatch(not(targets));
          expect(text.replace(/^=> ["']?/m, "").replace(/["']$/, "")).toMatch(shows);
          expect(text).not.toContain("in the environment of the host");
          expect(await isFile(join(targets.folder, "written"))).toBe(false);
          expect(targets.isVictimAlive()).toBe(true);
        },
      );

      it("a sandbox around a language refuses what the language itself can do", async () => {
        const paths = [targets.secretFile, "/etc/shadow", `/proc/${targets.victim}/environ`];
        for (const path of paths) {
          const text = await attempt(snippets.read(path));
          expect(text).toMatch(/\[ERROR\]/);
          expect(text).not.toContain(targets.secret);
        }
        for (const path of [join(targets.folder, "written"), "/usr/written", "/written"]) {
          expect(await attempt(snippets.write(path))).toMatch(/\[ERROR\]/);
          expect(await isFile(path)).toBe(false);
        }
        for (const [attack, code] of Object.entries(snippets.own(targets)))
          expect([attack, await attempt(code)]).toEqual([attack, expect.not.stringContaining("REACHED")]);
        expect(targets.isVictimAlive()).toBe(true);
      });

      it("a sandbox around a language bounds the files that it can write", async () => {
        for (const [folder, maxMb] of [
          ["/tmp", DISK_MB],
          ["/tmp/session", DISK_MB],
          ["/dev/shm", 16],
        ] as const) {
          const fill = `dd if=/dev/zero of=${folder}/full bs=1M count=64 2>&1; echo; wc -c < ${folder}/full; rm ${folder}/full`;
          const text = await attempt(snippets.shell(fill));
          expect(text).toContain("No space left on device");
          const [, bytes] = /^(\d+)$/m.exec(text) ?? [];
          expect(Number(bytes)).toBeLessThanOrEqual(maxMb * 1024 * 1024);
        }
      });

      it.skipIf(!isBounded)("a sandbox around a language bounds the processes that it can start", async () => {
        const start = "i=0; while [ $i -lt 50 ]; do sleep 2 & i=$((i+1)); done; echo REACHED";
        expect(await attempt(snippets.shell(`${start} 2>&1`))).not.toContain("REACHED");
        // They have ended when the shell can start others again.
        await expect
          .poll(() => attempt(snippets.shell("/bin/true && echo again")), { timeout: 20_000, interval: 500 })
          .toContain("again");
      });

      it("a sandbox around a language can be interrupted, also while it waits for a program", async () => {
        const { status, state } = await fixture.evaluate(snippets.shell("sleep 1000"), { timeout: 1 });
        expect({ status, state }).toEqual({ status: "timeout", state: "kept" });
        expect(await attempt(snippets.shell("echo again"))).toContain("again");
      });

      it("a sandbox around a language leaves no process when it is closed", async () => {
        const other = await open({});
        const mark = `9${process.pid}`;
        const stray = `setsid env -i sleep ${mark} > /dev/null 2>&1 < /dev/null 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- & sleep 0.2; echo begun`;
        expect((await other.evaluate(snippets.shell(stray), SLOW)).text).toContain("begun");
        const isRunning = (): boolean => processes().some(({ pid }) => commandLine(pid).startsWith(`sleep ${mark}`));
        expect(isRunning()).toBe(true);
        await other.close();
        await expect.poll(isRunning).toBe(false);
      });

      it("a sandbox around a language opens what its options name", async () => {
        const folder = await mkdtemp(join(tmpdir(), "sandbox-open-"));
        const shown = join(folder, "shown.txt");
        await writeFile(shown, "shown");
        const out = await mkdtemp(join(tmpdir(), "sandbox-out-"));
        process.env["NAMED_VARIABLE"] = "named";
        const options = { cwd: folder, inheritEnv: ["NAMED_*"] };
        const granted = { network: true, read: [folder, process.execPath, targets.program], write: [out] };
        const other = await open(granted, options);
        const ask = async (command: string): Promise<string> =>
          (await other.evaluate(snippets.shell(command), SLOW)).text;
        try {
          for (const listener of Object.keys(targets.listeners).filter((one) => one !== "a unix socket in a folder"))
            expect([listener, await ask(targets.connect(listener))]).toEqual([
              listener,
              expect.stringContaining("REACHED"),
            ]);
          expect(await ask(targets.connect("a unix socket in a folder"))).toContain("refused");
          expect(await ask("pwd; cat shown.txt; echo; echo $NAMED_VARIABLE")).toMatch(
            new RegExp(`${folder}\\W*n?shown\\W*n?named`),
          );
          expect(await ask(`sh -c 'echo x > ${shown}' && echo REACHED`)).not.toContain("REACHED");
          expect(await ask(`echo written > ${out}/file && echo done`)).toContain("done");
          expect(await readFile(join(out, "file"), "utf8")).toBe("written\n");
          expect(await readFile(shown, "utf8")).toBe("shown");
        } finally {
          delete process.env["NAMED_VARIABLE"];
          await other.close();
          await Promise.all([folder, out].map((path) => rm(path, { recursive: true, force: true })));
        }
      });
    });
  }
});
