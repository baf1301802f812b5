// The JSON that a Lisp guest reads: requests as they arrive, values of every kind, and texts that are not valid.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startLispGuest, type LispGuest } from "../../../test/support/live/lisp-guest.ts";
import { hasSbcl } from "../../../test/support/setup/sbcl.ts";

const quoted = (text: string): string => `"${text.replace(/["\\]/g, "\\$&")}"`;

describe.skipIf(!hasSbcl())("the JSON that a Lisp guest reads (needs SBCL)", () => {
  let lisp: LispGuest;
  beforeAll(async () => {
    lisp = await startLispGuest();
  });
  afterAll(async () => lisp?.close());

  /** What the guest makes of a JSON text: its printed form, or the error. */
  const read = async (json: string, isValue = true): Promise<string | undefined> => {
    const text = `(coerce ${quoted(json)} '(simple-array character (*)))`;
    const { values, condition } = await lisp.evaluate(
      `(let ((*print-pretty* nil)) (prin1-to-string (catenary-guest::read-json ${text} ${isValue ? "t" : "nil"})))`,
    );
    return condition?.message ?? values[0]?.slice(1, -1).replace(/\\(.)/gs, "$1");
  };

  it("the JSON that a Lisp guest reads has every character of a request, and U+FFFD for half of a surrogate pair", async () => {
    const text = "\u0000\u0001\t\n\r\u007f\u2028é€𝒳/\\ud83d{[:,]}\ud800\udc00\ud800x\udc00";
    const codes = Array.from(text, (char) => (/\p{Cs}/u.test(char) ? 0xfffd : char.codePointAt(0)));
    const { values } = await lisp.evaluate(`(map 'list #'char-code ${quoted(`"${text}"`)})`, { printLength: 1000 });
    expect(values[0]?.replaceAll("\n", "")).toBe(`(34 ${codes.join(" ")} 34)`);
  });

  it("the JSON that a Lisp guest reads makes a property list of a request, without what is false, null or empty", async () => {
    const json =
      '{"op":"x","captureTime":true,"a":false,"b":null,"c":[],"d":{},"e":["f",1],"others":{"className":"A"}}';
    expect(await read(json, false)).toBe('(:OP "x" :CAPTURE-TIME T :E ("f" 1) :OTHERS (:CLASS-NAME "A"))');
    expect(await read(' [ 1 , { "a" : true } ]\n', false)).toBe("(1 (:A T))");
  });

  it.each([
    ["[true,false,null,[],-1]", "#(T NIL :NULL #() -1)"],
    ["123456789012345680000", "123456789012345680000"],
    ["[0.1,-2.5,1e21,1E-2,1e+2]", "#(0.1d0 -2.5d0 1.0d21 0.01d0 100.0d0)"],
    ["[5e-324,1.7976931348623157e308,-0.0]", "#(4.940656458412465d-324 1.7976931348623157d308 -0.0d0)"],
    ['"\\ud835\\udcb3\\u00e9\\/\\b\\ud800\\u0041"', '"𝒳é/\b\ufffdA"'],
  ])("the JSON that a Lisp guest reads reads %s", async (json, printed) => {
    expect((await read(json))?.replace("4.9406564584124654d-324", "4.940656458412465d-324")).toBe(printed);
  });

  it.each([
    ["", "the text ends too early"],
    ['{"a":1', "the text ends too early"],
    ['"abc', "the text ends too early"],
    ['"abc\\', "the text ends too early"],
    ["[1,]", "a value expected"],
    ["1.", "a value expected"],
    ["#.(quit)", "a value expected"],
    ['{"a" 1}', "#\\: expected, not #\\1"],
    ["[1 2]", "#\\, expected, not #\\2"],
    ["tru", "the text ends too early"],
    ["trap", "#\\u expected, not #\\a"],
    ["1e999", "a number is too large or too small"],
    ['"\\x"', "#\\x cannot follow a backslash"],
    ['"\\u00zz"', "\\u needs four hexadecimal digits"],
    ['"a\nb"', "a control character in a string"],
    ["{} {}", "something follows the value"],
  ])("the JSON that a Lisp guest reads refuses %j", async (json, problem) => {
    expect(await read(json)).toBe(problem);
  });

  it("the JSON that a Lisp guest reads reads 1000 levels and no more, and long strings with and without escapes", async () => {
    expect(await read(`${"[".repeat(1_000)}${"]".repeat(1_000)}`)).toMatch(/^#\(#\(#\(/);
    expect(await read("[".repeat(1_001))).toBe("more than 1000 levels");
    const code = `(length ${quoted(`${"x".repeat(300_000)}${"\n".repeat(300_000)}`)})`;
    expect((await lisp.evaluate(code)).values).toEqual(["600000"]);
  });

  it("the JSON that a Lisp guest reads goes on after a request that is not valid", async () => {
    lisp.guest.child.channel?.write('8\n{"op":1}7\n{"id":1');
    expect((await lisp.evaluate("(+ 1 2)")).values).toEqual(["3"]);
    expect(lisp.raw()).toContain("Invalid request: the text ends too early\n");
  });

  it("the JSON that a Lisp guest reads ends if a frame has no length", async () => {
    const other = await startLispGuest();
    other.guest.child.channel?.write("{}\n");
    const { code } = await other.guest.child.exited;
    await other.close();
    expect(code).toBe(70);
  });
});
