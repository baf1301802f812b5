// The problems of invalid configs: each has a position, a message and a hint, and none shows the value of a variable. The
// configs are in test/support.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SETTING_MISTAKES } from "../../test/support/config/setting-mistakes.ts";
import { SERVER_MISTAKES, SYNTAX_MISTAKES, type Mistake } from "../../test/support/config/server-mistakes.ts";
import { ENVIRONMENT } from "../../test/support/config/valid-configs.ts";
import { checkConfig } from "./load.ts";
import type { Problem } from "./document.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-mistakes-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const check = (text: string, env = ENVIRONMENT): Promise<Problem[]> =>
  checkConfig(text, join(folder, "catenary.json"), { env });

function format({ line, column, severity, message, hint }: Problem): string {
  const text = `${line}:${column} ${severity}: ${message}${hint === undefined ? "" : `; ${hint}`}`;
  // The list of all keys grows.
  return text
    .replaceAll(folder, "FOLDER")
    .replaceAll(homedir(), "HOME")
    .replace(/(?<=the keys are )[$\w]+(?:, [$\w]+){8,}/, "KEYS");
}

describe.each([
  ["the syntax", SYNTAX_MISTAKES],
  ["the servers", SERVER_MISTAKES],
  ["the rest", SETTING_MISTAKES],
])("in %s", (_part, mistakes: readonly Mistake[]) => {
  it.each(mistakes)("a mistake in a config: %s is explained", async (_name, text, _schema, ...problems) => {
    const lines = (await check(text)).map(format);
    expect(lines).toEqual(problems);
    expect(lines.join("\n")).not.toContain("s3cret");
  });
});

it("several mistakes are all reported, in the order of the text", async () => {
  const text = `{
  "limits": {"depth": 0, "batch": -1},
  "names": "x",
  "mcpServers": {"a": {"command": "", "idleMs": -1}, "b": {"url": "\${NONE}", "share": "x"}},
  "chain": [1]
}`;
  const places = (await check(text)).map(({ line, column }) => `${line}:${column}`);
  expect(places).toEqual(["2:23", "2:35", "3:12", "4:35", "4:49", "4:68", "4:87", "5:13"]);
});

it("several mistakes in a file that is not JSON are limited in number", async () => {
  expect(await check("<p>\n".repeat(5_000))).toHaveLength(20);
});

it.each([
  ["\n", 3],
  ["\r\n", 3],
  ["\r", 3],
])("positions count lines that end with %j", async (end, line) => {
  const text = ["{", '"mcpServers": {"a": {"command": "x"}},', '  "names": "x"}'].join(end);
  expect(await check(text)).toMatchObject([{ line, column: 12 }]);
});

it("positions do not count a byte order mark, and count UTF-16 units", async () => {
  expect(await check('\uFEFF{"name": "", "mcpServers": {"a": {"command": "x"}}}')).toMatchObject([{ column: 10 }]);
  const text = '{"instructions": "\u{1F600}", "name": "", "mcpServers": {"a": {"command": "x"}}}';
  expect(await check(text)).toMatchObject([{ column: text.indexOf('""') + 1 }]);
});

it("files that a config names may exist", async () => {
  writeFileSync(join(folder, "mine.mjs"), "");
  writeFileSync(join(folder, "a.env"), "");
  const text = `{"mcpServers": {"a": {"command": "x", "cwd": ".", "envFile": "a.env"}}, "chain": [{"use": "./mine.mjs"}]}`;
  expect(await check(text)).toEqual([]);
});

it("files that a config names may be of the wrong type", async () => {
  writeFileSync(join(folder, "mine.mjs"), "");
  const text = `{"mcpServers": {"a": {"command": "x", "cwd": "./mine.mjs"}, "b": {"module": "."}}}`;
  expect((await check(text)).map(format)).toEqual([
    "1:46 warning: mcpServers.a.cwd: not a folder; looked for FOLDER/mine.mjs",
    "1:77 error: mcpServers.b.module: not a file; looked for FOLDER",
  ]);
});
