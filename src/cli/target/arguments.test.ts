// Every way to write an argument, and what is said of those that are none.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readArguments } from "./arguments.ts";
import { NotFoundError, UsageError } from "../exit-codes.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-arguments-"));
  writeFileSync(join(folder, "text"), "two\nlines\n");
  writeFileSync(join(folder, "json"), '{"a":[1]}');
  writeFileSync(join(folder, "bytes"), Buffer.from([0xff, 0xfe]));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe("arguments", () => {
  it.each([
    ["text=hi", "text", { text: "hi" }],
    ["text=", "text", { text: "" }],
    ["text=a=b", "text", { text: "a=b" }],
    ["text=two\nlines", "text", { text: "two\nlines" }],
    ["url=http://a/?b=c:=d", "url", { text: "http://a/?b=c:=d" }],
    ["a.b=1", "a.b", { text: "1" }],
    ["count:=3", "count", { json: 3 }],
    ["none:=null", "none", { json: null }],
    ['list:=["a", 1]', "list", { json: ["a", 1] }],
    ['at:="@name"', "at", { json: "@name" }],
    ["__proto__=x", "__proto__", { text: "x" }],
  ])("%s", async (word, key, value) => {
    expect(await readArguments([word])).toEqual([{ key, value }]);
  });

  it("may come from files", async () => {
    expect(await readArguments([`a=@${folder}/text`, `b:=@${folder}/json`])).toEqual([
      { key: "a", value: { text: "two\nlines\n" } },
      { key: "b", value: { json: { a: [1] } } },
    ]);
  });

  it("may come as one object, and those that are named come on top of it", async () => {
    expect(await readArguments(["a=2", "a=3", "c=4"], '{"a":1,"b":{"c":true}}')).toEqual([
      { key: "b", value: { json: { c: true } } },
      { key: "a", value: { text: "2" } },
      { key: "a", value: { text: "3" } },
      { key: "c", value: { text: "4" } },
    ]);
  });

  it.each([
    ["hello", undefined, "hello is no argument: write key=value for a text, key:=json for JSON"],
    ["=x", undefined, "=x is no argument"],
    ["a:={", undefined, "a is not JSON"],
    ["a=@", undefined, "names no file"],
    ["a=1", "[1]", "--args must be a JSON object"],
    ["a=1", "{", "--args is not JSON"],
  ])("%s with --args %s is refused", async (word, whole, words) => {
    const reading = readArguments([word], whole);
    await expect(reading).rejects.toThrow(UsageError);
    await expect(reading).rejects.toThrow(words);
  });

  it("say which file is missing, and which is no text", async () => {
    const missing = readArguments([`a=@${folder}/none`]);
    await expect(missing).rejects.toThrow(NotFoundError);
    await expect(missing).rejects.toThrow(`There is no file ${folder}/none`);
    await expect(readArguments([`a=@${folder}/bytes`])).rejects.toThrow("is no UTF-8 text");
    await expect(readArguments([`a=@${folder}`])).rejects.toThrow(`${folder} cannot be read`);
  });
});
