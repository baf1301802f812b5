// The tools of a JavaScript session other than evaluate-js, with a real guest. get-stack is tested in
// interruption.test.ts.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, expect, it } from "vitest";
import { JavaScriptGuest } from "../../../test/support/live/javascript-guest.ts";
import { EVALUATE, TOOLS } from "./index.ts";

let guest: JavaScriptGuest;
let folder = "";
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "catenary-js-"));
  guest = await JavaScriptGuest.start();
  await guest.value(`
    const fib = (n) => (n < 2 ? n : fib(n - 1) + fib(n - 2));
    class Point { length() { return 1 } }
    let names = new Map([["a", 1]]), held = [];
    function grow() { for (let i = 0; i < 50_000; i++) held.push({ i }) }
    Object.defineProperty(globalThis, "trap", { get() { throw new Error("called") }, configurable: true });
    unnamed = 1;`);
});
afterAll(async () => {
  await guest.close();
  rmSync(folder, { recursive: true, force: true });
});

it("list-variables lists everything that the user created, without calling getters", async () => {
  const { text, data } = await guest.tool("list-variables");
  expect(text.split("\n").toSorted()).toEqual(
    [
      "fib: function = (n) => (n < 2 ? n : fib(n - 1) + fib(n - 2))",
      "Point: class = class Point { length() { return 1 } }",
      "names: Map = Map(1) { 'a' => 1 }",
      "held: Array = []",
      "grow: function = function grow() { for (let i = 0; i < 50_000; i++) held.push({ i }) }",
      "trap: accessor = [Getter]",
      "unnamed: number = 1",
    ].toSorted(),
  );
  expect(data).toMatchObject({ total: 7 });
});

it("list-variables filters by pattern and limits the number", async () => {
  expect((await guest.tool("list-variables", { pattern: "POI" })).text).toMatch(/^Point: class = [^\n]*$/);
  expect((await guest.tool("list-variables", { max: 1 })).text).toMatch(/\n\.\.\. 6 more$/);
  expect((await guest.tool("list-variables", { pattern: "zzz" })).text).toContain("no matching variables");
});

it.each([
  ["fib", "// <eval 1>:2\n(n) => (n < 2 ? n : fib(n - 1) + fib(n - 2))"],
  ["Point", "// <eval 1>:3\nclass Point { length() { return 1 } }"],
  ["Point.prototype.length", "// <eval 1>:3\nlength() { return 1 }"],
  ["Array.prototype.map", "function map() { [native code] }"],
])("get-source shows %s", async (name, text) => {
  expect(await guest.tool("get-source", { name })).toMatchObject({ text });
});

it("get-source names the place of the function itself", async () => {
  await guest.value("Point.prototype.area = function () {\n  return 2\n}");
  expect((await guest.tool("get-source", { name: "Point.prototype.area" })).text).toMatch(
    /^\/\/ <eval 2>:1\nfunction \(\)/,
  );
  const file = join(folder, "shop.mjs");
  writeFileSync(file, "\n\nexport function slow() {}\n");
  await guest.value(`import { slow } from ${JSON.stringify(file)}`);
  expect((await guest.tool("get-source", { name: "slow" })).text).toBe(
    `// ${pathToFileURL(file).href}:3\nfunction slow() {}`,
  );
  await guest.value("const where = () => import.meta.url");
  expect((await guest.tool("get-source", { name: "where" })).text).toMatch(/\n\(\) => import\.meta\.url$/);
});

it("get-source shows functions of Node's modules", async () => {
  expect(await guest.tool("get-source", { name: "os.homedir" })).not.toHaveProperty("isError");
  expect((await guest.tool("get-source", { name: "path.join" })).text).toContain("args");
});

it.each([
  ["none", "There is no none in this session"],
  ["names", "names is not a function or class but Map"],
])("get-source refuses %s", async (name, text) => {
  expect(await guest.tool("get-source", { name })).toMatchObject({
    isError: true,
    text: expect.stringContaining(text) as string,
  });
});

const complete = async (code: string, position = code.length): Promise<{ start: number; values: string[] }> =>
  (await guest.tool("complete", { code, position })) as unknown as { start: number; values: string[] };

it.each([
  ["fi", 0, ["fib"]],
  ["1 + POI", 4, ["Point"]],
  ["names.ge", 6, ["get"]],
  ["Point.prototype.le", 16, ["length"]],
  ["names?.si", 7, ["size"]],
  ["fs.readFileS", 3, ["readFileSync"]],
  ["nowhere.a", 8, []],
  ["12", 0, []],
  ["f().a", 4, []],
])("complete completes %j", async (code, start, values) => {
  expect(await complete(code)).toEqual({ start, values });
});

it("complete completes at a position, and calls no getter", async () => {
  expect(await complete("tra + 1", 3)).toEqual({ start: 0, values: ["trap", "trace_events"] });
  expect(await complete("trap.")).toEqual({ start: 5, values: [] });
  expect((await complete("")).values).toHaveLength(100);
});

it("complete completes and reads the resource of a variable", async () => {
  expect(
    await guest.tool("complete-argument", { template: "js://variable/{name}", argument: "name", value: "na" }),
  ).toEqual({
    values: ["names"],
    total: 1,
  });
  const read = (name: string): Promise<object> => guest.tool("read-resource", { arguments: { name } });
  expect(await read("names")).toMatchObject({ text: "names: Map\nMap(1) { 'a' => 1 }" });
  expect(await read("fib")).toMatchObject({
    text: expect.stringMatching(/^\/\/ function fib, <eval 1>:2\n\(n\) =>/) as string,
  });
  expect(await read("nowhere")).toMatchObject({ isError: true });
});

it("profile-code shows where the time went, and the value", async () => {
  const { text, data } = await guest.tool("profile-code", { code: "fib(33)" });
  expect(text).toMatch(/ms {1,}\d+\.\d%  fib {2}<eval 1>:2\n/);
  expect(text).toMatch(/\n=> 3524578$/);
  const { functions } = data as { readonly functions: readonly { readonly function: string }[] };
  expect(functions.map((one) => one.function)).toContain("fib");
});

it("profile-code reports an error", async () => {
  const failed = await guest.tool("profile-code", { code: "throw new Error('mine')" });
  expect(failed).toMatchObject({ isError: true, text: expect.stringMatching(/^\[ERROR\] Error\nmine\n/) as string });
});

it("heap-report shows the usage", async () => {
  const { text, data } = await guest.tool("heap-report");
  expect(text).toMatch(/^Heap: \S+ \S+ used of \S+ MiB allowed\nProcess: /);
  expect(data).not.toHaveProperty("grown");
});

it("heap-report shows what code has left behind", async () => {
  const { text, data } = await guest.tool("heap-report", { code: "grow(); held.length" });
  expect(text).toMatch(
    /Heap growth after the code and a full garbage collection: \+\d+ KiB\nStill in use[^\n]*\n[^\n]*grow {2}<eval 1>:5/,
  );
  expect(text).toMatch(/\n=> 50000$/);
  expect((data as { grown: number }).grown).toBeGreaterThan(500_000);
});

it("measures the heap after the collection", async () => {
  const fresh = await JavaScriptGuest.start();
  try {
    await fresh.value("globalThis.dropped = Array.from({ length: 300_000 }, (_, i) => ({ i })); dropped = undefined");
    const leak = "globalThis.leak = Array.from({ length: 200_000 }, (_, i) => ({ i, more: [i] })); 1";
    const { grown } = (await fresh.tool("heap-report", { code: leak })).data as { grown: number };
    expect(grown).toBeGreaterThan(5_000_000);
    await fresh.value("leak = undefined");
    const used = async (): Promise<number> =>
      ((await fresh.tool("heap-report", { gc: true })).data as { used: number }).used;
    const first = await used();
    expect(Math.abs(first - (await used()))).toBeLessThan(1_000_000);
  } finally {
    await fresh.close();
  }
});

it("last-error shows the last error again", async () => {
  const fresh = await JavaScriptGuest.start();
  try {
    expect((await fresh.tool("last-error")).text).toBe("There has been no error in this session.");
    const { condition } = await fresh.evaluate("null.none");
    await fresh.value("1");
    const { text, data } = await fresh.tool("last-error");
    expect(text).toMatch(/^\[ERROR\] TypeError\n.*\n\n\[Backtrace\]\n0: <eval 1>:1:6$/);
    expect(data).toEqual(condition);
  } finally {
    await fresh.close();
  }
});

it.each([
  ["let a = 1", "The syntax is valid: JavaScript, 1 statement(s).\nIt declares a (variable)."],
  ["type A = 1", "The syntax is valid: TypeScript, 0 statement(s)."],
  ["await 1", "The syntax is valid: JavaScript, 1 statement(s).\nIt has a top-level await."],
  ["import a from 'fs'", "The syntax is valid: JavaScript, 1 statement(s).\nIt declares a (import)."],
  ["let a = ;", "The syntax is invalid: Unexpected token (line 1, column 9)\n  let a = ;\n          ^"],
])("check-syntax checks %j", async (code, text) => {
  expect(await guest.tool("check-syntax", { code })).toMatchObject({ text });
});

it("check-syntax refuses code that is nested too deeply", async () => {
  const text = expect.stringContaining("nested too deeply") as string;
  expect(await guest.tool("check-syntax", { code: "[".repeat(20_000) })).toMatchObject({ text, isError: true });
});

it("the guest implements each of its tools, and no other", async () => {
  for (const { name } of TOOLS)
    await expect(
      guest.tool(name, { code: "1", name: "fib", files: ["nowhere.mjs"], framework: "node" }),
    ).resolves.toBeDefined();
  await expect(guest.tool("brew-coffee")).rejects.toThrow("A JavaScript session has no tool brew-coffee");
  expect(await guest.guest.control("ping", {})).toEqual({});
});

it("the guest has a description for all tools, and no empty one for an argument", () => {
  for (const { description, arguments: args } of [EVALUATE, ...TOOLS]) {
    expect(description).toMatch(/^[A-Z].*\.$/);
    // An argument whose name says all has no description.
    for (const one of Object.values(args)) expect(one.description).not.toBe("");
  }
});
