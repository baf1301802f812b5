// The examples of docs/cli.md: every block of a console is played in a shell, and must come out as it stands there.

import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { EXIT } from "../../src/cli/exit-codes.ts";
import { codeBlocks, tableUnder } from "../house/markdown.ts";
import { ENTER, HAS_TERMINAL, Terminal } from "../support/terminal.ts";
import { CLI } from "./stage.ts";

const ROOT = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const PAGE = readFileSync(join(ROOT, "docs/cli.md"), "utf8");

/** Each command of a block, with what stands below it. */
const PLAYED = codeBlocks(PAGE)
  .filter(({ language }) => language === "console")
  .flatMap(({ code }) => code.split(/^\$ /m).slice(1))
  .map((part) => {
    const [command = "", ...output] = part.split("\n");
    return { command, output: output.join("\n") };
  });

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-page-"));
  const shim = join(folder, "catenary");
  writeFileSync(shim, `#!/bin/sh\nexec "${process.execPath}" "${CLI}" "$@"\n`);
  chmodSync(shim, 0o755);
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe("docs/cli.md", () => {
  it("has examples", () => {
    expect(PLAYED.length).toBeGreaterThan(8);
  });

  it.each(PLAYED)("$command", async ({ command, output }) => {
    const shell = spawn("sh", ["-c", `exec 2>&1\n${command}`], {
      cwd: ROOT,
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, PATH: `${folder}${delimiter}${process.env["PATH"]}`, FORCE_COLOR: undefined },
    });
    expect(await text(shell.stdout)).toBe(output);
  });

  it.skipIf(!HAS_TERMINAL)("shows a question as a terminal does", async () => {
    const talk = codeBlocks(PAGE).find(({ code }) => code.includes("report_sighting location"))?.code ?? "";
    const [command = "", ...shown] = talk.split("\n");
    const env = { PATH: `${folder}${delimiter}${process.env["PATH"]}` };
    const terminal = new Terminal(["sh", "-c", command.replace("$ ", "")], { env, cwd: ROOT });
    await terminal.shows("sky (a number or a name):");
    terminal.type(`2${ENTER}`);
    await terminal.shows("Send this?");
    terminal.type(ENTER);
    expect(await terminal.exited).toBe(0);
    expect(terminal.screen).toBe(shown.join("\n").trimEnd());
  });

  it("has the exit codes", () => {
    const codes = tableUnder("### For programs: --json", PAGE).map(([code]) => Number(code));
    expect(codes).toEqual(Object.values(EXIT));
  });
});
