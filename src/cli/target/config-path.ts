// Finds the config that a command line means, and tells configs from modules. Reads no more than the beginning of a
// file; the config itself is loaded later, by the commands that need it.

import { readFile, stat } from "node:fs/promises";
import { extname } from "node:path";
import { NotFoundError, UsageError } from "../command.ts";

/** The default config. */
export const CONFIG = "catenary.json";

const CONFIG_EXTENSIONS = new Set([".json", ".jsonc"]);
const MODULE_EXTENSIONS = new Set([".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"]);

/** The given file, or the default config in this folder. Throws a NotFoundError if there is none. */
export async function requireConfig(given: string | undefined, command: string): Promise<string> {
  const path = given ?? CONFIG;
  const found = await stat(path).catch(() => undefined);
  if (found?.isFile() === true) return path;
  if (found !== undefined) throw new UsageError(`${path} is not a file; name the config itself, such as ./${CONFIG}`);
  if (given !== undefined) throw new NotFoundError(`There is no config ${path}`);
  throw new NotFoundError(
    `There is no ${CONFIG} here: name a config, \`catenary ${command} FILE\`, or write one, such as {"mcpServers": {"notes": {"command": "npx", "args": ["-y", "notes-mcp"]}}}`,
  );
}

/** As `requireConfig`, but undefined if none is given and this folder has none. */
export async function findConfig(given: string | undefined, command: string): Promise<string | undefined> {
  const isMissing = given === undefined && (await stat(CONFIG).catch(() => undefined)) === undefined;
  return isMissing ? undefined : requireConfig(given, command);
}

/** Tells a config from a module, by its extension or by how it begins. */
export async function isConfig(path: string): Promise<boolean> {
  const extension = extname(path).toLowerCase();
  if (CONFIG_EXTENSIONS.has(extension)) return true;
  if (MODULE_EXTENSIONS.has(extension)) return false;
  const text = await readFile(path, "utf8").catch(() => "");
  return /^\uFEFF?(?:\s|\/\/.*|\/\*[^]*?\*\/)*\{/.test(text);
}
