// Hostile code in GNU Smalltalk through the tools, while another session keeps working: endless and unstoppable loops,
// processes that starve others, deep recursion, full memory, exits.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { smalltalk } from "../../../src/live/index.ts";
import { gstProgram } from "../../support/setup/smalltalk.ts";
import { HostileHarness, RETRIES, type HostileCase } from "./hostile-harness.ts";
import { LiveFixture } from "./live-fixture.ts";

const STOPPED = { status: "timeout", step: "interrupt" } as const;
const RENEWED = { status: "timeout", step: "renew" } as const;
const failed = (type: string): Pick<HostileCase, "status" | "shows"> => ({
  status: "error",
  shows: { condition: { type } },
});
/** Ends by itself, so the timeout only guards against a hang. */
const SLOW = 60;

const CASES: readonly HostileCase[] = [
  { name: "an endless loop", code: "[true] whileTrue: []", ...STOPPED },
  { name: "a loop with cleanup", code: "[[true] whileTrue: []] ensure: [Cleaned := 1]", ...STOPPED },
  {
    name: "a loop that catches all exceptions",
    code: "[true] whileTrue: [[[true] whileTrue: []] on: Exception do: [:e | e return: 5]]",
    ...STOPPED,
  },
  { name: "a long wait", code: "(Delay forSeconds: 60) wait", ...STOPPED },
  { name: "a semaphore that nobody signals", code: "Semaphore new wait", ...STOPPED },
  { name: "a suspended process", code: "Processor activeProcess suspend", ...STOPPED },
  { name: "cleanup that never ends", code: "[[true] whileTrue: []] ensure: [[true] whileTrue: []]", ...RENEWED },
  {
    name: "a loop that cannot be interrupted",
    code: "Processor activeProcess valueWithoutInterrupts: [[true] whileTrue: []]",
    ...RENEWED,
  },
  { name: "a loop that holds the transcript", code: "Transcript critical: [[true] whileTrue: []]", ...STOPPED },
  {
    name: "a print method that never ends",
    definition: "Object subclass: Loud [ printOn: s [ [true] whileTrue: [] ] ]",
    code: "Loud new",
    ...RENEWED,
  },
  {
    name: "another process that never waits",
    code: "[[true] whileTrue: []] forkAt: Processor userInterruptPriority. 5",
    ...RENEWED,
  },
  {
    name: "an error whose cleanup never ends",
    first: "[nil foo] ensure: [[true] whileTrue: []]",
    code: "3",
    ...STOPPED,
  },
  {
    name: "endless recursion",
    definition: "Object subclass: Deep [ down [ ^self down + 1 ] ]",
    code: "Deep new down",
    timeout: SLOW,
    ...failed("OutOfMemory"),
  },
  {
    name: "memory that fills up",
    code: "| all | all := OrderedCollection new. [true] whileTrue: [all add: (Array new: 1000)]",
    timeout: SLOW,
    ...failed("OutOfMemory"),
  },
  { name: "the end of its own process", code: "Processor activeProcess terminate", ...failed("ProcessTerminated") },
  { name: "an error in another process", code: "[nil foo] fork. Processor yield. 3", status: "ok" },
  { name: "the end of the program", code: "ObjectMemory quit: 3", status: "lost", step: "restart", last: true },
];

describe.skipIf(gstProgram() === undefined)("hostile GNU Smalltalk (needs gst)", () => {
  let fixture: LiveFixture;
  let harness: HostileHarness;

  beforeAll(async () => {
    const server = smalltalk({ command: gstProgram() ?? "gst", limits: { memoryMb: 128 } });
    fixture = await LiveFixture.open(server, "smalltalk");
    const define = (number: number): string => `earlier := ${number}`;
    harness = new HostileHarness(fixture, { define, recall: "earlier", unknown: "SyntaxError" });
    await harness.open();
  });
  afterAll(async () => {
    await fixture?.close();
    console.error(harness.report("GNU Smalltalk"));
  });

  it.each(CASES)("hostile GNU Smalltalk: $name", RETRIES, async (hostile) => {
    await harness.run(hostile);
  });

  it("hostile GNU Smalltalk: a checkpoint after kill -9", async () => {
    const session = "killed";
    await fixture.evaluate("Object subclass: Pt [ | x | x [ ^x ] x: a [ x := a ] ] kept := Pt new x: 5; yourself", {
      session,
    });
    expect(await fixture.call("save-session", { session })).toMatch(
      /^Saved session killed as checkpoint killed: an image/,
    );
    expect(await fixture.evaluate("Smalltalk system: 'kill -9 $PPID'", { session })).toMatchObject({ status: "lost" });
    expect(await fixture.call("restore-session", { session })).toBe("Restored session killed from checkpoint killed.");
    expect((await fixture.evaluate("kept x: kept x + 1; x", { session })).values).toEqual(["6"]);
  });

  it("hostile GNU Smalltalk in four sessions at once", async () => {
    await harness.runTogether("[true] whileTrue: []", 4);
  });
});
