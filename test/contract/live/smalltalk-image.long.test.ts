// Smalltalk sessions in an image, through the bridge: Debian's Squeak (squeak-vm with the image of etoys), the only
// descendant of Squeak that can be installed from a package. Pharo, Cuis and newer Squeaks were not run.

import { readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { smalltalk } from "../../../src/live/index.ts";
import { ETOYS_IMAGE, squeakProgram } from "../../support/setup/smalltalk.ts";
import { LiveFixture } from "./live-fixture.ts";

/** In seconds, for evaluations that end by themselves, on a busy machine. */
const NORMAL = { timeout: 20 };

const folders = (): readonly string[] => readdirSync(tmpdir()).filter((name) => name.startsWith("catenary-image-"));

it("says what is missing", async () => {
  const fixture = await LiveFixture.open(smalltalk({ command: "no-such-vm", image: "none.image" }), "smalltalk");
  expect(await fixture.call("evaluate-smalltalk", { code: "3" })).toContain("no-such-vm is not on the PATH");
  await fixture.close();
  const other = await LiveFixture.open(smalltalk({ command: process.execPath, image: "none.image" }), "smalltalk");
  expect(await other.call("evaluate-smalltalk", { code: "3" })).toBe("The image none.image cannot be read");
  await other.close();
});

const program = squeakProgram();
if (program === undefined) console.error("Skipped: sessions in a Squeak image. squeak-vm or etoys is missing.");

describe.skipIf(program === undefined)("a session in Debian's Squeak", () => {
  let fixture: LiveFixture;
  const before = folders();
  const evaluate = (code: string, timeout = 20): ReturnType<LiveFixture["evaluate"]> =>
    fixture.evaluate(code, { timeout });

  beforeAll(async () => {
    fixture = await LiveFixture.open(smalltalk({ command: program ?? "", image: ETOYS_IMAGE }), "smalltalk");
    await evaluate("3 + 4", 100);
  });
  afterAll(async () => {
    await fixture?.close();
    // A bridge that was killed leaves a folder, which the next one removes; here none was killed.
    expect(folders().filter((name) => !before.includes(name))).toEqual([]);
  });

  it.each([
    ["3 + 4", "7"],
    ["100 factorial printString size", "158"],
    ["1/3", "(1/3)"],
    ["total := 3. twice := total * 2", "6"],
    ["total + twice", "9"],
    ["'ä€'", "'ä€'"],
  ])("a session in Debian's Squeak: %s => %s", async (code, value) => {
    expect(await evaluate(code)).toMatchObject({ status: "ok", values: [value] });
  });

  it("a session in Debian's Squeak reads JSON", async () => {
    const read = (json: string): string =>
      `(CatenaryJson new read: '${json}' asByteArray text: [:bytes | CatenaryGuest new fromUtf8: bytes])`;
    const json = '[1,-2.5,0.1,1e3,true,null,"a\\\\ \\u0041\\u00e9\\ud800",[]]';
    expect(await evaluate(`${read(json)} printString`)).toMatchObject({
      values: ["'#(1 -2.5 0.1 1000.0 true nil ''a\\ Aé\ufffd'' #())'"],
    });
    expect(await evaluate(`[${read('{"a":1')}] on: Error do: [:e | e messageText]`)).toMatchObject({
      values: ["', expected at byte 7'"],
    });
  });

  it("a session in Debian's Squeak reports syntax errors, and what is written to the Transcript", async () => {
    expect((await evaluate("3 +")).text).toBe("[ERROR] SyntaxError\n3 +Argument expected ->");
    expect((await evaluate("Transcript show: 'hello'; cr. 5")).text).toBe("hello\n=> 5");
  });

  it("a session in Debian's Squeak defines classes and methods, by tools and in chunks", async () => {
    await fixture.call("define-class", { name: "Account", "instance-variables": "balance", comment: "I hold money." });
    await fixture.call("compile-method", {
      class: "Account",
      source: "add: n\n\t| sum |\n\tsum := n * 2.\n\t^sum / 0",
    });
    expect(await fixture.call("compile-method", { class: "Account", source: "add: n\n\t^(n" })).toContain(
      "right parenthesis",
    );
    await evaluate("!Account methodsFor: 'x'!\nhello\n\t^'hi'! !");
    expect((await evaluate("Account new hello")).values).toEqual(["'hi'"]);
    expect(await fixture.call("browse-class", { class: "Account" })).toMatch(
      /Account[^]*balance[^]*I hold money\.[^]*add:/,
    );
    expect(await fixture.call("method-source", { class: "Account", selector: "hello" })).toContain("^'hi'");
    expect(await fixture.call("implementors", { selector: "hello" })).toContain("Account>>hello");
    expect(await fixture.call("senders", { selector: "inject:into:" })).toContain("Collection>>");
    expect(await fixture.call("list-definitions")).toContain("Account>>add:");
    expect(await fixture.call("run-tests", { class: "Account" })).toContain("no SUnit");
  });

  it("a session in Debian's Squeak keeps the values of handles within a budget of bytes, and the newest in any case", async () => {
    const handleOf = async (bytes: number): Promise<number> => {
      const { text } = await evaluate(`SharedQueue new nextPut: (ByteArray new: ${bytes}); yourself`);
      return Number(/^=> a SharedQueue \[handle (\d+)\]$/.exec(text)?.[1]);
    };
    const inspect = (handle: number): Promise<string> => fixture.call("inspect", { handle });
    const first = await handleOf(1_000_000);
    const second = await handleOf(1_500_000);
    await handleOf(1_000_000);
    const fourth = await handleOf(1_000_000);
    expect(await inspect(first)).toContain(`There is no handle ${first}; the last 200 are kept`);
    // Gives handles to its parts.
    expect(await inspect(second)).toContain("contentsArray");
    const large = await handleOf(5_000_000);
    expect(await inspect(large)).toContain("contentsArray");
    expect(await inspect(fourth)).toContain(`There is no handle ${fourth}`);
  });

  it("a session in Debian's Squeak stays at an error: variables, restarts, frames, handles", async () => {
    const { text, condition } = await evaluate("(Account new add: 4) + 1");
    expect(condition?.type).toBe("ZeroDivide");
    expect(text).toMatch(
      /SmallInteger>>\/[^]*Account>>add:\n {5}self = an? Account \[handle \d+\]\n {5}n = 4\n {5}sum = 8/,
    );
    expect(await fixture.call("list-restarts")).toContain("[resume:]");
    expect(await fixture.call("evaluate-in-frame", { frame: 1, code: "sum + n" })).toBe("=> 12");
    const [, handle] = /\[handle (\d+)\]/.exec(text) ?? [];
    expect(await fixture.call("inspect", { handle: Number(handle) })).toContain("0: balance = nil");
    expect(await fixture.call("take-restart", { restart: "resume:", value: "10" })).toBe("=> 11");
    expect(await fixture.call("take-restart", { restart: "abort" })).toContain("There is no open error");
  });

  it.each(["[1/0] ensure: [1 zork]", "[1/0] ifCurtailed: [1 zork]"])(
    "a session in Debian's Squeak runs the next evaluation although the cleanup before it fails: %s",
    async (code) => {
      expect(await evaluate(code)).toMatchObject({ condition: { type: "ZeroDivide" } });
      expect((await evaluate("total := 42")).values).toEqual(["42"]);
      expect((await evaluate("total zork")).condition?.type).toBe("MessageNotUnderstood");
    },
  );

  it.each(["[true] whileTrue: []", "(Delay forSeconds: 60) wait", "[[true] whileTrue: []] ensure: [total := 5]"])(
    "a session in Debian's Squeak interrupts %s and keeps the state",
    async (code) => {
      await evaluate("total := 3");
      expect(await evaluate(code, 1)).toMatchObject({ status: "timeout", step: "interrupt", state: "kept" });
      await expect.poll(async () => (await evaluate("total")).values).toEqual([code.includes("ensure") ? "5" : "3"]);
    },
  );

  it("a session in Debian's Squeak ends with the image, and a new session begins", async () => {
    expect(await evaluate("Smalltalk snapshot: false andQuit: true")).toMatchObject({ status: "lost" });
    expect((await fixture.evaluate("3 + 4", { ...NORMAL, timeout: 100 })).values).toEqual(["7"]);
  });
});
