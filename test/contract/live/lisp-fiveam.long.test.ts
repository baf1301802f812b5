// run-tests in Common Lisp with a real framework, FiveAM, by system and by suite. The system is in the session's folder,
// where ASDF finds it without a registry.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect, type Client } from "../../../src/client/index.ts";
import { lisp, type Live } from "../../../src/live/index.ts";
import { hasFiveam, hasSbcl } from "../../support/setup/sbcl.ts";

const FILES = {
  "ledger.asd": `(defsystem "ledger" :components ((:file "ledger")) :in-order-to ((test-op (test-op "ledger/tests"))))
(defsystem "ledger/tests" :depends-on ("ledger" "fiveam") :components ((:file "tests"))
  :perform (test-op (o c) (symbol-call :fiveam :run! (find-symbol* :ledger-suite :ledger-tests))))`,
  "ledger.lisp": `(defpackage ledger (:use cl))
(in-package ledger)

(defun add (a b unused) (not-there a) (+ a b))`,
  "tests.lisp": `(defpackage ledger-tests (:use cl fiveam))
(in-package ledger-tests)
(def-suite ledger-suite)
(in-suite ledger-suite)
(test adds (is (= 4 (+ 2 2))) (is (= 5 (+ 2 2))))
(test other (is-true t))`,
};

describe.skipIf(!hasSbcl() || !hasFiveam())("run-tests with FiveAM (needs cl-fiveam)", () => {
  const folder = mkdtempSync(join(tmpdir(), "catenary-ledger-"));
  let server: Live;
  let client: Client;
  beforeAll(async () => {
    mkdirSync(join(folder, "ledger"));
    for (const [name, text] of Object.entries(FILES)) writeFileSync(join(folder, "ledger", name), text);
    server = lisp({ cwd: folder, env: { XDG_CACHE_HOME: join(folder, "cache") } });
    client = await connect(server);
  });
  afterAll(async () => {
    await client.close();
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it("run-tests with FiveAM finds a system in the session's folder, and reports its warnings with file and line", async () => {
    const { content, isError } = await client.callTool("load-system", { system: "ledger" });
    expect(isError).toBe(false);
    const [{ text = "" } = {}] = content as readonly { text?: string }[];
    expect(text).toContain("ledger/ledger.lisp:4: [STYLE] The variable UNUSED is defined but never used.");
    expect(text).toContain("ledger/ledger.lisp:4: [STYLE] undefined function: LEDGER::NOT-THERE");
  });

  it.each([{ system: "ledger" }, { suite: "ledger-suite", package: "ledger-tests" }])(
    "run-tests with FiveAM counts and names the failures of %j",
    async (which) => {
      const { content, isError, structuredContent } = await client.callTool("run-tests", which);
      expect(isError).toBe(true);
      expect(structuredContent).toEqual({ passed: 2, failed: 1, skipped: 0 });
      const [{ text = "" } = {}] = content as readonly { text?: string }[];
      expect(text).toContain(
        "3 tests: 2 passed, 1 failed\n\n[FAILED] LEDGER-TESTS::ADDS\n(+ 2 2) evaluated to 4 which is not = to 5",
      );
    },
  );

  it.each([
    [{ suite: "ledger-suit" }, "There is no suite or test ledger-suit. The suites are: LEDGER-TESTS::LEDGER-SUITE"],
    [
      { suite: "adds", package: "ledger" },
      "There is no suite or test adds in package LEDGER. The suites are: LEDGER-TESTS::LEDGER-SUITE",
    ],
    [{ system: "leger" }, /^Error: System leger not found; did you mean ledger\?$/],
  ])("run-tests with FiveAM names what %j could mean", async (which, expected) => {
    const { content, isError } = await client.callTool("run-tests", which);
    const [{ text = "" } = {}] = content as readonly { text?: string }[];
    expect(isError).toBe(true);
    expect(text).toMatch(expected);
  });

  it("run-tests with FiveAM finds a suite or test without its package", async () => {
    const { structuredContent } = await client.callTool("run-tests", { suite: "other" });
    expect(structuredContent).toEqual({ passed: 1, failed: 0, skipped: 0 });
  });
});
