// SBCL as a runtime: what is said where it is absent; the three ways a guest begins, from the sources, from what was
// compiled and from a saved core; and a core that is damaged.

import { mkdtemp, readdir, rm, stat, truncate, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { startLispGuest } from "../../../test/support/lisp-guest.ts";
import { hasSbcl } from "../../../test/support/setup/sbcl.ts";
import { DEFAULT_LIMITS } from "../runtime.ts";
import { lispRuntime } from "./runtime.ts";
import { findSbcl } from "./sbcl.ts";

it("says what to install where there is no SBCL", async () => {
  await expect(findSbcl("sbcl", "/nowhere")).rejects.toThrow(/not on the PATH; install it .*apt-get install sbcl/);
  const start = lispRuntime({ command: "/nowhere/sbcl" }).start(DEFAULT_LIMITS);
  await expect(start).rejects.toMatchObject({ name: "ConnectionError", kind: "spawn", mayHaveRun: false });
});

describe.skipIf(!hasSbcl())("the Lisp runtime (needs SBCL)", () => {
  let folder = "";
  const kept = async (): Promise<string[]> => (await readdir(join(folder, "lisp"))).toSorted();
  const named = async (ending: string): Promise<string> =>
    join(folder, "lisp", (await kept()).find((name) => name.endsWith(ending)) ?? "none");

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "catenary-lisp-"));
    vi.stubEnv("CATENARY_CACHE", folder);
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await rm(folder, { recursive: true, force: true });
  });

  it("begins from the sources, keeps what it compiled, and saves a core meanwhile", async () => {
    const lisp = await startLispGuest({ memoryMb: 256 });
    expect(lisp.guest.version).toMatch(/^SBCL \d/);
    expect((await lisp.evaluate("(sb-ext:dynamic-space-size)")).values).toEqual([String(256 * 1024 * 1024)]);
    expect(await lisp.runtime.saved()).toBeUndefined();
    expect((await kept()).map((name) => name.slice(32))).toEqual([".core", ".fasl", ".json"]);
    await lisp.close();
  }, 60_000);

  it("then begins from the core, with all that was loaded, and SBCL's own modules in reach", async () => {
    const runtime = lispRuntime();
    expect((await runtime.start(DEFAULT_LIMITS)).args.slice(0, 2)).toEqual(["--core", await named(".core")]);
    const lisp = await startLispGuest({ memoryMb: 256 }, runtime);
    const code =
      '(list (sb-ext:dynamic-space-size) (and (find-package "ASDF") t) (and (find-package "SB-INTROSPECT") t))';
    expect((await lisp.evaluate(code)).values).toEqual([`(${256 * 1024 * 1024} T T)`]);
    expect(await lisp.evaluate("(require :sb-bsd-sockets) (find-package :sb-bsd-sockets)")).toMatchObject({
      status: "ok",
      values: ['#<PACKAGE "SB-BSD-SOCKETS">'],
    });
    await lisp.close();
  });

  it("finds out that a core is not whole, and begins from what was compiled", async () => {
    await truncate(await named(".core"), 1_000_000);
    const runtime = lispRuntime();
    expect((await runtime.start(DEFAULT_LIMITS)).args).not.toContain("--core");
    await runtime.close?.();
  });

  it("throws away a core that does not start, a compiled guest that cannot be loaded, and cores long unused", async () => {
    for (const letter of ["a", "b", "c", "d"]) {
      const path = join(folder, "lisp", `${letter.repeat(32)}.core`);
      await writeFile(path, "");
      const at = new Date(Date.now() - letter.charCodeAt(0) * 60_000);
      await utimes(path, at, at);
    }
    const core = (await named(".json")).replace(/json$/, "core");
    await writeFile(core, "no core");
    await writeFile(await named(".json"), JSON.stringify({ size: 7 }));
    await writeFile(await named(".fasl"), "no fasl");
    const runtime = lispRuntime();
    expect((await runtime.start(DEFAULT_LIMITS)).args[0]).toBe("--core");
    const lisp = await startLispGuest({}, runtime);
    expect((await lisp.evaluate("(+ 1 2)")).values).toEqual(["3"]);
    expect(await runtime.saved()).toBeUndefined();
    expect((await stat(await named(".fasl"))).size).toBeGreaterThan(100_000);
    await lisp.close();
    const cores = (await kept()).filter((name) => name.endsWith(".core"));
    expect(cores.map((name) => join(folder, "lisp", name))).toContain(core);
    expect(cores.filter((name) => /^(.)\1{31}\./.test(name))).toEqual([
      `${"a".repeat(32)}.core`,
      `${"b".repeat(32)}.core`,
    ]);
  }, 60_000);

  it("lets one guest compile what is not compiled yet, while the others wait", async () => {
    await rm(await named(".json"));
    await rm(await named(".fasl"));
    const runtime = lispRuntime();
    const first = await runtime.start(DEFAULT_LIMITS);
    const order: string[] = [];
    const second = runtime.start(DEFAULT_LIMITS).then(() => order.push("second"));
    await new Promise((resolve) => setTimeout(resolve, 50));
    order.push("failed");
    expect(await runtime.failed(first)).toBe(false);
    await second;
    expect(order).toEqual(["failed", "second"]);
    await runtime.close?.();
  });

  it("begins without a core where nothing can be kept, and says so once", async () => {
    vi.stubEnv("CATENARY_CACHE", "/proc/catenary");
    const said: string[] = [];
    const runtime = lispRuntime({}, (text) => said.push(text));
    const first = await runtime.start(DEFAULT_LIMITS);
    expect(first.args).not.toContain("--core");
    runtime.settled?.();
    const fault = await runtime.saved();
    expect(fault?.message).toMatch(
      /nothing can be kept for them \(.*\/proc\/catenary.*CATENARY_CACHE may name a folder/,
    );
    expect(await runtime.start(DEFAULT_LIMITS)).toEqual(first);
    expect(said).toEqual([fault?.message]);
    vi.stubEnv("CATENARY_CACHE", folder);
    await runtime.close?.();
  });

  it("saves nothing more once it is closed", async () => {
    const runtime = lispRuntime();
    await runtime.start(DEFAULT_LIMITS);
    runtime.settled?.();
    await runtime.close?.();
    expect(await runtime.saved()).toBeInstanceOf(Error);
    expect((await kept()).filter((name) => name.endsWith(".tmp"))).toEqual([]);
  });
});
