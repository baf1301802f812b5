// The consoles of a page, to be played in a shell: each command with what stands below it, and a folder in which
// `catenary` is the command as it is built.

import { spawn } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";
import { codeBlocks } from "../docs/markdown.ts";
import { CLI } from "./stage.ts";

export interface Played {
  readonly command: string;
  readonly output: string;
}

export function consoles(page: string): Played[] {
  return codeBlocks(page)
    .filter(({ language }) => language === "console")
    .flatMap(({ code }) => code.split(/^\$ /m).slice(1))
    .map((part) => {
      const [command = "", ...output] = part.split("\n");
      return { command, output: output.join("\n") };
    });
}

/** Puts the command into the folder, under its name. */
export function putCommand(folder: string): void {
  const shim = join(folder, "catenary");
  writeFileSync(shim, `#!/bin/sh\nexec "${process.execPath}" "${CLI}" "$@"\n`);
  chmodSync(shim, 0o755);
}

/** What a shell in the folder prints on stdout; what is printed on stderr is not looked at. */
export function play(command: string, folder: string): Promise<string> {
  const shell = spawn("sh", ["-c", command], {
    cwd: folder,
    stdio: ["ignore", "pipe", "ignore"],
    env: { ...process.env, PATH: `${folder}${delimiter}${process.env["PATH"]}`, FORCE_COLOR: undefined },
  });
  return text(shell.stdout);
}
