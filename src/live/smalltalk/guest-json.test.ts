// The JSON that a guest in GNU Smalltalk reads: requests as they arrive, values of every kind, and texts that are not
// valid.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { gstProgram } from "../../../test/support/setup/smalltalk.ts";
import { Guest } from "../guest.ts";
import { DEFAULT_LIMITS, type GuestEvaluation } from "../runtime.ts";
import { gstRuntime } from "./index.ts";

const gst = gstProgram();
const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;

describe.skipIf(gst === undefined)("the JSON that GNU Smalltalk reads (needs gst)", () => {
  let guest: Guest;
  let raw = "";
  const start = (): Promise<Guest> => Guest.start(gstRuntime({ command: gst ?? "gst" }), DEFAULT_LIMITS);
  /** The value of code, as it is printed, or the message of its error. */
  const evaluate = async (code: string): Promise<string | undefined> => {
    const { values, condition } = (await guest.request("eval", { code, printLength: 1000 })
      .reply) as unknown as GuestEvaluation;
    return condition?.message ?? values[0];
  };

  beforeAll(async () => {
    guest = await start();
    guest.onRawOutput = (text) => void (raw += text);
  });
  afterAll(async () => guest?.close(0));

  it("the JSON that GNU Smalltalk reads has every byte of a request, and U+FFFD for half of a surrogate pair", async () => {
    const text = "\u0001\t\n\r\u007f\u2028é€𝒳/\\ud83d{[:,]}\ud800\udc00\ud800x\udc00";
    const bytes = [...Buffer.from(text)];
    expect(await evaluate(`${quoted(text)} asByteArray asArray`)).toBe(`(${bytes.join(" ")} )`);
  });

  it.each([
    ["[true,false,null,[],-1]", "(true false nil () -1 )"],
    [' { "a" : [ "b" ] }\n', /Dictionary \(\s+'a'->\('b' \)\s+\)$/],
    ['"\\ud835\\udcb3\\u00e9\\/\\ud800\\u0041"', "'𝒳é/\ufffdA'"],
    ['["a\\u0000b"]', "('a\u0000b' )"],
    ["[9007199254740991]", "(9007199254740991 )"],
  ])("the JSON that GNU Smalltalk reads reads %s", async (json, printed) => {
    expect(await evaluate(`CatenaryChannel read: ${quoted(json)}`)).toMatch(printed);
  });

  it("the JSON that GNU Smalltalk reads reads numbers to the last bit, though large integers may be wrong", async () => {
    const numbers = [0.1, -2.5, 1 / 3, 0.1 + 0.2, 4.35, 1e21, 1e22, 1e23, 2 ** 53, 123456789012345680000, 2 ** 70];
    numbers.push(5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 1e-300 / 7, 1e300 / 7);
    const bytes = numbers.map((number) => [...new Uint8Array(new Float64Array([number]).buffer)].join(" "));
    const code = `(CatenaryChannel read: '${JSON.stringify(numbers)}') collect: [:each | (1 to: 8) collect: [:i | each basicAt: i]]`;
    expect(await evaluate(code)).toBe(`(${bytes.map((one) => `(${one} ) `).join("")})`);
  });

  it.each([
    ["", "a value expected at byte 1"],
    ['{"a":1', ", expected at byte 7"],
    ['"abc', "a string does not end at byte 2"],
    ["[1,]", "a value expected at byte 4"],
    ["1.", "a value expected at byte 3"],
    ["{1}", "a name expected at byte 2"],
    ['{"a" 1}', ": expected at byte 6"],
    ["tru", "e expected at byte 4"],
    ["1e999", "the number is too large at byte 6"],
    ['"\\x"', "unknown escape at byte 4"],
    ['"\\u00zz"', "four hexadecimal digits expected at byte 6"],
    ["{} {}", "something follows the value at byte 4"],
  ])("the JSON that GNU Smalltalk reads refuses %j", async (json, problem) => {
    expect(await evaluate(`CatenaryChannel read: ${quoted(json)}`)).toBe(problem);
  });

  it("the JSON that GNU Smalltalk reads reads 1000 levels and no more, and long strings with and without escapes", async () => {
    const deep = `${"[".repeat(1_000)}${"]".repeat(1_000)}`;
    expect(await evaluate(`(CatenaryChannel read: '${deep}') size`)).toBe("1");
    expect(await evaluate(`CatenaryChannel read: '${"[".repeat(1_001)}'`)).toBe("more than 1000 levels at byte 1001");
    expect(await evaluate(`'${"x".repeat(300_000)}${'"\n'.repeat(10_000)}' size`)).toBe("320000");
  });

  it("the JSON that GNU Smalltalk reads goes on after a request that is not valid", async () => {
    guest.child.channel?.write('7\n{"id":1');
    expect(await evaluate("1 + 2")).toBe("3");
    expect(raw).toContain("Invalid request: , expected at byte 8\n");
  });

  it("the JSON that GNU Smalltalk reads ends if a frame has no length", async () => {
    const other = await start();
    other.child.channel?.write("{}\n");
    const { code } = await other.child.exited;
    await other.close(0);
    expect(code).toBe(70);
  });
});
