// The program behind a command line: what it is called, by a word that says what it is.

import { basename, extname } from "node:path";
import { BARE_FLAGS } from "../../chain/upstream/upstream.ts";
import type { Command } from "../../client/command.ts";

/** Programs whose names say nothing of what they start. */
const STARTERS = new Set(["npx", "bunx", "uvx", "node", "bun", "deno", "tsx", "python", "python3", "sh", "bash"]);

/** What it may be called: "notes-mcp" of `npx -y @me/notes-mcp@1`, "server" of `node server.js`. */
export function programName({ command, args = [] }: Command): string {
  const own = basename(command);
  const started = STARTERS.has(own) ? args.find((word) => !BARE_FLAGS.has(word)) : undefined;
  const name = basename(started?.startsWith("-") === false ? started : own).replace(/(?<=.)@.*$/, "");
  return /^[\w.-]+$/.test(name) ? basename(name, extname(name)) : own;
}
