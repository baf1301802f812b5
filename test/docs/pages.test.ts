// Plays the documentation: every command of a page is typed into a shell, in a folder with the files of the page, and
// must print what the page shows. A short run plays the getting-started pages, a long run all of them.

import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { IS_LONG } from "../support/thoroughness.ts";
import { hasSbcl } from "../support/setup/sbcl.ts";
import { commandsOf, PageFolder, readPage, ROOT } from "./page.ts";

const STARTING = "docs/getting-started";
const MAX_STARTING_LINES = 100;

const pages = readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".md"))
  .map((name) => `docs/${name}`)
  .toSorted();
const starting = pages.filter((page) => page.startsWith(STARTING));
const played = (IS_LONG ? ["README.md", ...pages] : starting).filter((page) => commandsOf(readPage(page)).length > 0);

describe.each(played)("%s", (page) => {
  const markdown = readPage(page);
  let folder: PageFolder;
  beforeAll(async () => {
    folder = await PageFolder.create(markdown);
  });
  afterAll(() => folder.close());

  it.for(commandsOf(markdown))("$line", { timeout: 90_000 }, async (command, { skip }) => {
    skip(/\blisp\b/.test(command.line) && !hasSbcl(), "needs SBCL");
    await folder.run(command);
  });
});

describe("getting started", () => {
  it("has a page for each way to use Catenary, with commands to play", () => {
    const names = starting.map((page) => page.slice(STARTING.length + 1));
    expect(names).toEqual(["client.md", "gateway.md", "live.md", "server.md"]);
    for (const page of starting) expect(commandsOf(readPage(page)).length, page).toBeGreaterThan(0);
  });

  it.each(starting)("%s is short", (page) => {
    expect(readPage(page).split("\n").length).toBeLessThanOrEqual(MAX_STARTING_LINES + 1);
  });
});
