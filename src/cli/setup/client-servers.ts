// The servers in the files of the MCP clients on this machine: which files there are, and the entries in them in our
// format. `import` copies them; `up` without a config counts them for a newcomer. The files are only read.

import { stat } from "node:fs/promises";
import { isAbsolute, relative, resolve } from "node:path";
import { getNodeValue, type Node } from "jsonc-parser";
import { baseFolder, CLIENTS, clientFilePath, findClientFile, type Client } from "../../config/clients.ts";
import { adaptDocument } from "../../config/dialects.ts";
import { ConfigError, MAX_SERVERS, parseDocument, Problems, readConfigText } from "../../config/document.ts";
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
  /** The name of the client; of another file, `other`. */
  readonly clientName: string;
  /** Without Catenary itself. A name may be there twice, if the file has servers for several folders. */
  readonly entries: readonly (readonly [name: string, entry: ServerEntry])[];
  readonly hasCatenary: boolean;
  readonly inputs: readonly ServerEntry[];
}

/** The files that these clients may have: for all projects, and for the project in the current folder. */
export function clientFiles(clients: readonly Client[]): readonly string[] {
  // In the home folder, a client's file for all projects is also that of the project.
  return [...new Set(clients.flatMap(({ files }) => files.map((file) => clientFilePath(file))))];
}

/** The name of a client on this machine, for commands that we print. */
export async function likelyClient(): Promise<string> {
  const [first] = CLIENTS;
  for (const { name, files } of CLIENTS) if (await isThere(clientFilePath(files[0]))) return name;
  return first?.name ?? "CLIENT";
}

/** A larger file is not looked at unasked, since it takes long to read. */
const MAX_FILE_BYTES = 4 * 1024 * 1024;

/** What all clients on this machine have. A file that is large or cannot be read counts as one without servers. */
export async function findClientServers(config: string): Promise<readonly ClientSource[]> {
  const read = clientFiles(CLIENTS).map(async (path): Promise<ClientSource[]> => {
    if (((await stat(path).catch(() => undefined))?.size ?? 0) > MAX_FILE_BYTES || !(await isThere(path))) return [];
    const source = await readClientFile(path, config).catch(() => undefined);
    return source === undefined || source.entries.length === 0 ? [] : [source];
  });
  return (await Promise.all(read)).flat();
}

export async function isThere(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isFile() === true;
}

/**
 * Reads a file of a client. Paths in it become right for a config at `config`. Throws a ConfigError if it cannot be
 * parsed.
 */
export async function readClientFile(path: string, config: string): Promise<ClientSource> {
  const text = await readConfigText(path);
  const absolute = resolve(path);
  const problems = new Problems(text);
  const client = findClientFile(absolute)?.client;
  const parsed = text.trim() === "" ? undefined : await parseDocument(problems, path);
  const errors = problems.sorted().filter(({ severity }) => severity === "error");
  if (errors.length > 0) throw new ConfigError(path, text, errors);
  const { root } = parsed === undefined ? { root: undefined } : adaptDocument(parsed, absolute, problems);
  const base = baseFolder(absolute);
  const isElsewhere = base !== baseFolder(config) && !isForAllProjects(absolute);
  const all = serversIn(root);
  const elsewhere = await serversOfOtherFolders(valueOf(parsed)["projects"], absolute);
  const count = all.length + elsewhere.length;
  if (count > MAX_SERVERS) throw new UsageError(`${shortPath(path)} has ${count} servers; the limit is ${MAX_SERVERS}`);
  const { inputs } = valueOf(root);
  return {
    path,
    title: client?.title ?? shortPath(path),
    clientName: client?.name ?? "other",
    entries: [...all.flatMap(importable(base, isElsewhere)), ...elsewhere],
    hasCatenary: all.some(([, entry]) => isOwnEntry(entry)),
    inputs: Array.isArray(inputs) ? inputs.filter(isObject) : [],
  };
}

/** The servers of an adapted file, which may have several sections. */
function serversIn(root: Node | undefined): (readonly [string, unknown])[] {
  const sections = (root?.children ?? []).flatMap(({ children = [] }) => {
    const [key, value] = children;
    return (key?.value === "mcpServers" || key?.value === "servers") && value !== undefined ? [valueOf(value)] : [];
  });
  return sections.flatMap((section) => Object.entries(section));
}

/**
 * The servers that Claude Code has for single folders, but for those of the current folder, which the adapted file has. The
 * same server is often in several folders, so it is not started in one of them unless it needs that.
 */
async function serversOfOtherFolders(
  projects: unknown,
  path: string,
): Promise<readonly (readonly [string, ServerEntry])[]> {
  const folders = Object.entries(isObject(projects) ? projects : {}).filter(([folder]) => !isHere(folder));
  const searches = folders.map(async ([folder, project]) => {
    const { mcpServers } = isObject(project) ? project : {};
    if (!isObject(mcpServers)) return [];
    const problems = new Problems(JSON.stringify({ mcpServers }));
    const parsed = await parseDocument(problems);
    const all = parsed === undefined ? [] : serversIn(adaptDocument(parsed, path, problems).root);
    return all.flatMap(importable(folder, false));
  });
  return (await Promise.all(searches)).flat();
}

/** A server without what only the client needs; nothing for Catenary itself. */
function importable(base: string, isElsewhere: boolean) {
  return ([name, entry]: readonly [string, unknown]): (readonly [string, ServerEntry])[] =>
    isObject(entry) && !isOwnEntry(entry) ? [[name, movedFrom(base, knownKeys(entry), isElsewhere)]] : [];
}

/** Whether it is the current folder or one above it. */
function isHere(folder: string): boolean {
  return !relative(folder, process.cwd()).startsWith("..");
}

/** A copy, since jsonc-parser makes objects without a prototype. */
function valueOf(node: Node | undefined): ServerEntry {
  const value: unknown = node && structuredClone(getNodeValue(node));
  return isObject(value) ? value : {};
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
