// The guest on a real GNU Smalltalk: values, errors with frames and variables, restarts, interrupts and images.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { gstProgram } from "../../../test/support/setup/smalltalk.ts";
import { Guest, type GuestReply } from "../guest.ts";
import { DEFAULT_LIMITS, type GuestEvaluation } from "../runtime.ts";
import { gstRuntime } from "./index.ts";

const LIMITS = { printLength: 5, printDepth: 4, outputChars: 100_000, holdErrors: true };
const POINT =
  "Object subclass: Pt [\n  | x |\n  foo: a [ | t | t := a * 2.\n    ^self bar: t ]\n  bar: b [ ^b zork ]\n]";

it("says what to install if the program is missing", async () => {
  await expect(gstRuntime({ command: "no-such-gst" }).start(DEFAULT_LIMITS)).rejects.toThrow(
    /^no-such-gst is not on the PATH. This session needs GNU Smalltalk; install it or give its path/,
  );
});

describe.skipIf(gstProgram() === undefined)("a guest in GNU Smalltalk (needs gst)", () => {
  const runtime = gstRuntime({ command: gstProgram() ?? "gst" });
  const folder = mkdtempSync(join(tmpdir(), "catenary-gst-"));
  let guest: Guest;
  let output = "";

  const start = async (image?: string): Promise<void> => {
    const { checkpoint } = runtime;
    const from = image === undefined ? runtime : { ...runtime, start: () => checkpoint.start(DEFAULT_LIMITS, image) };
    guest = await Guest.start(from, DEFAULT_LIMITS);
    output = "";
    guest.onRawOutput = (text) => void (output += text);
  };
  const ask = (op: string, params: object = {}): Promise<GuestReply> =>
    guest.request(op, { ...LIMITS, ...params }).reply;
  const evaluate = async (code: string): Promise<GuestEvaluation> =>
    (await ask("eval", { code })) as unknown as GuestEvaluation;
  /** Interrupts the evaluation as soon as it prints. */
  const interrupted = async (code: string, step = "interrupt"): Promise<GuestEvaluation> => {
    const { id, reply } = guest.request("eval", { ...LIMITS, code: `Transcript showCr: 'begun'. ${code}` });
    await expect.poll(() => output).toContain("begun\n");
    await guest.control(step, { target: id });
    return (await reply) as unknown as GuestEvaluation;
  };

  beforeEach(async () => start());
  afterEach(async () => guest.close(0));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  it("a guest in GNU Smalltalk starts from an image that it has saved", async () => {
    await evaluate("kept := 3 + 4");
    await ask("save-image", { path: join(folder, "saved.image") });
    await guest.close(0);
    const options = { command: gstProgram() ?? "gst", image: "saved.image", cwd: folder };
    guest = await Guest.start(gstRuntime(options), DEFAULT_LIMITS);
    expect(await evaluate("kept")).toMatchObject({ status: "ok", values: ["7"] });
  });

  it("a guest in GNU Smalltalk prints values within the limits, with a handle where something is left out", async () => {
    expect(await evaluate("{#(1 $a 'it''s' #foo:). 3/4. 1->2. 'ä€'}")).toMatchObject({
      values: ["((1 $a 'it''s' #foo: ) 3/4 1->2 'ä€' )"],
      handles: [null],
    });
    expect((await evaluate("(1 to: 9) asOrderedCollection")).values).toEqual([
      "OrderedCollection (1 2 3 4 5 ... 4 more )",
    ]);
    expect((await evaluate("| a | a := Array new: 1. a at: 1 put: a. a")).values).toEqual(["((((an Array ) ) ) )"]);
    expect(await evaluate("Object new")).toMatchObject({ values: ["an Object"], handles: [3] });
    expect((await evaluate("String new: 2000000 withAll: $a")).values[0]).toHaveLength(1_000_003);
    expect((await evaluate("String new: 300000")).values[0]).toHaveLength(166_669);
  });

  it("a guest in GNU Smalltalk prints a dictionary, a set and other objects as GNU Smalltalk does", async () => {
    const objects = [
      "(Dictionary new) at: 1 put: 2; yourself",
      "Set with: 3",
      "Bag with: 4",
      "1@2",
      "Object class",
      "#[1]",
    ];
    for (const code of objects) {
      const { values } = await evaluate(code);
      const [own] = (await evaluate(`(${code}) printString`)).values;
      expect(values).toEqual([own?.slice(1, -1)]);
    }
  });

  it("a guest in GNU Smalltalk keeps assigned names, and reports what was defined", async () => {
    expect((await evaluate("a := 3. b := a * 2")).defined).toEqual([
      { type: "variable", name: "a" },
      { type: "variable", name: "b" },
    ]);
    expect((await evaluate("a + b")).values).toEqual(["9"]);
    expect((await evaluate(`${POINT} Pt new`)).defined).toEqual([
      { type: "class", name: "Pt" },
      { type: "method", name: "Pt>>foo:" },
      { type: "method", name: "Pt>>bar:" },
    ]);
    expect((await evaluate("!Pt methodsFor: 'x'! baz ^'chunk'! ! Pt new baz!")).values).toEqual(["'chunk'"]);
  });

  it("a guest in GNU Smalltalk takes class definitions as Pharo writes them, and reports the classes", async () => {
    const definitions = [
      "Object subclass: #One instanceVariableNames: 'a' classVariableNames: 'B' package: 'P'",
      "Object subclass: #One instanceVariableNames: 'a' classVariableNames: 'B' category: 'P'",
      "Object subclass: #One instanceVariableNames: 'a' package: 'P'",
      "Object subclass: #One slots: { #a } classVariables: { #B } package: 'P'",
      "Object << #One slots: { #a }; sharedVariables: { #B }; tag: 'T'; package: 'P'",
    ];
    for (const code of definitions) {
      expect(await evaluate(code)).toMatchObject({ values: ["One"], defined: [{ type: "class", name: "One" }] });
      expect((await evaluate("{One superclass. One instVarNames. One category}")).values).toEqual([
        "(Object (#a ) 'P' )",
      ]);
    }
    // The instances of a class that stays what it is keep their values.
    await evaluate("!One methodsFor: 'x'! a ^a! a: x a := x! ! one := One new a: 7!");
    await evaluate("Object << #One slots: { #a. #b }; package: 'Q'");
    expect((await evaluate("{one a. One instVarNames. One category}")).values).toEqual(["(7 (#a #b ) 'Q' )"]);
  });

  it("a guest in GNU Smalltalk keeps an open error, with all of its restarts, while methods and classes are defined", async () => {
    await evaluate("Object subclass: #Late instanceVariableNames: '' package: 'P'");
    await evaluate("x := Late new twice. x + 1");
    await guest.request("compile-method", { class: "Late", source: "twice ^2" }).reply;
    await guest.request("define-class", { name: "Later", superclass: "Late" }).reply;
    const { text } = await guest.request("list-restarts", {}).reply;
    expect(text).toContain("0: [resume:]");
    const resumed = await guest.request("take-restart", { restart: "resume:", value: "Late new twice", ...LIMITS })
      .reply;
    expect(resumed).toMatchObject({ status: "ok", values: ["3"] });
  });

  it.each([
    ["#(1) do: [:a | #(3) do: [:b | b zork]]", ["b = 3", "a = 1"]],
    ["[:k | k > 3 ifTrue: [[:m | | q | q := m. q zork] value: k + 1]] value: 9", ["m = 10, q = 10", "k = 9"]],
    ["[:g | g zork] value: 1. [:h | h] value: 2", ["g = 1"]],
  ])("a guest in GNU Smalltalk names the variables of blocks in one line: %s", async (code, expected) => {
    const { condition } = await evaluate(code);
    const shown = (condition?.frames ?? []).flatMap(({ text, locals = [] }) =>
      text.startsWith("[] in DoIt") ? [locals.map(({ name, value }) => `${name} = ${value}`).join(", ")] : [],
    );
    expect(shown).toEqual(expected);
  });

  it("a guest in GNU Smalltalk sends what the code prints, in order", async () => {
    await evaluate("Transcript showCr: 'one'. 'two' displayNl. 3 printNl. stdout nextPutAll: 'four'; nl");
    expect(output).toBe("one\ntwo\n3\nfour\n");
  });

  it.each([
    ["3 +", "SyntaxError", "<eval 1>:1: expected object"],
    ["3.\n(4", "SyntaxError", "<eval 1>:2: parse error, expected ')'"],
    ["nothing", "SyntaxError", "<eval 1>:1: undefined variable nothing referenced"],
    ["Object subclass: B [\n foo [ ^(3 ] ]", "SyntaxError", "<eval 1>:2: parse error, expected ')'"],
    ["nil foo", "MessageNotUnderstood", "nil does not understand #foo"],
    ["Nothing new", "MessageNotUnderstood", "nil does not understand #new (not defined: Nothing)"],
    ["#(1) at: 5", "SystemExceptions.IndexOutOfRange", "Invalid index 5: index out of range"],
    ["self halt", "Halt", "halt encountered"],
    ["Exception new signal: 'x'", "Exception", "x"],
    ["Processor activeProcess terminate", "ProcessTerminated", expect.stringContaining("a new one goes on")],
  ])("a guest in GNU Smalltalk: %j fails with %s", async (code, type, message) => {
    expect(await evaluate(code)).toMatchObject({ status: "error", values: [], condition: { type, message } });
    expect((await evaluate("3 + 4")).values).toEqual(["7"]);
  });

  it("a guest in GNU Smalltalk warns once if the products of this build are wrong, and goes on after warnings", async () => {
    const isExact = (await evaluate("(4000000000 * 4000000000) = 16000000000000000000")).values[0] === "true";
    expect(guest.version.includes("its integer products are wrong")).toBe(!isExact);
    expect((await evaluate("3")).warnings).toEqual([]);
    await guest.close(0);
    await start();
    const types = (await evaluate("Warning signal: 'careful'. 3")).warnings.map(({ type }) => type);
    expect(types).toEqual(isExact ? ["Warning"] : ["IntegerArithmetic", "Warning"]);
  });

  it("a guest in GNU Smalltalk shows the user's frames with their variables, and names their source", async () => {
    const { condition } = await evaluate(`${POINT}\n#(3) do: [:each | | two | two := 2.\n  Pt new foo: each]`);
    expect(condition?.frames).toEqual([
      { number: 0, text: "Pt>>bar: (<eval 1>:5)", locals: [expect.any(Object), { name: "b", value: "6" }] },
      {
        number: 1,
        text: "Pt>>foo: (<eval 1>:4)",
        locals: [
          { name: "self", value: "a Pt", handle: 1 },
          { name: "a", value: "3" },
          { name: "t", value: "6" },
        ],
      },
      {
        number: 2,
        text: "[] in DoIt (<eval 1>:8)",
        locals: [
          { name: "each", value: "3" },
          { name: "two", value: "2" },
        ],
      },
      { number: 3, text: expect.stringMatching(/^Array\(\w+\)>>do: \(SeqCollect\.st:\d+\)$/) as string },
      { number: 4, text: "DoIt (<eval 1>:7)" },
    ]);
  });

  it("a guest in GNU Smalltalk stays at an error: evaluates in a frame, and takes a restart", async () => {
    await evaluate(POINT);
    const { condition } = await evaluate("(Pt new foo: 3) + 1");
    expect(condition?.restarts.map(({ name }) => name)).toEqual(["resume:", "return:", "retry", "abort"]);
    expect(await ask("list-restarts")).toMatchObject({ text: expect.stringMatching(/^\[Restarts\]\n0: \[resume:\] /) });
    expect(await ask("evaluate-in-frame", { frame: 1, code: "x := 9. t := t + 1. t" })).toMatchObject({
      values: ["7"],
    });
    expect(await ask("evaluate-in-frame", { frame: 1, code: "{self class. x. t. a}" })).toMatchObject({
      values: ["(Pt 9 7 3 )"],
    });
    expect(await ask("evaluate-in-frame", { frame: 1, code: "self zork" })).toMatchObject({
      status: "error",
      condition: { message: "a Pt does not understand #zork", frames: [{ text: "[] in DoIt (code:1)" }] },
    });
    await expect(ask("take-restart", { restart: "nothing" })).rejects.toThrow("There is no restart nothing");
    expect(await ask("take-restart", { restart: "resume:", value: "100" })).toMatchObject({ values: ["101"] });
    await expect(ask("take-restart", { restart: "abort" })).rejects.toThrow("There is no open error");
    await expect(ask("evaluate-in-frame", { frame: 0, code: "3" })).rejects.toThrow("There is no open error");
  });

  it("a guest in GNU Smalltalk returns a value, retries and aborts", async () => {
    await evaluate(POINT);
    await evaluate("Pt new foo: 3");
    expect(await ask("take-restart", { restart: "1", value: "#other" })).toMatchObject({ values: ["#other"] });
    await evaluate("Pt new foo: 3");
    await ask("compile-method", { class: "Pt", source: "bar: b\n  ^b", protocol: "maths" });
    expect(await ask("take-restart", { restart: "retry" })).toMatchObject({ status: "ok", values: ["6"] });
    await evaluate("nil foo");
    expect(await ask("take-restart", { restart: "abort" })).toMatchObject({ status: "ok", values: [] });
  });

  it("a guest in GNU Smalltalk unwinds an open error before the next evaluation, and when it is closed", async () => {
    await evaluate("log := OrderedCollection new. [nil foo] ensure: [log add: 1]");
    expect((await evaluate("log size")).values).toEqual(["1"]);
    await evaluate("[nil foo] ensure: [log add: 2]");
    await ask("close-error");
    expect((await evaluate("log size")).values).toEqual(["2"]);
    expect(await ask("eval", { code: "[nil foo] ensure: [log add: 3]", holdErrors: false })).not.toHaveProperty(
      "condition.open",
    );
    expect(await ask("list-restarts")).toMatchObject({ isError: true });
    expect((await evaluate("log size")).values).toEqual(["3"]);
  });

  it.each(["[nil foo] ensure: [1 zork]", "[nil foo] ifCurtailed: [1 zork]"])(
    "a guest in GNU Smalltalk runs the next evaluation although the cleanup before it fails: %s",
    async (code) => {
      await evaluate(code);
      expect(await evaluate("ran := 42")).toMatchObject({ status: "ok", values: ["42"] });
      await expect
        .poll(() => output)
        .toBe("Error in the cleanup of the last evaluation: 1 does not understand #zork\n");
      expect((await evaluate("ran")).values).toEqual(["42"]);
      await evaluate(code);
      expect(await ask("take-restart", { restart: "abort" })).toMatchObject({ condition: { open: true } });
    },
  );

  it("a guest in GNU Smalltalk inspects values by their handle, page by page", async () => {
    await evaluate(`${POINT} Pt new`);
    expect(await ask("inspect", { handle: 1 })).toEqual({ text: "a Pt\nClass: Pt, 1 part\n0: x = nil" });
    await evaluate("(1 to: 60) asArray");
    const { text } = await ask("inspect", { handle: 2, start: 50 });
    expect(text).toMatch(
      /^\(1 2 3 4 5 \.\.\. 55 more \)\nClass: Array, 60 parts\n50: \[51\] = 51\n[^]*59: \[60\] = 60$/,
    );
    expect(await ask("inspect", { handle: 99 })).toMatchObject({
      isError: true,
      text: expect.stringContaining("no handle 99"),
    });
  });

  it.each([
    ["[true] whileTrue: []", "DoIt (<eval 2>:1)"],
    ["[true] whileTrue: [[[true] whileTrue: []] on: Exception do: [:e | e return: 5]]", "[] in DoIt (<eval 2>:1)"],
    ["Semaphore new wait", "DoIt (<eval 2>:1)"],
    ["Processor activeProcess suspend", "DoIt (<eval 2>:1)"],
    ["[[true] whileTrue: []] ensure: [kept := 4]", "[] in DoIt (<eval 2>:1)"],
  ])("a guest in GNU Smalltalk interrupts %j and keeps the state", async (code, text) => {
    await evaluate("kept := 3");
    const { status, condition } = await interrupted(code);
    expect([status, condition?.frames[0]?.text]).toEqual(["interrupted", text]);
    expect((await evaluate("kept")).values).toEqual([code.includes("ensure") ? "4" : "3"]);
  });

  it.each([
    "Processor activeProcess valueWithoutInterrupts: [[true] whileTrue: []]",
    "[[true] whileTrue: []] forkAt: Processor userInterruptPriority. 5",
    "Transcript critical: [[true] whileTrue: []]",
  ])("a guest in GNU Smalltalk replaces the evaluator for %j and keeps the state", async (code) => {
    await evaluate("kept := 3");
    expect(await interrupted(code, "renew")).toMatchObject({ status: "interrupted" });
    expect((await evaluate("Transcript showCr: 'still here'. kept")).values).toEqual(["3"]);
    expect(output).toContain("still here");
  });

  it("a guest in GNU Smalltalk runs SUnit tests, with the reasons of failures", async () => {
    await evaluate(
      "TestCase subclass: PtTest [ testA [ self assert: 3 = 4 ] testB [ nil zork ] testC [ self assert: true ] ]",
    );
    expect(output).toBe("");
    const failures = [
      { name: "PtTest>>testA", reason: "Assertion failed" },
      { name: "PtTest>>testB", reason: "MessageNotUnderstood: nil does not understand #zork" },
    ];
    expect(await ask("run-tests")).toEqual({ tests: { passed: 1, failed: 2, failures } });
    expect(await ask("run-tests", { class: "PtTest", selector: "testC" })).toMatchObject({
      tests: { passed: 1, failed: 0 },
    });
    expect(await ask("run-tests", { class: "Object" })).toMatchObject({ isError: true });
  });

  it("a guest in GNU Smalltalk keeps an error open if code in one of its frames is interrupted", async () => {
    await evaluate("| x | x := 5. x / 0");
    const before = await ask("list-restarts");
    const code = "Transcript showCr: 'begun'. [true] whileTrue: []";
    const { id, reply } = guest.request("evaluate-in-frame", { ...LIMITS, frame: 1, code });
    await expect.poll(() => output).toContain("begun\n");
    await guest.control("interrupt", { target: id });
    expect(await reply).toMatchObject({ status: "interrupted" });
    expect(await ask("list-restarts")).toEqual(before);
    expect(await ask("evaluate-in-frame", { frame: 1, code: "x" })).toMatchObject({ status: "ok", values: ["5"] });
    expect(await ask("take-restart", { restart: "resume", value: "7" })).toMatchObject({ status: "ok", values: ["7"] });
  });

  it("a guest in GNU Smalltalk cuts long messages of errors", async () => {
    const { condition } = await evaluate("self error: (String new: 5000000)");
    expect(condition?.message).toHaveLength(20_003);
    expect(await evaluate("3 + 4")).toMatchObject({ values: ["7"] });
  });

  it("a guest in GNU Smalltalk says that a method is nested too deeply", async () => {
    const source = `foo ^${"(".repeat(5_000)}1${")".repeat(5_000)}`;
    expect(await ask("compile-method", { class: "Object", source })).toMatchObject({
      text: expect.stringContaining("the code is nested more than 1,000 levels deep") as string,
      isError: true,
    });
  });

  it("a guest in GNU Smalltalk saves an image, from which a session starts with its variables, classes and definitions", async () => {
    const file = join(folder, "saved.im");
    await evaluate(`${POINT} kept := Pt new`);
    expect(await ask("save-session", { path: join(folder, "none", "x.im") })).toMatchObject({ isError: true });
    expect(await ask("save-session", { path: file })).toEqual({ text: `Saved the image to ${file}` });
    expect((await evaluate("kept")).values).toEqual(["a Pt"]);
    process.kill(guest.pid, "SIGKILL");
    await start(file);
    const { condition } = await evaluate("kept foo: 3");
    expect(condition?.frames[1]).toMatchObject({
      text: "Pt>>foo: (<eval 1>:4)",
      locals: [{}, { name: "a", value: "3" }, {}],
    });
    expect((await ask("list-definitions"))["text"]).toContain("Variables:\n  kept = a Pt");
    expect(await interrupted("[true] whileTrue: []")).toMatchObject({ status: "interrupted" });
  });

  it("a guest in GNU Smalltalk completes variables, classes and selectors", async () => {
    await evaluate(`total := 3. ${POINT}`);
    expect(await ask("complete", { code: "3 + tot", position: 7 })).toMatchObject({ start: 4, values: ["total"] });
    expect(await ask("complete", { code: "OrderedC", position: 8 })).toEqual({
      start: 0,
      values: ["OrderedCollection"],
    });
    expect((await ask("complete", { code: "x injec", position: 7 }))["values"]).toContain("inject:into:");
    const template = "pharo://method/{className}/{selector}";
    const others = { className: "Pt" };
    expect(await ask("complete-argument", { template, argument: "selector", value: "f", others })).toEqual({
      values: ["foo:"],
      total: 1,
    });
    expect(await ask("read-resource", { template: "pharo://class/{className}", arguments: others })).toEqual({
      text:
        '{"name":"Pt","superclass":"Object","instanceVariables":["x"],"methods":["bar:","foo:"],' +
        '"classMethods":[],"comment":"","package":""}',
      mimeType: "application/json",
    });
  });
});
