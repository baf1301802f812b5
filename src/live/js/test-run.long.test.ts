// run-tests of a JavaScript session, with node:test and vitest, in a folder with tests that pass, fail and never end.

import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { JavaScriptGuest } from "../../../test/support/live/javascript-guest.ts";
import { eventually } from "../../../test/support/waiting.ts";
import { packageFile } from "../../core/files.ts";
import type { GuestTests } from "../runtime.ts";

/** A file of the project that is tested. Its skipped test must be counted as skipped. */
const NODE_TESTS = `
import test, { describe, it } from "node:test";
import assert from "node:assert";
test("adds", () => assert.equal(1 + 1, 2));
test("fails", () => { console.log("printed"); assert.equal(1 + 1, 3); });
describe("suite", () => {
  it("inner", () => {});
  it("bad", () => { throw new TypeError("boom") });
  it.skip("later", () => {});
});
`;
const VITEST_TESTS = `
import { describe, expect, it } from "vitest";
describe("sums", () => {
  it("adds", () => expect(1 + 1).toBe(2));
  it("fails", () => expect(1 + 1).toBe(3));
  it.skip("later", () => {});
});
`;

let folder = "";
let guest: JavaScriptGuest;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "catenary-tests-"));
  mkdirSync(join(folder, "test"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
  writeFileSync(join(folder, "test/some.test.mjs"), NODE_TESTS);
  writeFileSync(join(folder, "test/broken.test.mjs"), "let x = ;\n");
  writeFileSync(join(folder, "endless.mjs"), "import fs from 'node:fs'; fs.writeFileSync('begun', ''); for (;;);\n");
  writeFileSync(join(folder, "sums.spec.js"), VITEST_TESTS);
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(packageFile("node_modules/vitest"), join(folder, "node_modules/vitest"));
  guest = await JavaScriptGuest.start({ cwd: folder });
});
afterAll(async () => {
  await guest.close();
  rmSync(folder, { recursive: true, force: true });
});

const runTests = async (params: Record<string, unknown>): Promise<GuestTests> =>
  (await guest.guest.request("run-tests", params).reply) as unknown as GuestTests;

it("counts the tests of node:test and names the failures with their reasons", async () => {
  const { tests, output } = await runTests({ files: ["test/some.test.mjs", "test/broken.test.mjs"] });
  expect(tests).toMatchObject({ passed: 2, failed: 3, skipped: 1 });
  expect(tests.failures.toSorted((one, other) => (one.name < other.name ? -1 : 1))).toEqual([
    {
      name: "fails",
      reason: expect.stringMatching(/2 (?:==|!==) 3[^]*\n {2}at test\/some\.test\.mjs:5:\d+$/) as string,
    },
    { name: "suite > bad", reason: expect.stringMatching(/^boom\n {2}at test\/some\.test\.mjs:8:\d+$/) as string },
    { name: "test/broken.test.mjs", reason: expect.stringMatching(/exit code 1: SyntaxError: Unexpected/) as string },
  ]);
  expect(output).toContain("printed");
  expect(output).toContain("SyntaxError: Unexpected token ';'");
  expect((await runTests({ files: ["test/some.test.mjs"], pattern: "adds" })).tests).toMatchObject({
    passed: 1,
    failed: 0,
  });
});

it.each([
  ["exits", "process.exit(3)", "the file ended with exit code 3; see the output"],
  [
    "exits as if all were well",
    "test('b', async () => { await 1; process.exit(0) })",
    /exit code 1: process\.exit\(0\) was called before the tests had ended$/,
  ],
  ["throws", "throw new TypeError('bad start')", /^the file ended with exit code \d+: TypeError: bad start$/],
  ["is killed", "process.kill(process.pid, 'SIGKILL')", "the file was ended by SIGKILL; see the output"],
])("reports a file that %s as a failure with the reason", async (_how, code, reason) => {
  writeFileSync(join(folder, "ends.mjs"), `import test from "node:test"; test("a", () => {}); ${code};`);
  const { tests } = await runTests({ files: ["ends.mjs"], framework: "node" });
  expect(tests.failures).toContainEqual({ name: "ends.mjs", reason: expect.stringMatching(reason) as string });
});

it("runs the tests of vitest", async () => {
  const { tests } = await runTests({ framework: "vitest", files: ["sums.spec.js"] });
  expect(tests).toEqual({
    passed: 1,
    failed: 1,
    skipped: 1,
    failures: [
      { name: "sums > fails", reason: expect.stringMatching(/expected 2 to be 3[^]*sums\.spec\.js:5:\d+/) as string },
    ],
  });
});

it("can be stopped, and the session keeps its state", async () => {
  await guest.value("const kept = 42");
  const { id, reply } = guest.guest.request("run-tests", { files: ["endless.mjs"], framework: "node" });
  await eventually(async () => expect(await guest.guest.control("ping", {})).toEqual({}));
  await guest.guest.control("interrupt", { target: id });
  expect(await reply).toEqual({ status: "interrupted" });
  expect(await guest.value("kept")).toBe("42");
});
