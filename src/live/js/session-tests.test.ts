// Tests that a session defines with node:test, run by run-tests in a real guest.

import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { JavaScriptGuest } from "../../../test/support/live/javascript-guest.ts";
import { eventually } from "../../../test/support/waiting.ts";
import type { GuestTests } from "../runtime.ts";

let guest: JavaScriptGuest;
beforeAll(async () => {
  guest = await JavaScriptGuest.start();
  await guest.value("import test, { after, afterEach, before, beforeEach, describe, it, mock } from 'node:test'; 1");
});
afterAll(() => guest.close());

const runTests = async (params: Record<string, unknown> = {}): Promise<GuestTests> =>
  (await guest.guest.request("run-tests", params).reply) as unknown as GuestTests;

/** Replaces the tests of the session by those that the code defines. The others are skipped. */
async function define(code: string): Promise<void> {
  const { status, condition } = await guest.evaluate(code);
  expect({ status, condition }).toEqual({ status: "ok", condition: undefined });
}

/** Runs only the tests whose name begins with the word. */
const only = (word: string): Promise<GuestTests> => runTests({ pattern: `^${word}\\b` });

beforeEach(async () => {
  await guest.value("var calls = []; 1");
});

it("collects tests, runs them with the state of the session, and says why they fail", async () => {
  const { note, stdout } = await guest.evaluate(
    "let limit = 2;\ntest('sum fits', () => assert.ok(1 + 1 <= limit));\ntest('sum is exact', async () => {\n  console.log('printed');\n  assert.equal(1 + 1, limit + 1);\n});",
  );
  expect(note).toBe("2 tests defined; run-tests runs the tests of the session");
  expect(stdout).toBe("");
  expect(await only("sum")).toEqual({
    tests: {
      passed: 1,
      failed: 1,
      skipped: 0,
      failures: [{ name: "sum is exact", reason: expect.stringMatching(/^2 == 3\n {2}at .*<eval \d+>:5:10\)?$/) }],
    },
    output: "printed",
  });
  // What is redefined later is used by the tests that were defined before; a test with the same name replaces the old.
  await define("limit = 1");
  expect((await only("sum")).tests).toMatchObject({ passed: 1, failed: 1, failures: [{ name: "sum fits" }] });
  await define("test('sum fits', () => {})");
  expect((await only("sum")).tests).toMatchObject({ passed: 2, failed: 0 });
});

it.each([
  ["require", "require('node:test')"],
  ["an import of the namespace", "await import('node:test')"],
  ["a member of it", "(await import('node:test')).default"],
])("collects tests of %s", async (_name, module) => {
  await define(`const fromModule = ${module}; fromModule.test('module loads', () => {})`);
  expect((await only("module")).tests).toMatchObject({ passed: 1, failed: 0 });
  await define("test('module loads', () => { throw new Error('replaced') })");
  expect((await only("module")).tests.failures).toMatchObject([{ name: "module loads" }]);
});

it("runs suites, hooks, subtests and options in order", async () => {
  await define(`
    describe("suite", () => {
      before(() => calls.push("before"));
      beforeEach((t) => calls.push("each " + t.name));
      after(() => calls.push("after"));
      afterEach(() => calls.push("end"));
      it("one", () => {});
      it.skip("two", () => calls.push("two"));
      it("three", { todo: "later" }, () => { throw new Error("not done") });
      describe("inner", () => { it("four", async (t) => {
        calls.push(t.fullName);
        await t.test("part", () => {});
        t.test("broken part", () => { throw new RangeError("low") });
      }) });
      it("callback", (t, done) => setTimeout(done, 1, new Error("called back")));
    })`);
  const { tests } = await only("suite");
  expect(tests).toMatchObject({ passed: 3, failed: 2, skipped: 2 });
  expect(tests.failures.map(({ name, reason }) => `${name}: ${reason.split("\n")[0]}`)).toEqual([
    "suite > inner > four > broken part: low",
    "suite > callback: called back",
  ]);
  expect(await guest.value("calls.join()")).toBe(
    "'before,each one,end,each three,end,each four,suite > inner > four,each part,end,each broken part,end,end," +
      "each callback,end,after'",
  );
});

it("fails a test at an uncaught error, a timeout, a failed hook, a wrong plan, and an error of a suite", async () => {
  await define(`
    test("bad timer", () => new Promise(() => setTimeout(() => { throw new Error("in a timer") })));
    test("bad wait", { timeout: 5 }, () => new Promise(() => {}));
    describe("bad hook", () => { before(() => { throw new Error("no database") }); it("reads", () => {}) });
    test("bad plan", (t) => { t.plan(2); t.assert.equal(1, 1) });
    test("good plan", (t) => { t.plan(1); t.assert.equal(1, 1) });
    describe("bad suite", () => { throw new Error("in the suite") });`);
  const { tests } = await runTests({ pattern: "/^(BAD|good)/i" });
  expect(tests.passed).toBe(1);
  expect(tests.failures.map(({ name, reason }) => `${name}: ${reason.split("\n")[0]}`)).toEqual([
    "bad timer: in a timer",
    "bad wait: test timed out after 5ms",
    "bad hook > reads: no database",
    "bad plan: plan expected 2 assertions but received 1",
    "bad suite: in the suite",
  ]);
  expect(await guest.tool("run-tests", { pattern: "(" })).toMatchObject({
    isError: true,
    text: expect.stringContaining("Invalid regular expression") as string,
  });
  await define("describe('bad suite', () => {})");
});

it("restores what a test mocks, and leaves the errors of the session alone", async () => {
  await define(
    "test('mock is restored', (t) => { t.mock.method(fs, 'statSync', () => 7); assert.equal(fs.statSync(), 7) })",
  );
  expect((await only("mock")).tests).toMatchObject({ passed: 1, failed: 0 });
  expect(await guest.value("typeof mock.fn + typeof fs.statSync('/').isFile")).toBe("'functionfunction'");
  const { stderr } = await guest.evaluate(
    "setTimeout(() => { throw new Error('late') }, 1); await new Promise((end) => setTimeout(end, 5))",
  );
  expect(stderr).toContain("Uncaught Error: late");
});

it.each([
  ["waits", "await new Promise(() => {})"],
  ["loops", "for (;;);"],
])("can be interrupted while a test %s, and runs again", async (_name, code) => {
  await define(`test('endless', async () => { console.log('in vain'); fs.writeSync(1, 'begun'); ${code} })`);
  const { id, reply } = guest.guest.request("run-tests", { pattern: "endless" });
  await eventually(() => expect(guest.printed).toContain("begun"), 5);
  await guest.guest.control("interrupt", { target: id });
  expect(await reply).toEqual({ status: "interrupted" });
  await eventually(() => expect(guest.printed).toContain("in vain"));
  await define("test('endless', () => {})");
  expect(await only("endless")).toEqual({ tests: { passed: 1, failed: 0, skipped: 0, failures: [] } });
});
