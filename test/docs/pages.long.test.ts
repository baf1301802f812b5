// Plays the documentation: every command of a page is typed into a shell, in a folder with the files of the page, and
// must print what the page shows.

import { readdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasSbcl } from "../support/setup/sbcl.ts";
import { ENTER, HAS_TERMINAL, Terminal } from "../support/terminal/terminal.ts";
import { codeBlocks } from "./markdown.ts";
import { commandsOf, PageFolder, readPage, ROOT } from "./page.ts";

const STARTING = "docs/getting-started";
const MAX_STARTING_LINES = 100;
const CLI_REFERENCE = "docs/reference/cli.md";
const LIVE_REFERENCE = "docs/reference/live.md";

const pages = readdirSync(join(ROOT, "docs"), { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".md"))
  .map((name) => `docs/${name}`)
  .toSorted();
const starting = pages.filter((page) => page.startsWith(STARTING));
const played = ["README.md", ...pages].filter((page) => commandsOf(readPage(page)).length > 0);

describe.each(played)("%s", (page) => {
  const markdown = readPage(page);
  let folder: PageFolder;
  beforeAll(async () => {
    folder = await PageFolder.create(markdown);
  });
  afterAll(() => folder.close());

  it.for(commandsOf(markdown))("a page runs: $line", async (command, { skip }) => {
    skip(/\blisp\b/.test(command.line) && !hasSbcl(), "needs SBCL");
    await folder.run(command);
  });
});

it("getting started has a page for each way to use Catenary, with commands to play", () => {
  const names = starting.map((page) => page.slice(STARTING.length + 1));
  expect(names).toEqual(["client.md", "gateway.md", "live.md", "server.md"]);
  for (const page of starting) expect(commandsOf(readPage(page)).length, page).toBeGreaterThan(0);
});

it.each(starting)("getting started: %s is short", (page) => {
  expect(readPage(page).split("\n").length).toBeLessThanOrEqual(MAX_STARTING_LINES + 1);
});

const markdown = readPage(CLI_REFERENCE);

it("docs/reference/cli.md has commands to play", () => {
  expect(commandsOf(markdown).length).toBeGreaterThan(8);
});

it.skipIf(!HAS_TERMINAL)("docs/reference/cli.md shows a question in a terminal", async () => {
  const block = codeBlocks(markdown).find(({ code }) => code.includes("report_sighting location"))?.code ?? "";
  const [command = "", ...shown] = block.split("\n");
  const folder = await PageFolder.create(markdown);
  const env = { PATH: `${folder.path("bin")}${delimiter}${process.env["PATH"]}` };
  const terminal = new Terminal(["sh", "-c", command.replace("$ ", "")], { env, cwd: folder.path(".") });
  await terminal.shows("sky (number or name):");
  terminal.type(`2${ENTER}`);
  await terminal.shows("Send this?");
  terminal.type(ENTER);
  expect(await terminal.exited).toBe(0);
  expect(terminal.screen).toBe(shown.join("\n").trimEnd());
  await folder.close();
});

it("docs/reference/live.md has an evaluation in each language, and the output of `catenary up`", () => {
  const commands = commandsOf(readPage(LIVE_REFERENCE)).map(({ line }) => line.split(" ", 3).join(" "));
  expect(commands).toEqual(["catenary eval js", "catenary eval lisp", "catenary up --live"]);
});
