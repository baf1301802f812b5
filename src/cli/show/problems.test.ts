// Printing of config problems: the caret is below the position in any line, and secrets are covered.

import { expect, it } from "vitest";
import { coverSecrets, excerpt, problemLines, tally } from "./problems.ts";

const PIPE = { isTTY: false, columns: 0 } as const;
const SOURCE = '{\n  "mcpServers": {\n    "notes": { "comand": "npx" }\n  }\n}\n';
const problem = (line: number, column: number, more: object = {}): Parameters<typeof problemLines>[2][number] => ({
  line,
  column,
  severity: "error",
  message: 'a server has no "comand"',
  ...more,
});

it("a problem is printed with position, message, excerpt and hint", () => {
  const lines = problemLines("catenary.json", SOURCE, [problem(3, 16, { hint: 'did you mean "command"?' })], PIPE);
  expect(lines).toEqual([
    'catenary.json:3:16: error: a server has no "comand"',
    '  3 |     "notes": { "comand": "npx" }',
    "    |                ^",
    '  did you mean "command"?',
  ]);
});

it("a problem in an empty line has no excerpt", () => {
  expect(problemLines("x", SOURCE, [problem(6, 1)], PIPE)).toHaveLength(1);
  expect(problemLines("x", SOURCE, [problem(60, 1)], PIPE)).toHaveLength(1);
});

it("a problem is sanitized on a terminal", () => {
  const name = process.env["NO_COLOR"];
  delete process.env["NO_COLOR"];
  const bad = problem(1, 1, { message: "not \u001b[2J" });
  const [first = ""] = problemLines("x", '{"a": 1}', [bad], { isTTY: true, columns: 80 });
  if (name !== undefined) process.env["NO_COLOR"] = name;
  expect(first).toContain("not \\x1b[2J");
});

it("a problem is counted by severity", () => {
  expect(tally([problem(1, 1), problem(2, 1, { severity: "warning" }), problem(3, 1)])).toBe("2 errors, 1 warning");
  expect(tally([problem(1, 1, { severity: "warning" })])).toBe("1 warning");
});

it("an excerpt has the right column after tabs and wide characters", () => {
  expect(excerpt('\t"a": 1', 2, 80)).toEqual({ text: '  "a": 1', before: 2 });
  expect(excerpt('"名前": x', 7, 80)).toEqual({ text: '"名前": x', before: 8 });
  expect(excerpt("abc", 99, 80)).toEqual({ text: "abc", before: 3 });
  expect(excerpt("a\u001b[2Jb", 3, 80)).toEqual({ text: "a\\x1b[2Jb", before: 5 });
});

it("an excerpt of a long line is cut around the position", () => {
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
  ['bearer_token_env_var = "MY_TOKEN"', undefined],
  ['"command": "npx", "args": ["-y", "@modelcontextprotocol/server-everything"]', undefined],
  ['"url": "https://example.com/mcp"', undefined],
  ['API_KEY = "abc"', 'API_KEY = "***"'],
  ['headers = { "X-Token" = "abc", Other = "abc" }', 'headers = { "X-Token" = "***", Other = "abc" }'],
  ['"args": ["sk-live-abc"]', '"args": ["***********"]'],
  ['"url": "https://me:s3cret@example.com/mcp"', '"url": "https://*********@example.com/mcp"'],
  ['"url": "https://${NAME}:${KEY}@example.com/mcp"', undefined],
  ['"args": ["npm-run-all", "ghp_abcdef1"]', '"args": ["npm-run-all", "***********"]'],
])("an excerpt of %s shows no secret", (line, shown) => {
  expect(coverSecrets(line)).toBe(shown ?? line);
  const [, text] = problemLines("a.json", line, [{ line: 1, column: 1, severity: "error", message: "x" }], PIPE);
  expect(text).toBe(`  1 | ${shown ?? line}`);
});

it("an excerpt of a line with many problems takes linear time", () => {
  const line = `"${"${A:-".repeat(20_000)}"`;
  const problems = Array.from({ length: 2_000 }, (_, at) => ({
    ...({ line: 1, column: at * 5 + 2, severity: "warning", message: "x" } as const),
  }));
  expect(problemLines("a.json", line, problems, PIPE)).toHaveLength(6_000);
  for (const piece of ["-", "a", "a=", '"', "\\", "--a", "://", " ", "sk-", "bearer "]) {
    expect(coverSecrets(piece.repeat(50_000))).toHaveLength(piece.length * 50_000);
  }
});
