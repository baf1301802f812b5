// Opens the console of a gateway in the user's browser. The token of its link must not be in a command line, which other
// users can read, so the browser opens a private file that leads to the link.

import { rmSync } from "node:fs";
import { join } from "node:path";
import { hasBrowser, openFile } from "../../auth/oauth/browser.ts";
import { unref } from "../../core/async.ts";
import { makePrivateDirectory, stateDirectory, writePrivate } from "../../core/private-files.ts";
import { isTerminal } from "../terminal/output.ts";

/** How long the browser has to read the file. */
const KEPT_MS = 60_000;

/** Whether a person sits at this machine's terminal: not in CI, and not over ssh. */
export function mayOpenBrowser(env: NodeJS.ProcessEnv = process.env): boolean {
  const isRemote = ["CI", "SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY"].some((name) => (env[name] ?? "") !== "");
  return (
    !isRemote && isTerminal(process.stderr) && process.stdin.isTTY && hasBrowser({ platform: process.platform, env })
  );
}

/** Returns whether a browser was started. */
export async function openConsole(link: string): Promise<boolean> {
  const file = join(stateDirectory(), `console-${process.pid}.html`);
  try {
    await makePrivateDirectory(stateDirectory());
    await writePrivate(file, `<!doctype html>\n<meta http-equiv="refresh" content="0; url=${link}">\n`);
  } catch {
    return false;
  }
  const remove = (): void => rmSync(file, { force: true });
  process.once("exit", remove);
  unref(setTimeout(remove, KEPT_MS));
  return openFile(file);
}
