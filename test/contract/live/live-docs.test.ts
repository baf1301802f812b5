// Runs the console examples of docs/live.md in a shell and compares the output. Those in Lisp need SBCL. The page's
// TypeScript examples and configs are checked with those of the other pages.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../../src/index.ts";
import { javascript, lisp } from "../../../src/live/index.ts";
import { consoles, play, putCommand } from "../cli/console.ts";
import { CliProcess } from "../cli/cli-process.ts";
import { codeBlocks, tableUnder } from "../../docs/markdown.ts";
import { hasSbcl } from "../../support/setup/sbcl.ts";

const PAGE = readFileSync(new URL("../../../docs/live.md", import.meta.url), "utf8");

const PLAYED = consoles(PAGE);

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-live-page-"));
  putCommand(folder);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("docs/live.md", () => {
  it("has examples", () => {
    expect(PLAYED.map(({ command }) => command.split(" ", 3)[2])).toEqual(["js", "lisp"]);
  });

  it.for(PLAYED)("$command", async ({ command, output }, { skip }) => {
    skip(command.includes("eval lisp") && !hasSbcl(), "needs SBCL");
    expect(await play(command, folder)).toBe(output);
  });

  it("shows the output of `catenary up`", async () => {
    const shown = codeBlocks(PAGE).find(({ code }) => code.startsWith("$ catenary up\n"))?.code ?? "";
    const run = new CliProcess(["up", "--http", "127.0.0.1:0"], { cwd: folder });
    await run.waitForStderr("This token is valid until you stop the server");
    run.process.kill("SIGTERM");
    expect(await run.exited).toBe(0);
    const [, port = ""] = /:(\d+)\/mcp$/m.exec(run.err) ?? [];
    const said = run.err.replaceAll(`:${port}/`, ":3000/").replace(/(?<=Bearer )[\w-]+/, "z4s5...");
    expect(said).toContain(shown.slice(shown.indexOf("\n") + 1));
  });

  it.each([
    { heading: "## JavaScript", make: javascript },
    { heading: "## Common Lisp", make: lisp },
  ])("has a row for each tool of $heading, and for no other", async ({ heading, make }) => {
    const rows = [...tableUnder(heading, PAGE), ...tableUnder("## Tools of both", PAGE)];
    const written = rows.flatMap(([cell = ""]) => [...cell.matchAll(/`([a-z-]+)`/g)].map(([, name = ""]) => name));
    const server = make();
    const client = await connect(server);
    const offered: string[] = [];
    for await (const { name } of client.tools()) offered.push(name);
    await client.close();
    await server.close();
    expect(written.toSorted()).toEqual(offered.toSorted());
  });
});
