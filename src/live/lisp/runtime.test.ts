// The SBCL runtime: the error if SBCL is missing; starting from the sources, from the compiled guest and from a saved
// core; and a damaged core.

import { chmod, mkdtemp, readdir, rm, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { startLispGuest } from "../../../test/support/live/lisp-guest.ts";
import { hasSbcl } from "../../../test/support/setup/sbcl.ts";
import { IS_LONG } from "../../../test/support/thoroughness.ts";
import { DEFAULT_LIMITS } from "../runtime.ts";
import { lispRuntime } from "./index.ts";
import { findSbcl } from "./sbcl.ts";

it("says what to install if SBCL is missing", async () => {
  await expect(findSbcl("sbcl", "/nowhere")).rejects.toThrow(/not on the PATH; install it .*apt-get install sbcl/);
  const start = lispRuntime({ command: "/nowhere/sbcl" }).start(DEFAULT_LIMITS);
  await expect(start).rejects.toMatchObject({ name: "ConnectionError", kind: "spawn", mayHaveRun: false });
});

describe.skipIf(!hasSbcl())("the Lisp runtime (needs SBCL)", () => {
  let folder = "";
  const cached = async (): Promise<string[]> => (await readdir(join(folder, "lisp"))).toSorted();
  const fileWith = async (ending: string): Promise<string> =>
    join(folder, "lisp", (await cached()).find((name) => name.endsWith(ending)) ?? "none");

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "catenary-lisp-"));
    vi.stubEnv("CATENARY_CACHE", folder);
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await rm(folder, { recursive: true, force: true });
  });

  it.runIf(IS_LONG)(
    "the Lisp runtime starts from the sources, caches the compiled guest, and saves a core in the background",
    async () => {
      const lisp = await startLispGuest({ memoryMb: 256 });
      expect(lisp.guest.version).toMatch(/^SBCL \d/);
      expect((await lisp.evaluate("(sb-ext:dynamic-space-size)")).values).toEqual([String(256 * 1024 * 1024)]);
      expect(await lisp.runtime.saved()).toBeUndefined();
      expect((await cached()).map((name) => name.slice(32))).toEqual([".core", ".fasl"]);
      await lisp.close();
    },
  );

  it.runIf(IS_LONG)(
    "the Lisp runtime then starts from the core, with everything loaded and SBCL's contribs available",
    async () => {
      const runtime = lispRuntime();
      expect((await runtime.start(DEFAULT_LIMITS)).args.slice(0, 2)).toEqual(["--core", await fileWith(".core")]);
      const lisp = await startLispGuest({ memoryMb: 256 }, runtime);
      const code =
        '(list (sb-ext:dynamic-space-size) (and (find-package "ASDF") t) (and (find-package "SB-INTROSPECT") t))';
      expect((await lisp.evaluate(code)).values).toEqual([`(${256 * 1024 * 1024} T T)`]);
      expect(await lisp.evaluate("(require :sb-bsd-sockets) (find-package :sb-bsd-sockets)")).toMatchObject({
        status: "ok",
        values: ['#<PACKAGE "SB-BSD-SOCKETS">'],
      });
      await lisp.close();
    },
  );

  it.runIf(IS_LONG)("the Lisp runtime replaces a truncated core", async () => {
    await truncate(await fileWith(".core"), 1_000_000);
    const lisp = await startLispGuest();
    expect((await lisp.evaluate("(+ 1 2)")).values).toEqual(["3"]);
    expect(await lisp.runtime.saved()).toBeUndefined();
    expect((await stat(await fileWith(".core"))).size).toBeGreaterThan(10_000_000);
    await lisp.close();
  });

  it.runIf(IS_LONG)(
    "the Lisp runtime replaces a core that does not start and a compiled guest that does not load, and deletes old cores",
    async () => {
      for (const letter of ["a", "b", "c", "d"]) {
        const path = join(folder, "lisp", `${letter.repeat(32)}.core`);
        await writeFile(path, "");
        const at = new Date(Date.now() - letter.charCodeAt(0) * 60_000);
        await utimes(path, at, at);
      }
      const core = (await fileWith(".fasl")).replace(/fasl$/, "core");
      await writeFile(core, "no core");
      await writeFile(await fileWith(".fasl"), "no fasl");
      const runtime = lispRuntime();
      expect((await runtime.start(DEFAULT_LIMITS)).args[0]).toBe("--core");
      const lisp = await startLispGuest({}, runtime);
      expect((await lisp.evaluate("(+ 1 2)")).values).toEqual(["3"]);
      expect(await runtime.saved()).toBeUndefined();
      expect((await stat(await fileWith(".fasl"))).size).toBeGreaterThan(100_000);
      await lisp.close();
      const cores = (await cached()).filter((name) => name.endsWith(".core"));
      expect(cores.map((name) => join(folder, "lisp", name))).toContain(core);
      expect(cores.filter((name) => /^(.)\1{31}\./.test(name))).toEqual([
        `${"a".repeat(32)}.core`,
        `${"b".repeat(32)}.core`,
      ]);
    },
  );

  it.runIf(IS_LONG)("the Lisp runtime lets one guest compile while the others wait", async () => {
    const fasl = await fileWith(".fasl");
    await rm(fasl.replace(/fasl$/, "core"));
    await rm(fasl);
    const runtime = lispRuntime();
    const first = await runtime.start(DEFAULT_LIMITS);
    const order: string[] = [];
    const second = runtime.start(DEFAULT_LIMITS).then(() => order.push("second"));
    await new Promise((resolve) => setTimeout(resolve, 50));
    order.push("failed");
    expect(await runtime.startFailed(first)).toBe(false);
    await second;
    expect(order).toEqual(["failed", "second"]);
    await runtime.close?.();
  });

  it("the Lisp runtime starts without a core if the cache folder cannot be used, and warns once", async () => {
    // No user, not even root, can create a folder below a file.
    const file = join(folder, "file");
    await writeFile(file, "");
    vi.stubEnv("CATENARY_CACHE", join(file, "cache"));
    const warnings: string[] = [];
    const runtime = lispRuntime({}, (text) => warnings.push(text));
    const first = await runtime.start(DEFAULT_LIMITS);
    expect(first.args).not.toContain("--core");
    runtime.onReady?.();
    const error = await runtime.saved();
    expect(error?.message).toMatch(
      /the cache folder cannot be used \(.*\/file\/cache.*set CATENARY_CACHE to a folder that only you/,
    );
    expect(await runtime.start(DEFAULT_LIMITS)).toEqual(first);
    expect(warnings).toEqual([error?.message]);
    vi.stubEnv("CATENARY_CACHE", folder);
    await runtime.close?.();
  });

  it("the Lisp runtime uses no core and no compiled guest that another user could have put there, and warns", async () => {
    const other = await mkdtemp(join(folder, "other-"));
    vi.stubEnv("CATENARY_CACHE", other);
    const prepared = lispRuntime();
    const { args } = await prepared.start(DEFAULT_LIMITS);
    const fasl = args.find((word) => word.endsWith(".fasl")) ?? "";
    await prepared.close?.();
    await writeFile(fasl.replace(/fasl$/, "core"), "planted");
    await writeFile(fasl, "planted");
    await chmod(dirname(fasl), 0o777);
    const warnings: string[] = [];
    const runtime = lispRuntime({}, (text) => warnings.push(text));
    const command = await runtime.start(DEFAULT_LIMITS);
    expect(command.args).not.toContain("--core");
    expect(command.args.filter((word) => word.includes(other))).toEqual([]);
    expect(warnings).toEqual([expect.stringMatching(/is accessible to other users \(mode 777\): run "chmod go-w /)]);
    await runtime.close?.();
    vi.stubEnv("CATENARY_CACHE", folder);
  });

  it.runIf(IS_LONG)("the Lisp runtime saves no core after it is closed", async () => {
    const runtime = lispRuntime();
    await runtime.start(DEFAULT_LIMITS);
    runtime.onReady?.();
    await runtime.close?.();
    expect(await runtime.saved()).toBeInstanceOf(Error);
    expect((await cached()).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });
});
