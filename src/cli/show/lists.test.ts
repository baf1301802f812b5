// Lists as a person reads them, on a wide screen, a narrow one, and none; and of strangers who write what they like.

import { describe, expect, it } from "vitest";
import type { Prompt, Resource, Tool } from "../../protocol/model/index.ts";
import { bytesText, promptDetail, promptList, resourceList, toolDetail, toolList, type ListStyle } from "./lists.ts";

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

describe("tools", () => {
  it("are listed with what they do and take", () => {
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

  it("are cut to the screen, and stand out where they may", () => {
    const style = { width: 26, strong: (text: string) => `<${text}>`, faint: (text: string) => `(${text})` };
    const long = { ...TOOLS[0], description: "x".repeat(50) } as Tool;
    expect(toolList([long], style)).toBe(`<echo>  ${"x".repeat(17)}...\n      (text=string)\n`);
  });

  it("stand above what they do where there is no room beside them", () => {
    const style = { ...PLAIN, width: 24 };
    const long = { ...TOOLS[0], description: "x".repeat(50) } as Tool;
    expect(toolList([long], style)).toBe(`echo\n  ${"x".repeat(19)}...\n  text=string\n`);
  });

  it("are shown in full", () => {
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
        "It says of itself: may change things, may destroy, may be repeated\n",
        `Input schema:\n${JSON.stringify(tool.inputSchema, undefined, 2)}\n`,
        `Output schema:\n${JSON.stringify(tool.outputSchema, undefined, 2)}\n`,
      ].join("\n"),
    );
  });

  it("of strangers do no harm", () => {
    const tool = {
      name: "\u001b[2J",
      title: 3,
      description: ["x"],
      inputSchema: { properties: { "\u009b1m": {} }, "\u202e": 1 },
      annotations: { readOnlyHint: "yes" },
    } as unknown as Tool;
    expect(toolList([tool], PLAIN)).toBe("\\x1b[2J  [\\x9b1m=any]\n");
    expect(toolDetail(tool, PLAIN)).toContain('"\\u202e": 1');
    expect(toolDetail(tool, PLAIN)).not.toContain("It says of itself");
  });
});

describe("resources", () => {
  it("are listed with templates below them", () => {
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

  it("have sizes that one can read", () => {
    expect([0, 999, 1_000, 1_234_567, 5e13, 1e18].map(bytesText)).toEqual([
      "0 bytes",
      "999 bytes",
      "1.0 kB",
      "1.2 MB",
      "50.0 TB",
      "1000000.0 TB",
    ]);
  });
});

describe("prompts", () => {
  const prompt: Prompt = {
    name: "greet",
    description: "Greet somebody",
    arguments: [{ name: "name", required: true, description: "Whom" }, { name: "tone" }],
  };

  it("are listed and shown", () => {
    expect(promptList([prompt], PLAIN)).toBe("greet  Greet somebody\n       name=string [tone=string]\n");
    expect(promptDetail(prompt, PLAIN)).toBe(
      "greet\nGreet somebody\n\nArguments:\n  name  string  required; Whom\n  tone  string\n",
    );
    expect(promptDetail({ name: "bare" }, PLAIN)).toBe("bare\n\nArguments: none\n");
  });
});
