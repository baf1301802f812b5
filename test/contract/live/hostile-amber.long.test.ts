// Hostile Smalltalk on Amber, through the tools: loops wherever code can run, loops that catch everything, endless
// recursion and output, growing heaps, exits, and changed basic classes.

import { afterAll, beforeAll, expect, it } from "vitest";
import { smalltalk } from "../../../src/live/index.ts";
import { HostileHarness, RETRIES, type HostileCase } from "./hostile-harness.ts";
import { LiveFixture } from "./live-fixture.ts";

const STOPPED = { status: "timeout", step: "interrupt" } as const;
const failed = (type: string): Pick<HostileCase, "status" | "shows"> => ({
  status: "error",
  shows: { condition: { type } },
});
const answered = (...values: string[]): Pick<HostileCase, "status" | "shows"> => ({ status: "ok", shows: { values } });
/** Ends by itself, so the timeout only guards against a hang. */
const SLOW = 30;
const LOOPING_PRINT = `Object subclass: #Loops slots: #() package: 'Hostile'.
  Compiler new install: 'printOn: aStream [true] whileTrue: []' forClass: Loops protocol: 'printing'`;
const FAILING_PRINT = `Object subclass: #Fails slots: #() package: 'Hostile'.
  Compiler new install: 'printOn: aStream self zork' forClass: Fails protocol: 'printing'`;
const RECURSION = `Object subclass: #Deep slots: #() package: 'Hostile'.
  Compiler new install: 'deeper ^ self deeper + 1' forClass: Deep protocol: 'p'`;

const CASES: readonly HostileCase[] = [
  { name: "an endless loop", code: "[true] whileTrue: []", ...STOPPED },
  { name: "a loop in a method of a collection", code: "#(1) do: [:each | [true] whileTrue: [each + 1]]", ...STOPPED },
  {
    name: "loops that catch everything",
    code: "[true] whileTrue: [[[true] whileTrue: []] on: Error do: [:error | 5]]",
    ...STOPPED,
  },
  // Amber does not run the block when code is terminated.
  { name: "a loop with ensure:", code: "[[true] whileTrue: []] ensure: [earlier := nil]", ...STOPPED },
  { name: "a loop in an ensure: block", code: "[1 zork] ensure: [[true] whileTrue: []]", ...STOPPED },
  { name: "a loop that prints", code: "[true] whileTrue: [Transcript show: 'again'; cr]", ...STOPPED },
  { name: "a long loop", code: "1 to: 1000000000 do: [:each | each sqrt]", ...STOPPED },
  { name: "a loop in JavaScript", code: "Compiler new eval: 'for (;;);'", ...STOPPED },
  { name: "a printOn: that never ends", definition: LOOPING_PRINT, code: "Loops new", ...STOPPED },
  {
    name: "a printOn: that never ends, in a variable of an error",
    definition: LOOPING_PRINT,
    code: "| loops | loops := Loops new. loops zork",
    ...STOPPED,
  },
  { name: "a printOn: that fails", definition: FAILING_PRINT, code: "Fails new", ...failed("MessageNotUnderstood") },
  { name: "a promise that nothing resolves", code: "Promise new: [:model | nil]", ...answered("a Promise") },
  { name: "endless recursion", definition: RECURSION, code: "Deep new deeper", ...failed("RangeError") },
  {
    name: "a block that calls itself",
    code: "again := nil. again := [again value]. again value",
    ...failed("RangeError"),
  },
  { name: "a cyclic collection", code: "all := Array new. all add: all. all size", ...answered("1") },
  { name: "a cyclic collection, printed", code: "all := Array new. all add: all. all", status: "ok" },
  {
    name: "a long string",
    code: "text := 'x'. 22 timesRepeat: [text := text, text]. text size",
    timeout: SLOW,
    ...answered("4194304"),
  },
  {
    name: "an error that is no error",
    code: "(Compiler new eval: '(function () { throw 5; })') value",
    status: "error",
  },
  { name: "a thrown nil", code: "(Compiler new eval: '(function () { throw null; })') value", status: "error" },
  { name: "an error without a text", code: "Error new messageText: nil; signal", ...failed("Error") },
  { name: "a removed method", code: "Smalltalk removeClass: Deep. 3", definition: RECURSION, ...answered("3") },
  {
    name: "a heap that grows",
    code: "all := Array new. make := Compiler new eval: '(() => new Array(1e6).fill(0.5))'. [true] whileTrue: [all add: make value]",
    timeout: SLOW,
    status: "lost",
    step: "restart",
    shows: { notice: expect.stringContaining("lost definitions: earlier") as string },
  },
  {
    name: "an exit",
    code: "(Compiler new eval: 'process') exit: 3",
    status: "lost",
    step: "restart",
    shows: { notice: expect.stringContaining("exit code 3") as string },
  },
];

let fixture: LiveFixture;
let harness: HostileHarness;
beforeAll(async () => {
  fixture = await LiveFixture.open(smalltalk({ limits: { memoryMb: 256 } }), "smalltalk");
  const define = (number: number): string => `earlier := ${number}`;
  harness = new HostileHarness(fixture, { define, recall: "earlier", unknown: "UnknownVariableError" });
  await harness.open();
});
afterAll(async () => {
  await fixture?.close();
  console.error(harness.report("Smalltalk on Amber"));
});

it.each(CASES)("hostile Smalltalk on Amber: $name", RETRIES, async (hostile) => {
  await harness.run(hostile);
});

it("hostile Smalltalk on Amber in four sessions at once", async () => {
  await harness.runTogether("[true] whileTrue: []", 4);
});
