// Lists on a wide screen, a narrow one, and none, and with invalid data from a server.

import { expect, it } from "vitest";
import type { Prompt, Resource, Tool } from "../../protocol/model/index.ts";
import {
  findMissingUpstreams,
  formatBytes,
  type ListStyle,
  missingUpstreamsMeta,
  noteMissingUpstreams,
  promptDetail,
  promptList,
  resourceList,
  toolDetail,
  toolList,
} from "./lists.ts";

const PLAIN: ListStyle = { width: undefined, strong: (text) => text, faint: (text) => text };

const TOOLS: Tool[] = [
  {
    name: "echo",
    description: "\nGive the text back.\nAll of it.",
    inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
  },
  { name: "now", title: "The time", inputSchema: { type: "object" } },
  { name: "bare", inputSchema: { type: "object" } },
  { name: "a_name_that_is_longer_than_a_column_is_wide", description: "Long", inputSchema: { type: "object" } },
];

it("tools are listed with description and arguments", () => {
  expect(toolList(TOOLS, PLAIN)).toBe(
    [
      "echo  Give the text back.",
      "      text=string",
      "now   The time",
      "bare",
      "a_name_that_is_longer_than_a_column_is_wide",
      "      Long",
      "",
    ].join("\n"),
  );
});

it("tools are listed by server if a gateway says which ones they are of", () => {
  const of = (name: string, upstream: unknown): Tool => ({
    name,
    inputSchema: { type: "object" },
    _meta: { "catenary/upstream": upstream },
  });
  const tools = [of("search", "notes"), of("send", "mail\n"), of("add", "notes"), of("odd", 1)];
  expect(toolList(tools, PLAIN)).toBe("Server notes:\nsearch\nadd\n\nServer mail:\nsend\n\nodd\n");
  expect(toolDetail(of("search", "notes"), PLAIN)).toMatch(/^search\nServer: notes\n/);
});

it("tools are cut to the width of the screen, and styled", () => {
  const style = { width: 26, strong: (text: string) => `<${text}>`, faint: (text: string) => `(${text})` };
  const long = { ...TOOLS[0], description: "x".repeat(50) } as Tool;
  expect(toolList([long], style)).toBe(`<echo>  ${"x".repeat(17)}...\n      (text=string)\n`);
});

it("tools have their description below on a narrow screen", () => {
  const style = { ...PLAIN, width: 24 };
  const long = { ...TOOLS[0], description: "x".repeat(50) } as Tool;
  expect(toolList([long], style)).toBe(`echo\n  ${"x".repeat(19)}...\n  text=string\n`);
});

it("tools are shown with all details", () => {
  const tool: Tool = {
    name: "drop",
    title: "Drop it",
    description: "Drops.\nReally.",
    inputSchema: { type: "object", properties: { id: { type: "integer" } } },
    outputSchema: { type: "object" },
    annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true },
  };
  expect(toolDetail(tool, PLAIN)).toBe(
    [
      "drop (Drop it)\nDrops.\nReally.\n",
      "Arguments:\n  id  integer\n",
      "Hints from the server: may change things, may be destructive, safe to repeat\n",
      `Input schema:\n${JSON.stringify(tool.inputSchema, undefined, 2)}\n`,
      `Output schema:\n${JSON.stringify(tool.outputSchema, undefined, 2)}\n`,
    ].join("\n"),
  );
});

it("tools with invalid data are sanitized", () => {
  const tool = {
    name: "\u001b[2J",
    title: 3,
    description: ["x"],
    inputSchema: { properties: { "\u009b1m": {} }, "\u202e": 1 },
    annotations: { readOnlyHint: "yes" },
  } as unknown as Tool;
  expect(toolList([tool], PLAIN)).toBe("\\x1b[2J  [\\x9b1m=any]\n");
  expect(toolDetail(tool, PLAIN)).toContain('"\\u202e": 1');
  expect(toolDetail(tool, PLAIN)).not.toContain("Hints from the server");
});

it("resources are listed with templates below them", () => {
  const resources: Resource[] = [
    { uri: "a://1", name: "one", description: "The first", mimeType: "text/plain", size: 1_500 },
    { uri: "a://2", name: "two" },
  ];
  const templates = [{ uriTemplate: "a://{n}", name: "any" }];
  expect(resourceList(resources, templates, PLAIN)).toBe(
    "a://1  The first\n       one, text/plain, 1.5 kB\na://2  two\n\nTemplates:\na://{n}  any\n",
  );
  expect(resourceList([], templates, PLAIN)).toBe("Templates:\na://{n}  any\n");
  expect(resourceList(resources.slice(1), [], PLAIN)).toBe("a://2  two\n");
});

it("resources have readable sizes", () => {
  expect([0, 999, 1_000, 1_234_567, 5e13, 1e18].map(formatBytes)).toEqual([
    "0 bytes",
    "999 bytes",
    "1.0 kB",
    "1.2 MB",
    "50.0 TB",
    "1000000.0 TB",
  ]);
});

const prompt: Prompt = {
  name: "greet",
  description: "Greet a person",
  arguments: [{ name: "name", required: true, description: "Who" }, { name: "tone" }],
};

it("prompts are listed and shown", () => {
  expect(promptList([prompt], PLAIN)).toBe("greet  Greet a person\n       name=string [tone=string]\n");
  expect(promptDetail(prompt, PLAIN)).toBe(
    "greet\nGreet a person\n\nArguments:\n  name  string  required; Who\n  tone  string\n",
  );
  expect(promptDetail({ name: "bare" }, PLAIN)).toBe("bare\n\nArguments: none\n");
});

const KEY = "catenary/unavailable";
const NOTES = {
  upstream: "notes",
  message: "The server notes failed:\nnode exited with code 1",
};

it("missing upstreams are noted in a line, and kept for programs", () => {
  const missing = findMissingUpstreams({ _meta: { [KEY]: [NOTES] } }, { _meta: { [KEY]: [NOTES] } }, {});
  expect(missing).toEqual([NOTES]);
  const notes: string[] = [];
  noteMissingUpstreams(missing, (text) => notes.push(text));
  expect(notes).toEqual(["Not listed: notes (The server notes failed: node exited with code 1)"]);
  expect(missingUpstreamsMeta(missing)).toEqual({ _meta: { [KEY]: [NOTES] } });
  expect(missingUpstreamsMeta([])).toEqual({});
});

it("other values in the metadata are ignored", () => {
  const odd = [7, "notes", {}, [null, { upstream: 3, message: "x" }, { upstream: "x" }]];
  expect(findMissingUpstreams(...odd.map((value) => ({ _meta: { [KEY]: value } })), { _meta: 7 as never })).toEqual([]);
});
