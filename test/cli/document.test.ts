// The examples of docs/cli.md: every block of a console is played in a shell, and must come out as it stands there. They
// are played in a folder that has our examples, and the files that the page shows by name.

import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EXIT } from "../../src/cli/command.ts";
import { codeBlocks, tableUnder } from "../docs/markdown.ts";
import { ENTER, HAS_TERMINAL, Terminal } from "../support/terminal.ts";
import { consoles, play, putCommand } from "./console.ts";
import { Run } from "./stage.ts";

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const PAGE = readFileSync(join(ROOT, "docs/cli.md"), "utf8");

const PLAYED = consoles(PAGE);

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-page-"));
  putCommand(folder);
  symlinkSync(join(ROOT, "examples"), join(folder, "examples"));
  for (const { mark, code } of codeBlocks(PAGE)) if (mark.includes(".")) writeFileSync(join(folder, mark), code);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe("docs/cli.md", () => {
  it("has examples", () => {
    expect(PLAYED.length).toBeGreaterThan(8);
  });

  it.each(PLAYED)("$command", async ({ command, output }) => {
    expect(await play(`exec 2>&1\n${command}`, folder)).toBe(output);
  });

  it.skipIf(!HAS_TERMINAL)("shows a question as a terminal does", async () => {
    const talk = codeBlocks(PAGE).find(({ code }) => code.includes("report_sighting location"))?.code ?? "";
    const [command = "", ...shown] = talk.split("\n");
    const env = { PATH: `${folder}${delimiter}${process.env["PATH"]}` };
    const terminal = new Terminal(["sh", "-c", command.replace("$ ", "")], { env, cwd: folder });
    await terminal.shows("sky (a number or a name):");
    terminal.type(`2${ENTER}`);
    await terminal.shows("Send this?");
    terminal.type(ENTER);
    expect(await terminal.exited).toBe(0);
    expect(terminal.screen).toBe(shown.join("\n").trimEnd());
  });

  it("shows what up says", async () => {
    const shown = codeBlocks(PAGE).find(({ code }) => code.startsWith("$ catenary up\n"))?.code ?? "";
    const run = new Run(["up", "--http", "127.0.0.1:0"], { cwd: folder });
    await run.says("A client's entry: ");
    run.process.kill("SIGTERM");
    expect(await run.exited).toBe(0);
    const [, port = ""] = /:(\d+)\/mcp$/m.exec(run.err) ?? [];
    expect(run.err.replaceAll(`:${port}/`, ":3000/")).toContain(shown.slice(shown.indexOf("\n") + 1));
  });

  it("has the exit codes", () => {
    const codes = tableUnder("### For programs: --json", PAGE).map(([code]) => Number(code));
    expect(codes).toEqual(Object.values(EXIT));
  });
});
