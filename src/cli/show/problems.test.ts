// Mistakes as a person reads them: the mark stands below the place, however the line is written, and no key is shown.

import { describe, expect, it } from "vitest";
import { excerpt } from "../target/excerpt.ts";
import { problemLines, tally } from "./problems.ts";

const PIPE = { isTTY: false, columns: 0 } as const;
const SOURCE = '{\n  "mcpServers": {\n    "notes": { "comand": "npx" }\n  }\n}\n';
const problem = (line: number, column: number, more: object = {}): Parameters<typeof problemLines>[2][number] => ({
  line,
  column,
  severity: "error",
  message: 'a server has no "comand"',
  ...more,
});

describe("a problem", () => {
  it("has its place, its sentence, its line with a mark, and what to do", () => {
    const lines = problemLines("catenary.json", SOURCE, [problem(3, 16, { hint: 'did you mean "command"?' })], PIPE);
    expect(lines).toEqual([
      'catenary.json:3:16: error: a server has no "comand"',
      '  3 |     "notes": { "comand": "npx" }',
      "    |                ^",
      '  did you mean "command"?',
    ]);
  });

  it("at the end of a file, where there is nothing to see, has its place alone", () => {
    expect(problemLines("x", SOURCE, [problem(6, 1)], PIPE)).toHaveLength(1);
    expect(problemLines("x", SOURCE, [problem(60, 1)], PIPE)).toHaveLength(1);
  });

  it("is coloured on a terminal, and can do it no harm", () => {
    const name = process.env["NO_COLOR"];
    delete process.env["NO_COLOR"];
    const bad = problem(1, 1, { message: "not \u001b[2J" });
    const [first = ""] = problemLines("x", '{"a": 1}', [bad], { isTTY: true, columns: 80 });
    if (name !== undefined) process.env["NO_COLOR"] = name;
    expect(first).toContain("not \\x1b[2J");
  });

  it("is counted with its like", () => {
    expect(tally([problem(1, 1), problem(2, 1, { severity: "warning" }), problem(3, 1)])).toBe("2 errors, 1 warning");
    expect(tally([problem(1, 1, { severity: "warning" })])).toBe("1 warning");
  });
});

describe("an excerpt", () => {
  it("has the place where it is shown, behind tabs and wide letters", () => {
    expect(excerpt('\t"a": 1', 2, 80)).toEqual({ text: '  "a": 1', before: 2 });
    expect(excerpt('"名前": x', 7, 80)).toEqual({ text: '"名前": x', before: 8 });
    expect(excerpt("abc", 99, 80)).toEqual({ text: "abc", before: 3 });
    expect(excerpt("a\u001b[2Jb", 3, 80)).toEqual({ text: "a\\x1b[2Jb", before: 5 });
  });

  it("of a long line shows the place", () => {
    const line = `${"a ".repeat(100)}X${" b".repeat(100)}`;
    const { text, before } = excerpt(line, 201, 40);
    expect(text).toHaveLength(40);
    expect(text[before]).toBe("X");
    expect(text).toMatch(/^\.\.\..*X.*\.\.\.$/);
    expect(excerpt(line, 1, 40).text).toMatch(/^a a.*\.\.\.$/);
    expect(excerpt(line, line.length, 40)).toMatchObject({ before: 39 });
  });

  it.each([
    ['"API_KEY": "sk-1"', '"API_KEY": "****"'],
    ['"token": "abc def", "port": 1', '"token": "*******", "port": 1'],
    ['"Authorization": "Bearer abc"', '"Authorization": "**********"'],
    ['"x": "Bearer abc.def"', '"x": "Bearer *******"'],
    ['"args": ["--token", "x", "--api-key=abc"]', '"args": ["--token", "*", "--api-key=***"]'],
    ['"args": ["sk1234567890abcdefghijklmn"]', '"args": ["**************************"]'],
    ['"token": "${TOKEN}"', '"token": "${TOKEN}"'],
    ['"command": "npx", "args": ["-y", "@modelcontextprotocol/server-everything"]', undefined],
    ['"url": "https://example.com/mcp"', undefined],
  ])("of %s shows no secret", (line, shown) => {
    expect(excerpt(line, 1, 120).text).toBe(shown ?? line);
  });
});
