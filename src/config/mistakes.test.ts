// What is said of configs that are wrong: each mistake with its place and what to do, and never the value of a
// variable. The texts stand in test/support.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ELSEWHERE } from "../../test/support/config-mistakes-elsewhere.ts";
import { IN_SERVERS, IN_THE_TEXT, type Mistake } from "../../test/support/config-mistakes.ts";
import { ENVIRONMENT } from "../../test/support/config-samples.ts";
import { checkConfig } from "./load.ts";
import type { Problem } from "./problems.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-mistakes-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const check = (text: string, env = ENVIRONMENT): Promise<Problem[]> =>
  checkConfig(text, join(folder, "catenary.json"), { env });

function said({ line, column, severity, message, hint }: Problem): string {
  const text = `${line}:${column} ${severity}: ${message}${hint === undefined ? "" : `; ${hint}`}`;
  return text.replaceAll(folder, "FOLDER");
}

describe.each([
  ["the text", IN_THE_TEXT],
  ["the servers", IN_SERVERS],
  ["the rest", ELSEWHERE],
])("in %s", (_where, mistakes: readonly Mistake[]) => {
  it.each(mistakes)("%s is explained", async (_name, text, _schema, ...says) => {
    const lines = (await check(text)).map(said);
    expect(lines).toEqual(says);
    expect(lines.join("\n")).not.toContain("s3cret");
  });
});

describe("many mistakes", () => {
  it("are told at once, in the order of the text", async () => {
    const text = `{
  "limits": {"depth": 0, "batch": -1},
  "names": "x",
  "mcpServers": {"a": {"command": "", "idle": -1}, "b": {"url": "\${NONE}", "share": "x"}},
  "chain": [1]
}`;
    const places = (await check(text)).map(({ line, column }) => `${line}:${column}`);
    expect(places).toEqual(["2:23", "2:35", "3:12", "4:35", "4:47", "4:66", "4:85", "5:13"]);
  });

  it("in a file of no text at all are not told a thousand times", async () => {
    expect(await check("<p>\n".repeat(5_000))).toHaveLength(20);
  });
});

describe("places", () => {
  it.each([
    ["\n", 3],
    ["\r\n", 3],
    ["\r", 3],
  ])("are counted by lines that end with %j", async (end, line) => {
    const text = ["{", '"mcpServers": {"a": {"command": "x"}},', '  "names": "x"}'].join(end);
    expect(await check(text)).toMatchObject([{ line, column: 12 }]);
  });

  it("do not count a byte order mark, and count the halves of a character", async () => {
    expect(await check('\uFEFF{"name": "", "mcpServers": {"a": {"command": "x"}}}')).toMatchObject([{ column: 10 }]);
    const text = '{"instructions": "\u{1F600}", "name": "", "mcpServers": {"a": {"command": "x"}}}';
    expect(await check(text)).toMatchObject([{ column: text.indexOf('""') + 1 }]);
  });
});

describe("files that a config names", () => {
  it("may be there", async () => {
    writeFileSync(join(folder, "mine.mjs"), "");
    writeFileSync(join(folder, "a.env"), "");
    const text = `{"mcpServers": {"a": {"command": "x", "cwd": ".", "envFile": "a.env"}}, "chain": [{"use": "./mine.mjs"}]}`;
    expect(await check(text)).toEqual([]);
  });

  it("may be something else", async () => {
    writeFileSync(join(folder, "mine.mjs"), "");
    const text = `{"mcpServers": {"a": {"command": "x", "cwd": "./mine.mjs"}, "b": {"module": "."}}}`;
    expect((await check(text)).map(said)).toEqual([
      "1:46 warning: mcpServers.a.cwd is no folder; looked for at FOLDER/mine.mjs",
      "1:77 error: mcpServers.b.module is no file; looked for at FOLDER",
    ]);
  });
});
