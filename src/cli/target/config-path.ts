// Which config a command line means, and whether what it names is one at all. Only names and first letters are looked at;
// what is in it is read elsewhere, and late, by those who need it.

import { readFile, stat } from "node:fs/promises";
import { extname } from "node:path";
import { NotFoundError, UsageError } from "../exit-codes.ts";

/** What is looked for where none is named. */
export const CONFIG = "catenary.json";

const OF_CONFIGS = new Set([".json", ".jsonc"]);
const OF_MODULES = new Set([".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"]);

/** The file that is named, or the one that stands here. Throws a NotFoundError. */
export async function configPath(named: string | undefined, command: string): Promise<string> {
  const path = named ?? CONFIG;
  const found = await stat(path).catch(() => undefined);
  if (found?.isFile() === true) return path;
  if (found !== undefined) throw new UsageError(`${path} is no file; name the config itself, such as ./${CONFIG}`);
  if (named !== undefined) throw new NotFoundError(`There is no config ${path}`);
  throw new NotFoundError(
    `There is no ${CONFIG} here: name a config, \`catenary ${command} FILE\`, or write one, such as {"mcpServers": {"notes": {"command": "npx", "args": ["-y", "notes-mcp"]}}}`,
  );
}

/** The same, and undefined where none is named and none stands here. */
export async function configHere(named: string | undefined, command: string): Promise<string | undefined> {
  const isNone = named === undefined && (await stat(CONFIG).catch(() => undefined)) === undefined;
  return isNone ? undefined : configPath(named, command);
}

/** Whether a file is a config: by its name, or else by how it begins. What is not there is none. */
export async function isConfig(path: string): Promise<boolean> {
  const extension = extname(path).toLowerCase();
  if (OF_CONFIGS.has(extension)) return true;
  if (OF_MODULES.has(extension)) return false;
  const text = await readFile(path, "utf8").catch(() => "");
  return /^\uFEFF?(?:\s|\/\/.*|\/\*[^]*?\*\/)*\{/.test(text);
}
