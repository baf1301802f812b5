// The servers in the files of the MCP clients on this machine: which files there are, and the entries in them in our
// format. `import` copies them; `up` without a config counts them for a newcomer. The files are only read.

import { stat } from "node:fs/promises";
import { isAbsolute, resolve } from "node:path";
import { getNodeValue } from "jsonc-parser";
import { baseFolder, CLIENTS, clientFilePath, findClientFile, type Client } from "../../config/clients.ts";
import { adaptDocument } from "../../config/dialects.ts";
import {
  MAX_SERVERS,
  parseDocument,
  parseToml,
  Problems,
  readConfigText,
  type Problem,
} from "../../config/document.ts";
import { isOwnEntry } from "../../config/self-calls.ts";
import { ENTRY_KEYS } from "../../config/upstreams.ts";
import { isObject } from "../../core/values.ts";
import { UsageError } from "../command.ts";
import { shortPath } from "./change-file.ts";

export type ServerEntry = { readonly [key: string]: unknown };

/** A file of a client, and the servers in it. */
export interface ClientSource {
  readonly path: string;
  readonly title: string;
  /** Without Catenary itself. */
  readonly entries: ReadonlyMap<string, ServerEntry>;
  readonly hasCatenary: boolean;
  readonly inputs: readonly ServerEntry[];
}

/** A file of a client that cannot be parsed. */
export class UnreadableFileError extends Error {
  readonly path: string;
  readonly text: string;
  readonly problems: readonly Problem[];

  constructor(path: string, text: string, problems: readonly Problem[]) {
    super(`${shortPath(path)} cannot be read; correct it first`);
    this.path = path;
    this.text = text;
    this.problems = problems;
  }
}

/** The files that these clients may have: for all projects, and for the project in the current folder. */
export function clientFiles(clients: readonly Client[]): readonly string[] {
  // In the home folder, a client's file for all projects is also that of the project.
  return [...new Set(clients.flatMap(({ files }) => files.map((file) => clientFilePath(file))))];
}

/** A larger file is not looked at unasked, since it takes long to read. */
const MAX_FILE_BYTES = 4 * 1024 * 1024;

/** What all clients on this machine have. A file that is large or cannot be read counts as one without servers. */
export async function findClientServers(config: string): Promise<readonly ClientSource[]> {
  const read = clientFiles(CLIENTS).map(async (path): Promise<ClientSource[]> => {
    if (((await stat(path).catch(() => undefined))?.size ?? 0) > MAX_FILE_BYTES || !(await isThere(path))) return [];
    const source = await readClientFile(path, config).catch(() => undefined);
    return source === undefined || source.entries.size === 0 ? [] : [source];
  });
  return (await Promise.all(read)).flat();
}

export async function isThere(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isFile() === true;
}

/**
 * Reads a file of a client. Paths in it become right for a config at `config`. Throws an UnreadableFileError if it cannot
 * be parsed.
 */
export async function readClientFile(path: string, config: string): Promise<ClientSource> {
  const text = await readConfigText(path);
  const absolute = resolve(path);
  const problems = new Problems(text);
  const title = findClientFile(absolute)?.client.title ?? shortPath(path);
  const parsed =
    text.trim() === "" ? undefined : await (path.endsWith(".toml") ? parseToml(problems) : parseDocument(problems));
  const errors = problems.sorted().filter(({ severity }) => severity === "error");
  if (errors.length > 0) throw new UnreadableFileError(path, text, errors);
  const { root } = parsed === undefined ? { root: undefined } : adaptDocument(parsed, absolute, problems);
  // A copy, since jsonc-parser makes objects without a prototype.
  const content: unknown = root && structuredClone(getNodeValue(root));
  const { mcpServers, servers, inputs } = isObject(content) ? content : {};
  const base = baseFolder(absolute);
  const isElsewhere = base !== baseFolder(config) && !isForAllProjects(absolute);
  const all = [mcpServers, servers].flatMap((one) => Object.entries(isObject(one) ? one : {}));
  if (all.length > MAX_SERVERS) {
    throw new UsageError(`${shortPath(path)} has ${all.length} servers; the limit is ${MAX_SERVERS}`);
  }
  const entries = all.flatMap(([name, entry]) =>
    isObject(entry) && !isOwnEntry(entry) ? [[name, movedFrom(base, knownKeys(entry), isElsewhere)] as const] : [],
  );
  return {
    path,
    title,
    entries: new Map(entries),
    hasCatenary: all.some(([, entry]) => isOwnEntry(entry)),
    inputs: Array.isArray(inputs) ? inputs.filter(isObject) : [],
  };
}

/** Whether it is a client's file for all projects, whose servers belong to no folder. */
function isForAllProjects(path: string): boolean {
  const files = CLIENTS.flatMap((client) => client.files).filter(({ scope }) => scope === "user");
  return files.some((file) => clientFilePath(file) === path);
}

/** What a client needs for itself, such as a list of tools that need no approval, is left out. */
function knownKeys(entry: ServerEntry): ServerEntry {
  return Object.fromEntries(Object.entries(entry).filter(([key]) => ENTRY_KEYS.includes(key) && key !== "type"));
}

/**
 * Makes paths absolute that a config reads as relative to its own folder. Arguments may be paths too, but only the server
 * knows which, so it is started in the folder where the client starts it.
 */
function movedFrom(base: string, entry: ServerEntry, isElsewhere: boolean): ServerEntry {
  const moved = withStrings(entry, (text) => text.replaceAll("${workspaceFolder}", base)) as ServerEntry;
  const { command, args, cwd } = moved;
  const isPath = (key: string, value: string): boolean =>
    (["cwd", "envFile", "module"].includes(key) || (key === "command" && /^\S*[/\\]/.test(value))) &&
    !isAbsolute(value) &&
    !/^(?:\$\{|~(?:[/\\]|$))/.test(value);
  const absolute = Object.entries(moved).map(([key, value]) => [
    key,
    typeof value === "string" && isPath(key, value) ? resolve(base, value) : value,
  ]);
  const hasRelative = Array.isArray(args) && args.some((arg) => typeof arg === "string" && /^\.{1,2}[/\\]/.test(arg));
  const needsFolder = command !== undefined && cwd === undefined && (isElsewhere || hasRelative);
  return { ...(Object.fromEntries(absolute) as ServerEntry), ...(needsFolder && { cwd: base }) };
}

function withStrings(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => withStrings(item, change));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, withStrings(inner, change)]));
}
