// Searching tools: what is found, in which order, and the signatures.

import { expect, it } from "vitest";
import { stemOf } from "./search-words.ts";
import { signatureOf, ToolIndex, type ListedTool } from "./search.ts";

const tool = (name: string, description?: string, properties: object = {}, required: string[] = []): ListedTool => ({
  name,
  ...(description === undefined ? undefined : { description }),
  inputSchema: { type: "object", properties, required },
});

const TOOLS = [
  tool("notes_search", "Searches all notes. Returns the best ones first.", { query: { type: "string" } }, ["query"]),
  tool("notes_delete", "Deletes a note for good."),
  tool("files_readTextFile", "Reads a file.", { path: { type: "string", description: "Where the document is" } }),
  { ...tool("weather"), title: "Weather forecast" },
];

async function find(query: string, limit = 10): Promise<string[]> {
  const { found } = (await ToolIndex.of(TOOLS)).search(query, limit);
  return found.map((one) => one.tool.name);
}

it("finds tools by name, title, description and parameters, the best first", async () => {
  expect((await find("search notes"))[0]).toBe("notes_search");
  expect(await find("forecast")).toEqual(["weather"]);
  expect(await find("document")).toEqual(["files_readTextFile"]);
  expect(await find("text file")).toEqual(["files_readTextFile"]);
  expect((await find("delete"))[0]).toBe("notes_delete");
  expect(await find("zebra")).toEqual([]);
});

it("ignores words that are in nearly every description, unless there are no others", async () => {
  expect(await find("I want to read a document for me")).toEqual(["files_readTextFile"]);
  expect(await find("for good")).toEqual(["notes_delete"]);
  expect(await find("for")).toContain("notes_delete");
});

it("forgives typing errors and unfinished words", async () => {
  expect((await find("serch"))[0]).toBe("notes_search");
  expect((await find("forec"))[0]).toBe("weather");
});

it("finds words with other endings, and words that mean the same", async () => {
  expect((await find("deleting"))[0]).toBe("notes_delete");
  expect((await find("remove a note"))[0]).toBe("notes_delete");
  expect((await find("look for notes"))[0]).toBe("notes_search");
  expect((await find("open a document"))[0]).toBe("files_readTextFile");
});

it("prefers whole words to beginnings of words, and puts deprecated tools last", async () => {
  const index = await ToolIndex.of([
    tool("read_file", "Reads a file. DEPRECATED: use read_text_file instead."),
    tool("list_items", "Lists items.", { start_cursor: { type: "string" } }),
    tool("read_text_file", "Reads a file as text, whatever its encoding."),
    tool("star_repository", "Stars a repository."),
  ]);
  const names = (query: string): string[] => index.search(query, 10).found.map((one) => one.tool.name);
  expect(names("star")).toEqual(["star_repository"]);
  expect(names("star_rep")).toEqual(["star_repository"]);
  expect(names("read a file")).toEqual(["read_text_file", "read_file"]);
  expect(names("cursor")).toEqual(["list_items"]);
});

it("lists those that follow", async () => {
  const index = await ToolIndex.of(TOOLS);
  const all = index.search("", 10).found;
  expect(index.search("", 2, 1).found).toEqual(all.slice(1, 3));
});

it("lists the first tools if there is no word, and says how many there are", async () => {
  expect(await find("  ?!", 2)).toEqual(["notes_search", "notes_delete"]);
  const { found, total } = (await ToolIndex.of(TOOLS)).search("note", 1);
  expect([found.length, total]).toEqual([1, 2]);
  expect(found[0]?.summary).toMatch(/^(?:Searches all notes|Deletes a note for good)\.$/);
});

it("reads only the beginning of a long query", async () => {
  // Each of these would take minutes, or more memory than there is.
  const many = Array.from({ length: 200_000 }, (_, at) => `word${at}`).join(" ");
  for (const long of [many, "a".repeat(200_000)]) expect((await find(`forecast ${long}`))[0]).toBe("weather");
  expect(await find(`${"word ".repeat(200)} forecast`)).toEqual([]);
});

it("is shared by equal lists only", async () => {
  expect(ToolIndex.of(structuredClone(TOOLS))).toBe(ToolIndex.of(TOOLS));
  expect(ToolIndex.of(TOOLS.slice(1))).not.toBe(ToolIndex.of(TOOLS));
});

it.each<[string, object, string[], string]>([
  ["a", {}, [], "a()"],
  ["b", { x: { type: "integer" }, y: { type: "string" } }, ["y"], "b(y: string, x?: integer)"],
  ["c", { x: { enum: ["on", "off"] }, y: { const: 1 } }, ["x", "y"], 'c(x: "on" | "off", y: 1)'],
  ["d", { x: { type: "array", items: { type: ["string", "null"] } } }, ["x"], "d(x: (string | null)[])"],
  ["e", { x: { anyOf: [{ type: "string" }, { type: "object" }] }, y: true }, [], "e(x?: string | object, y?: any)"],
])("writes the signature of %s", (name, properties, required, signature) => {
  expect(signatureOf(tool(name, "", properties, required))).toBe(signature);
});

it("keeps signatures short and in one line, whatever a schema says", () => {
  const many = Object.fromEntries(Array.from({ length: 200 }, (_, at) => [`parameter_${at}\n`, { type: "string" }]));
  const signature = signatureOf(tool("monster", "", many));
  expect(signature.length).toBeLessThan(400);
  expect(signature).toMatch(/^monster\([^\n]*, … \d+ more\)$/);
  expect(signatureOf({ name: "odd", inputSchema: "nothing" })).toBe("odd()");
});

it.each<[string, (text: string) => object]>([
  ["name", (name) => ({ name })],
  ["title", (title) => ({ title })],
  ["title in the annotations", (title) => ({ annotations: { title } })],
  ["description", (description) => ({ description })],
  ["parameters", (description) => ({ inputSchema: { properties: { x: { description } } } })],
])("indexes the first 4,000 characters of the %s", async (_field, fieldsOf) => {
  const text = `${`${"walk ".repeat(790)}quick`.padEnd(4_000)}zygote`;
  const index = await ToolIndex.of([{ ...tool("long"), ...fieldsOf(text) }, tool("other")]);
  expect(index.search("quick", 10).total).toBe(1);
  expect(index.search("zygote", 10).total).toBe(0);
});

it("looks for endings in words of at most 40 letters", () => {
  expect(stemOf(`${"b".repeat(36)}aing`)).toBe(`${"b".repeat(36)}a`);
  expect(stemOf(`${"b".repeat(37)}aing`)).toBe(`${"b".repeat(37)}aing`);
});
