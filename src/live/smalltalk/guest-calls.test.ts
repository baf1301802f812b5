// Code in GNU Smalltalk that calls tools: the values it gets and sends, errors as exceptions, and what happens to calls
// when their run is stopped.

import { dirname } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startCode, type RunningCode } from "../../../test/support/live/code-run.ts";
import { gstProgram } from "../../../test/support/setup/smalltalk.ts";
import { IS_LONG } from "../../../test/support/thoroughness.ts";
import { sandboxProblem } from "../sandbox.ts";
import { smalltalkLanguage } from "./index.ts";

const gst = gstProgram();
const language = () => smalltalkLanguage({ command: gst ?? "gst" });

describe.skipIf(gst === undefined)("code in GNU Smalltalk that calls tools (needs gst)", () => {
  let code: RunningCode;
  /** The arguments that the tool `given` gets. */
  const sent = async (args: string): Promise<unknown> => {
    const { content } = await code.run(`Transcript showCr: (Tools notes given: ${args}). nil`);
    return JSON.parse(content[0]?.text.split("\n")[0] ?? "");
  };

  beforeAll(async () => {
    code = await startCode(language(), { maxCalls: 30, maxResultBytes: 3_000_000 });
    // The first result of some builds has a warning about their arithmetic.
    await code.run("nil");
  });
  afterAll(async () => code.close());

  it("code in GNU Smalltalk that calls tools gets structured content as a value, text as a string, and other content in a dictionary", async () => {
    const add = "Tools call: 'notes.add' with: (Dictionary new at: 'a' put: 1; at: 'b' put: 2; yourself)";
    expect(await code.text(add)).toMatch(/^=> (?:a )?Dictionary \(\s+'sum'->3\s+\)$/);
    expect(await code.text("(Tools notes add: {'a'->1. 'b'->2}) at: 'sum'")).toBe("=> 3");
    expect(await code.text("(Tools add: {'a'->1. #b->2}) at: 'sum'")).toBe("=> 3");
    expect(await code.text("Tools notes echo: {'text'->'hi'}")).toBe("=> 'hi'");
    expect(await code.text("Tools notes said at: 'text'")).toBe("=> '=> 2'");
    const all = await code.text(`| all list | all := Tools notes everything. list := all at: 'list'.
      {list first. list second. (list at: 3) = (1000000 asFloatD * 1000000 * 1000000 * 1000). list fourth. list last size.
        all at: 'yes'. all at: 'no'. all at: 'nothing'. all at: 'text'}`);
    expect(all).toBe(`=> (1 -2.5 true () 0 true false nil 'naïve 𝒳 "q" \\ \n' )`);
    const { content, structuredContent } = await code.run(`| picture |
      picture := Tools notes picture.
      Tools show: picture.
      Tools show: (picture at: 'content') second.
      {picture at: 'text'. (Tools contentOf: picture) size. Tools contentOf: (Tools notes echo: {'text'->'x'})}`);
    const image = { type: "image", data: "AAAA", mimeType: "image/png" };
    expect(content).toMatchObject([{ text: "=> ('A dot' 2 nil )" }, { text: "A dot" }, image, image, {}]);
    expect(structuredContent.calls.map(({ tool }) => tool)).toEqual(["notes.picture", "notes.echo"]);
    expect(await code.text("(Tools notes large: {'size'->1500000}) size")).toBe("=> 1500000");
  });

  it("code in GNU Smalltalk that calls tools sends dictionaries, arrays, strings, numbers, booleans and nil", async () => {
    expect(
      await sent(`{'a'->#(1 -2 'x' $c). 'b'->true. #c->nil. 3->(Dictionary new at: 'e' put: #sym; yourself).
        'f'->(OrderedCollection with: false). 'g'->#(). 'h'->{'i'->{}}. 'j'->'naïve 𝒳 " \\'}`),
    ).toEqual({
      a: [1, -2, "x", "c"],
      b: true,
      c: null,
      3: { e: "sym" },
      f: [false],
      g: [],
      h: { i: [] },
      j: 'naïve 𝒳 " \\',
    });
    expect(await sent("nil")).toEqual({});
    expect(await sent("{}")).toEqual({});
    expect(await code.text("Tools call: 'notes.given' with: {}")).toBe("=> '{}'");
    // Numbers that their text gives exactly; others may differ in the last of 53 bits.
    expect(await sent("{'a'->{5/10. 2.5. 0.1. -123456.125. 3 asFloatD. 0 asFloatD. 1/4}}")).toEqual({
      a: [0.5, 2.5, 0.1, -123456.125, 3, 0, 0.25],
    });
    const { a } = (await sent("{'a'->{1 asFloatD / 3. (1 to: 250) inject: 1 asFloatD into: [:x :i | x * 10]}}")) as {
      a: readonly [number, number];
    };
    expect(a[0]).toBeCloseTo(1 / 3, 15);
    expect(a[1] / 1e250).toBeCloseTo(1, 12);
  });

  it.each([
    ["3", "The arguments of notes.given must be a Dictionary: notes.given(..."],
    ["#(1)", "The arguments of notes.given must be a Dictionary"],
    ["{'a'->Object new}", "An Object cannot be sent to a tool; JSON has strings"],
    ["{'a'->(1 asFloatD / 0 asFloatD)}", /JSON has no number for|divide/],
    ["{'a'->circle}", "circular, or nested in more than 100 levels"],
    ["{'a'->(String new: 1100000 withAll: $a)}", "The arguments of notes.given have more than 1000000 bytes"],
  ])("code in GNU Smalltalk that calls tools refuses the arguments %s", async (args, problem) => {
    const circle = "circle := Array new: 1. circle at: 1 put: circle.";
    const { isError, content, structuredContent } = await code.run(`${circle} Tools notes given: ${args}`);
    expect(content[0]?.text).toMatch(problem);
    expect(isError).toBe(true);
    expect(structuredContent.calls).toEqual([]);
  });

  it("code in GNU Smalltalk that calls tools signals ToolError with the text of the tool, and an error for a tool that does not exist", async () => {
    expect(await code.text("[Tools notes fail] on: ToolError do: [:e | {e messageText. e tool. e content size}]")).toBe(
      "=> ('It is locked' 'notes.fail' 1 )",
    );
    const open = await code.text("Object subclass: Worker [ work [ ^Tools notes fail ] ]\nWorker new work");
    expect(open).toMatch(/\[ERROR\] ToolError\nIt is locked\n\n\[Backtrace\]\n0: Worker>>work/);
    expect(open).not.toContain("Catenary");
    // No tool of code mode could take a restart.
    expect(open).not.toContain("Restarts");
    expect(await code.text("Tools notes ehco: {'text'->1}")).toContain("no tool notes.ehco; did you mean notes.echo?");
    for (const args of ["3", "{}", "nil"])
      expect(await code.text(`Tools call: 'ehco' with: ${args}`)).toContain(
        "There is no tool ehco; did you mean notes.echo? If not, find it with Tools search: 'words'",
      );
    expect(await code.text("Tools notes foo: 1 bar: 2")).toContain("does not understand #foo:bar:");
    expect(await code.text("Tools show: 3")).toContain("show: takes content that a tool has returned");
  });

  it("code in GNU Smalltalk that calls tools lists and finds tools", async () => {
    expect(await code.text("{Tools catalogue size. Tools catalogue first keys size. Tools notes}")).toBe(
      "=> (9 3 Tools notes )",
    );
    expect(await code.text("(Tools search: 'ech') first at: 'path'")).toBe("=> 'notes.echo'");
    expect(await code.text("(Tools search: 'e' limit: 2) size")).toBe("=> 2");
  });

  it("code in GNU Smalltalk that calls tools calls side by side from processes, and answers them in any order", async () => {
    const begun = code.waits.begun;
    const running = code.run(`| done results |
      done := Semaphore new. results := Array new: 6.
      "Without the parentheses, all processes would share one variable i."
      (1 to: 6) do: [:i | [results at: i put: (Tools notes wait: {'what'->i}). done signal] fork].
      6 timesRepeat: [done wait].
      results`);
    await code.begun(begun + 6);
    code.release();
    const { content, structuredContent } = await running;
    expect(content[0]?.text.match(/waited for \d/g)).toEqual([1, 2, 3, 4, 5, 6].map((i) => `waited for ${i}`));
    expect(code.waits.most).toBe(6);
    expect(structuredContent.calls).toHaveLength(6);
  });

  it("code in GNU Smalltalk that calls tools keeps the state if a call is cancelled, and cancels the calls of all processes", async () => {
    const { begun, cancelled } = code.waits;
    const controller = new AbortController();
    const running = code.client.callTool(
      "run-code",
      {
        code: `kept := 7. cleaned := false. other := nil. otherDone := Semaphore new.
          [other := [Tools notes wait] on: Error do: [:e | e messageText]. otherDone signal] fork.
          [[Tools notes wait] on: Error do: [:e | kept := 8]] ensure: [cleaned := true]`,
      },
      { signal: controller.signal },
    );
    running.catch(() => undefined);
    await code.begun(begun + 2);
    controller.abort();
    await expect(running).rejects.toThrow();
    expect(await code.text("otherDone wait. {kept. cleaned. other}")).toBe(
      "=> (7 true 'The call was cancelled, since its run has ended' )",
    );
    expect(code.waits.cancelled).toBe(cancelled + 2);
    expect(await code.text("Tools notes echo: {'text'->'on'}")).toBe("=> 'on'");
  });

  it("code in GNU Smalltalk that calls tools interrupts a call when the time of the run is over", async () => {
    await code.run("late := 1");
    const { content, structuredContent } = await code.run("Tools notes wait", { timeout: 0.3 });
    expect(content[0]?.text).toContain("[TIMEOUT]");
    expect(structuredContent.state).toBe("kept");
    expect(await code.text("late")).toBe("=> 1");
  });

  it("code in GNU Smalltalk that calls tools refuses calls of processes that outlive their run", async () => {
    await code.run(
      "go := Semaphore new. [go wait. late := [Tools notes echo: nil] on: Error do: [:e | e messageText]] fork",
    );
    await code.run("[(Delay forMilliseconds: 10) wait. go signal] fork");
    // The second, if it calls while the next run reads the variable.
    const refusals = /Tools can be called only while the code of a run is running|cancelled, since its run has ended/;
    await expect.poll(() => code.text("late")).toMatch(refusals);
  });

  it("code in GNU Smalltalk that calls tools has an error for calls over the budget, and keeps the state", async () => {
    const loop = "[[true] whileTrue: [Tools notes echo: {'text'->1}. done := done + 1]]";
    const over = await code.text(`done := 0. ${loop} on: Error do: [:e | {done. e messageText}]`);
    expect(over).toMatch(/^=> \(30 .*maxCalls/);
    const long = "[Tools notes large: {'size'->4000000}] on: Error do: [:e | e messageText]";
    expect(await code.text(long)).toContain("maxResultBytes");
    expect(await code.text("done")).toBe("=> 30");
  });
});

it.runIf(IS_LONG && gst !== undefined && (await sandboxProblem()) === undefined)(
  "GNU Smalltalk calls tools from a sandbox, and is interrupted there",
  async () => {
    const read = gst?.includes("/") === true ? [dirname(gst)] : [];
    const code = await startCode(language(), { sandbox: { read } });
    try {
      await code.run("kept := 7");
      expect(await code.text("(Tools notes add: {'a'->1. 'b'->2}) at: 'sum'")).toBe("=> 3");
      expect(await code.text("Tools notes wait", { timeout: 0.3 })).toContain("[TIMEOUT]");
      expect(await code.text("kept")).toBe("=> 7");
    } finally {
      await code.close();
    }
  },
);
