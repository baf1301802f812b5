// Edits of JSON with comments: the value is changed, and nothing else in the text.

import fc from "fast-check";
import { parse, type ParseError } from "jsonc-parser";
import { expect, it } from "vitest";
import { runs } from "../../test/support/thoroughness.ts";
import { editJson } from "./edit-json.ts";

const PATH = ["mcpServers", "new"];
const VALUE = { command: "npx", args: ["-y", "x"] };

it("setting a value writes a new file", () => {
  expect(editJson("", ["a", "b"], { c: 1 })).toBe('{\n  "a": {\n    "b": {\n      "c": 1\n    }\n  }\n}\n');
});

it("setting a value keeps comments where they are, with the indentation of the file", () => {
  const text = `// My servers
{
    "mcpServers": {
        "old": { "command": "node" } // works since May
        // "off": {}
    },
    "theme": "dark"
}
`;
  expect(editJson(text, PATH, VALUE)).toBe(`// My servers
{
    "mcpServers": {
        "old": { "command": "node" }, // works since May
        "new": {
            "command": "npx",
            "args": ["-y", "x"]
        }
        // "off": {}
    },
    "theme": "dark"
}
`);
});

it("setting a value keeps a trailing comma, and line ends of Windows", () => {
  const text = '{\r\n\t"mcpServers": {\r\n\t\t"old": {}, // last\r\n\t},\r\n}\r\n';
  expect(editJson(text, PATH, { url: "u" })).toBe(
    '{\r\n\t"mcpServers": {\r\n\t\t"old": {}, // last\r\n\t\t"new": {\r\n\t\t\t"url": "u"\r\n\t\t},\r\n\t},\r\n}\r\n',
  );
});

it("setting a value adds the object that is missing", () => {
  expect(editJson('{\n  "a": 1\n}\n', PATH, {})).toBe('{\n  "a": 1,\n  "mcpServers": {\n    "new": {}\n  }\n}\n');
  expect(editJson('{"mcpServers":{}}', PATH, 1)).toBe('{"mcpServers":{\n  "new": 1\n}}');
  expect(editJson("{\n  // none yet\n}", ["a"], 1)).toBe('{\n  // none yet\n  "a": 1\n}');
  expect(editJson('{"a": {"b": 1}}', ["a", "c"], { d: 2 })).toBe('{"a": {"b": 1, "c": {"d":2}}}');
});

it("setting a value replaces a value in its place", () => {
  const text = '{\n  "mcpServers": {\n    // mine\n    "new": { "command": "a" }, // b\n    "old": {}\n  }\n}\n';
  expect(editJson(text, PATH, { url: "u" })).toBe(
    '{\n  "mcpServers": {\n    // mine\n    "new": {\n      "url": "u"\n    }, // b\n    "old": {}\n  }\n}\n',
  );
});

it.each([
  ["the only one", '{\n  "m": {\n    "x": 1\n  }\n}', '{\n  "m": {\n  }\n}'],
  ["the last one", '{ "m": {\n    "a": 1, // one\n    "x": 2\n  }\n}', '{ "m": {\n    "a": 1 // one\n  }\n}'],
  ["the first one", '{ "m": {\n    "x": 2, \n    "a": 1 // one\n  }\n}', '{ "m": {\n    "a": 1 // one\n  }\n}'],
  ["one with a comment", '{"m": {\n  "a": 1,\n  "x": 2 // two\n}}', '{"m": {\n  "a": 1 // two\n}}'],
  ["the last one of a line", '{"m": {"a": 1, "x": 2}}', '{"m": {"a": 1}}'],
  ["the first one of a line", '{"m": {"x": 2, "a": 1}}', '{"m": {"a": 1}}'],
  ["one that is not there", '{"m": {"a": 1}}', '{"m": {"a": 1}}'],
])("removing a value removes %s", (_what, text, expected) => {
  const edited = editJson(text, ["m", "x"], undefined);
  expect(parse(edited)).toEqual(parse(expected));
  expect(edited.replaceAll(/[ \t]+\n/g, "\n")).toBe(expected);
});

it("refuses a text that is not an object, or has something else on the way", () => {
  expect(() => editJson("[1]", PATH, {})).toThrow("it is not a valid JSON object (line 1, column 1)");
  expect(() => editJson('{\n "a" 1 }', PATH, {})).toThrow("it is not a valid JSON object (line 2, column 6)");
  expect(() => editJson('{"mcpServers": 3}', PATH, {})).toThrow("mcpServers is not an object");
});

it("any edit changes the value alone, and removing it restores the values", () => {
  const comment = fc.constantFrom("", "", " // note\n", " /* note */ ", "\n", "  \n  ");
  const key = fc.constantFrom("a", "b", "x", 'q"', "ä");
  const tree = fc.letrec((tie) => ({
    leaf: fc.oneof(
      fc.integer().map(String),
      fc.string().map((text) => JSON.stringify(text)),
    ),
    object: fc
      .tuple(
        fc.uniqueArray(fc.tuple(key, tie("value") as fc.Arbitrary<string>, comment, comment), {
          maxLength: 3,
          selector: ([name]) => name,
        }),
        comment,
        fc.boolean(),
      )
      .map(([members, end, hasTrailing]) => {
        const inner = members.map(([name, value, before, after], at) => {
          const comma = at < members.length - 1 || hasTrailing ? "," : "";
          return `${before}${JSON.stringify(name)}: ${value}${comma}${after}`;
        });
        return `{${inner.join("")}${end}}`;
      }),
    value: fc.oneof({ depthSize: "small" }, tie("leaf"), tie("object")),
  }));
  fc.assert(
    fc.property(tree.object, fc.array(key, { minLength: 1, maxLength: 2 }), (text, path) => {
      const options = { allowTrailingComma: true };
      const before = parse(text, [], options) as Record<string, unknown>;
      const [first = "", second] = path;
      const inner = before[first];
      fc.pre(second === undefined || inner === undefined || typeof inner === "object");
      const edited = editJson(text, path, { n: 1 });
      const value = second === undefined ? { n: 1 } : { ...(inner as object), [second]: { n: 1 } };
      expect(parse(edited, [], options)).toEqual({ ...before, [first]: value });
      const comments = (one: string): number => one.match(/note/g)?.length ?? 0;
      if (second === undefined && inner === undefined) expect(comments(edited)).toBe(comments(text));
      const { [first]: _, ...rest } = before;
      expect(parse(editJson(edited, [first], undefined), [], options)).toEqual(rest);
    }),
    { numRuns: runs(2_000) },
  );
});

const withServers = (lines: string): string => `{\n  "mcpServers": {\n${lines}\n  }\n}\n`;
const entry = (name: string): string => `    "${name}": { "command": "node" }`;

it.each([
  ["with a comma", `${entry("a")} // note, with comma`],
  ["that were an entry", `${entry("a")}\n    // "b": { "command": "x", "args": ["y"] },\n    // "c": 1`],
  ["of slashes only", `${entry("a")}\n    ${"/".repeat(70)}`],
  ["in a block", `${entry("a")} /* one, two */`],
])("comments: %s are no part of the value after or before them", (_what, lines) => {
  const text = withServers(lines);
  const edited = editJson(text, PATH, VALUE);
  const errors: ParseError[] = [];
  expect(parse(edited, errors)).toEqual({ mcpServers: { a: { command: "node" }, new: VALUE } });
  expect(errors).toEqual([]);
  for (const comment of text.match(/\/[/*][^\n]*/g) ?? []) expect(edited).toContain(comment);
  expect(editJson(edited, PATH, undefined)).toBe(text);
});

it("comments stay when the last entry goes", () => {
  const text = withServers(`${entry("a")},\n${entry("new")} // old one, keep`);
  expect(editJson(text, PATH, undefined)).toBe(withServers(`${entry("a")} // old one, keep`));
});
