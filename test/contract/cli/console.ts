// Runs the console examples of a page in a shell, in a folder in which `catenary` is the built command.

import { spawn } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { text } from "node:stream/consumers";
import { codeBlocks } from "../../docs/markdown.ts";
import { CLI } from "./cli-process.ts";

export interface ConsoleExample {
  readonly command: string;
  readonly output: string;
}

export function consoles(page: string): ConsoleExample[] {
  return codeBlocks(page)
    .filter(({ language }) => language === "console")
    .flatMap(({ code }) => code.split(/^\$ /m).slice(1))
    .map((part) => {
      const [command = "", ...output] = part.split("\n");
      return { command, output: output.join("\n") };
    });
}

/** Adds the `catenary` command to the folder. */
export function putCommand(folder: string): void {
  const shim = join(folder, "catenary");
  writeFileSync(shim, `#!/bin/sh\nexec "${process.execPath}" "${CLI}" "$@"\n`);
  chmodSync(shim, 0o755);
}

/** Runs a command in the folder and returns its stdout. */
export function play(command: string, folder: string): Promise<string> {
  const shell = spawn("sh", ["-c", command], {
    cwd: folder,
    stdio: ["ignore", "pipe", "ignore"],
    env: { ...process.env, PATH: `${folder}${delimiter}${process.env["PATH"]}`, FORCE_COLOR: undefined },
  });
  return text(shell.stdout);
}
