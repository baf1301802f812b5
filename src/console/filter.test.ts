// The filter language: each key, several words, what is negated, errors, and a filter over many rows.

import { expect, it } from "vitest";
import { FILTER_KEYS, FilterError, filterRows, parseFilter } from "./filter.ts";
import type { CallRow } from "./types.ts";

const NOW = Date.parse("2030-05-05T12:00:00Z");

function row(fields: Partial<CallRow>): CallRow {
  return { id: 1, kind: "call", at: NOW - 1_000, ms: 20, method: "tools/call", status: "ok", ...fields };
}

function matches(filter: string, fields: Partial<CallRow>): boolean {
  return parseFilter(filter, NOW).matches(row(fields));
}

it.each<[filter: string, yes: Partial<CallRow>, no: Partial<CallRow>]>([
  ["server:github", { server: "github" }, { server: "github2" }],
  ["server:GitHub", { server: "github" }, {}],
  ["server:git*,files", { server: "files" }, { server: "notes" }],
  ['server:""', {}, { server: "files" }],
  ["tool:create_*", { name: "create_issue" }, { name: "create_issue", method: "prompts/get" }],
  ['tool:"a*"', { name: "a*" }, { name: "ab" }],
  ["status:error,cancelled", { status: "cancelled" }, { status: "ok" }],
  ["status:asked", { status: "ok", waitMs: 5 }, { status: "ok" }],
  ["dur:>500ms", { ms: 501 }, { ms: 500 }],
  ["dur:1.5s", { ms: 1_500 }, { ms: 1_499 }],
  ["dur:<=1m", { ms: 60_000 }, { ms: 60_001 }],
  ["size:>1mb", { sent: 1024 * 1024, received: 1 }, { received: 1024 * 1024 }],
  ["size:<1k", { sent: 3 }, {}],
  ["client:you", { client: "catenary-console 1", principal: "console" }, { client: "Editor", principal: "console-2" }],
  ["client:cursor", { client: "Cursor 3.1" }, { client: "VS Code 1.2" }],
  ["method:tools/*", { method: "tools/list" }, { method: "ping" }],
  ["-method:ping", { method: "tools/list" }, { method: "ping" }],
  ["since:10m", { at: NOW - 599_000 }, { at: NOW - 601_000 }],
  ["since:2030-05-05T11:00:00Z", { at: NOW - 3_599_000 }, { at: NOW - 3_601_000 }],
  ["id:7,9", { id: 9 }, { id: 8 }],
  ["id:>7", { id: 8 }, { id: 7 }],
  ["kind:question", { kind: "question" }, { kind: "call" }],
  ["principal:ann*", { principal: "anna" }, {}],
  ["error:timeout", { error: "timeout" }, { error: "tool_error" }],
  ['error:"no such"', { error: "tool_error", errorText: "There is No such file" }, { errorText: "none" }],
  ["issue", { name: "create_issue" }, { name: "list" }],
  ["cre*issue", { name: "create_issue" }, { name: "list" }],
  ['"not found"', { errorText: "It was not found" }, { errorText: "not there, found" }],
  ["-issue files", { server: "files" }, { server: "files", name: "create_issue" }],
  ["Server:files  status:ok", { server: "files" }, { server: "files", status: "error" }],
])("%s matches one row and not another", (filter, yes, no) => {
  expect(matches(filter, yes)).toBe(true);
  expect(matches(filter, no)).toBe(false);
});

it("reads a time of day as the last such time", () => {
  const at = new Date(NOW);
  const clock = `${at.getHours()}:${String(at.getMinutes()).padStart(2, "0")}`;
  expect(matches(`since:${clock}`, { at: NOW })).toBe(true);
  expect(matches(`since:${clock}`, { at: NOW - 1 })).toBe(false);
  const next = new Date(NOW + 60_000);
  const later = `${next.getHours()}:${String(next.getMinutes()).padStart(2, "0")}`;
  expect(matches(`since:${later}`, { at: NOW - 80_000_000 })).toBe(true);
});

it("measures a call that runs until now", () => {
  const filter = parseFilter("dur:>1m");
  expect(filter.matches({ id: 1, kind: "call", at: Date.now() - 61_000, method: "ping", status: "running" })).toBe(
    true,
  );
  expect(filter.matches({ id: 1, kind: "call", at: Date.now() - 1_000, method: "ping", status: "running" })).toBe(
    false,
  );
});

it("looks into requests and results only for text:", () => {
  expect(parseFilter("status:ok").needsBodies).toBe(false);
  const filter = parseFilter('text:"a b" status:ok');
  expect(filter.needsBodies).toBe(true);
  const asked: string[] = [];
  const bodies = (_row: CallRow, text: string): boolean => asked.push(text) > 0;
  expect(filter.matches(row({ status: "error" }), bodies)).toBe(false);
  // The cheap words come first.
  expect(asked).toEqual([]);
  expect(filter.matches(row({}), bodies)).toBe(true);
  expect(asked).toEqual(["a b"]);
  expect(filter.matches(row({}))).toBe(false);
});

it.each([
  [
    "servr:a",
    'There is no key servr; did you mean server:? To search for the words, write "servr:a" (character 1 of the filter)',
  ],
  ["a zzzzzz:b", /There is no key zzzzzz; there are server, tool, .* \(character 3 of the filter\)/],
  ["status:eror", "status:eror is no status; did you mean error? (character 1 of the filter)"],
  ["kind:x", "kind:x is no kind; it can be call, retry, poll, question, code (character 1 of the filter)"],
  ["dur:fast", /dur:fast is not a number with a unit \(ms, s, m, min, h, d\); write it like dur:>500ms/],
  ["size:>1ms", /size:>1ms is not a number with a unit/],
  ["id:x", /id:x is not a number; write it like id:120/],
  ["since:soon", /since:soon is no time; write it like since:10m/],
  ["server:", "server: needs a value, such as server:github (character 1 of the filter)"],
  ["-", "- needs a word behind it (character 1 of the filter)"],
  ['name:"a b', 'a " is missing at the end (character 1 of the filter)'],
])("%s: what is wrong, and what to write", (filter, message) => {
  expect(() => parseFilter(filter)).toThrow(message);
});

it("an error knows the place of the word", () => {
  try {
    parseFilter("server:a statuss:b");
  } catch (error) {
    expect(error).toBeInstanceOf(FilterError);
    expect(error).toMatchObject({ at: 9, length: 9 });
    return;
  }
  expect.unreachable();
});

it("the examples of all keys can be read", () => {
  for (const { example, values = [], key } of FILTER_KEYS) {
    expect(parseFilter(example).isEmpty).toBe(false);
    for (const value of values) parseFilter(`${key}:${value}`);
  }
  expect(parseFilter("  ").isEmpty).toBe(true);
});

it("shows a logical call with all nested rows if one of them matches, and none that is excluded", () => {
  const rows = [
    row({ id: 1, name: "run-code" }),
    row({ id: 2, parent: 1, kind: "code", server: "github" }),
    row({ id: 3, parent: 1, kind: "code", server: "files", status: "error" }),
    row({ id: 4, server: "files" }),
    row({ id: 5, parent: 4, kind: "poll", method: "tasks/get" }),
    row({ id: 6, parent: 0, kind: "code", server: "github" }),
  ];
  const ids = (filter: string): number[] => filterRows(rows, parseFilter(filter)).map(({ id }) => id);
  expect(ids("")).toEqual([1, 2, 3, 4, 5, 6]);
  expect(ids("server:github")).toEqual([1, 2, 3, 6]);
  expect(ids("server:github status:error")).toEqual([]);
  expect(ids("-name:run-code")).toEqual([4, 5, 6]);
  expect(ids("-status:error")).toEqual([1, 2, 3, 4, 5, 6]);
  expect(ids("-server:files")).toEqual([1, 2, 3, 6]);
});

it("filters 100,000 rows", () => {
  const rows = Array.from({ length: 100_000 }, (_, id) =>
    row({ id, server: `server-${id % 7}`, name: `tool_${id % 300}`, ms: id % 1_000, client: `client ${id % 5}` }),
  );
  const found = filterRows(rows, parseFilter("server:server-3 tool:tool_1* dur:>=500ms -client:*4"));
  expect(found).toEqual(
    rows.filter(({ id }) => id % 7 === 3 && `${id % 300}`.startsWith("1") && id % 1_000 >= 500 && id % 5 !== 4),
  );
});
