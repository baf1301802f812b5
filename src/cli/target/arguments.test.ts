// Parsing of arguments on the command line, and errors for unknown names.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { NotFoundError, UsageError } from "../command.ts";
import { withKey } from "../command.ts";
import { notFound, readArguments } from "./arguments.ts";

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
])("arguments on the command line: %s", async (word, key, value) => {
  expect(await readArguments([word])).toEqual([{ key, value }]);
});

it("arguments on the command line may come from files", async () => {
  expect(await readArguments([`a=@${folder}/text`, `b:=@${folder}/json`])).toEqual([
    { key: "a", value: { text: "two\nlines\n" } },
    { key: "b", value: { json: { a: [1] } } },
  ]);
});

it("arguments on the command line may come as one object, which single keys override", async () => {
  expect(await readArguments(["a=2", "a=3", "c=4"], '{"a":1,"b":{"c":true}}')).toEqual([
    { key: "b", value: { json: { c: true } } },
    { key: "a", value: { text: "2" } },
    { key: "a", value: { text: "3" } },
    { key: "c", value: { text: "4" } },
  ]);
});

it.each([
  ["hello", undefined, "hello is not a valid argument: write key=value for a string, key:=json for JSON"],
  ["=x", undefined, "=x is not a valid argument"],
  ["a:={", undefined, "a is not JSON"],
  ["a=@", undefined, "has no file name"],
  ["a=1", "[1]", "--args must be a JSON object"],
  ["a=1", "{", "--args is not JSON"],
])("arguments on the command line: %s with --args %s is refused", async (word, whole, message) => {
  const reading = readArguments([word], whole);
  await expect(reading).rejects.toThrow(UsageError);
  await expect(reading).rejects.toThrow(message);
});

it("arguments on the command line report which file is missing, and which is not text", async () => {
  const missing = readArguments([`a=@${folder}/none`]);
  await expect(missing).rejects.toThrow(NotFoundError);
  await expect(missing).rejects.toThrow(`There is no file ${folder}/none`);
  await expect(readArguments([`a=@${folder}/bytes`])).rejects.toThrow("is not UTF-8 text");
  await expect(readArguments([`a=@${folder}`])).rejects.toThrow(`Cannot read ${folder}`);
});

it("an unknown name is reported with the names that were probably meant, or all", () => {
  const names = ["get_weather", "forecast", "report"];
  const message = (name: string, all: readonly string[] = names): string => notFound("tool", name, all).message;
  expect(message("get_weater")).toBe("There is no tool get_weater; did you mean get_weather?");
  expect(message("Fore")).toBe("There is no tool Fore; did you mean forecast?");
  expect(message("xyz123")).toBe("There is no tool xyz123; there are get_weather, forecast, report");
  expect(message("x", [])).toBe("There is no tool x; the server has none");
  const many = Array.from({ length: 15 }, (_, at) => `some_tool_${at}`);
  expect(message("other", many)).toMatch(/some_tool_11 and 3 more$/);
  expect(message("echo", ["a.echo", "echoes", "b.echo"])).toBe("There is no tool echo; did you mean a.echo or b.echo?");
  expect(message("list", ["some", "files_list", "documents_list"])).toMatch(/mean files_list or documents_list\?$/);
  expect(message("evi", ["evil\u001b[2J"])).toBe("There is no tool evi; did you mean evil\\x1b[2J?");
});

it("items of a list without a name are ignored", () => {
  expect(withKey([{ name: "a" }, { name: 3 }, null, "b", {}], "name" as never)).toEqual([{ name: "a" }]);
  expect(withKey({ length: 1 }, "name" as never)).toEqual([]);
  expect(withKey(undefined, "name" as never)).toEqual([]);
});
