// The examples of docs/cli.md: every console block is run in a shell and must print what the page shows. The folder has our
// examples, and the files that the page shows by name.

import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EXIT } from "../../../src/cli/command.ts";
import { codeBlocks, tableUnder } from "../../docs/markdown.ts";
import { ENTER, HAS_TERMINAL, Terminal } from "../../support/terminal/terminal.ts";
import { consoles, play, putCommand } from "./console.ts";
import { CliProcess } from "./cli-process.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const PAGE = readFileSync(join(ROOT, "docs/cli.md"), "utf8");

const EXAMPLES = consoles(PAGE);

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
    expect(EXAMPLES.length).toBeGreaterThan(8);
  });

  it.each(EXAMPLES)("$command", async ({ command, output }) => {
    expect(await play(`exec 2>&1\n${command}`, folder)).toBe(output);
  });

  it.skipIf(!HAS_TERMINAL)("shows a question in a terminal", async () => {
    const block = codeBlocks(PAGE).find(({ code }) => code.includes("report_sighting location"))?.code ?? "";
    const [command = "", ...shown] = block.split("\n");
    const env = { PATH: `${folder}${delimiter}${process.env["PATH"]}` };
    const terminal = new Terminal(["sh", "-c", command.replace("$ ", "")], { env, cwd: folder });
    await terminal.shows("sky (number or name):");
    terminal.type(`2${ENTER}`);
    await terminal.shows("Send this?");
    terminal.type(ENTER);
    expect(await terminal.exited).toBe(0);
    expect(terminal.screen).toBe(shown.join("\n").trimEnd());
  });

  it("shows the output of up", async () => {
    const shown = codeBlocks(PAGE).find(({ code }) => code.startsWith("$ catenary up\n"))?.code ?? "";
    const run = new CliProcess(["up", "--http", "127.0.0.1:0"], { cwd: folder });
    await run.waitForStderr("For a client's config: ");
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
