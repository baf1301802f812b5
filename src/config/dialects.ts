// Reads the files of other clients as they are. This file turns the parsed tree of such a file into one of ours: it finds
// the servers, and gives their keys our names. Nodes keep their offsets, and keys the name that is written, so that
// problems refer to the text of the file. clients.ts describes the clients.

import { dirname, resolve } from "node:path";
import { defined } from "../core/values.ts";
import { CLIENTS, findClientFile, type Client } from "./clients.ts";
import { type Node, makeProperty, membersOf, toNode, type KeyNode, type Member, type Problems } from "./document.ts";

export interface Adapted {
  /** In our format. A client's own settings are left out. */
  readonly root: Node;
  /** The file is a client's own: unknown keys may be new keys of that client. */
  readonly isForeign: boolean;
  /** What to do if the file has no servers. */
  readonly emptyHint?: string;
}

interface Section {
  /** The path of the servers in the file. */
  readonly label: string;
  readonly servers: Node;
  readonly client?: Client | undefined;
  /** The folder in which the client starts the servers. */
  readonly folder?: string;
  /** Names of servers that are switched off elsewhere in the file. */
  readonly disabled?: ((name: string) => boolean) | undefined;
}

/** The keys of our own servers; the second is that of VS Code. */
export const SECTION_KEYS: readonly string[] = ["mcpServers", "servers"];

/** Where other clients keep their servers. */
const FOREIGN_SECTIONS: readonly (readonly [client: string, ...keys: string[]])[] = [
  ["zed", "context_servers"],
  ["amp", "amp.mcpServers"],
  ["codex", "mcp_servers"],
  ["vscode", "mcp", "servers"],
  ["vscode", "mcp.servers"],
  ["opencode", "mcp"],
];

/** `path` is absolute. */
export function adaptDocument(root: Node, path: string, problems: Problems): Adapted {
  if (root.type !== "object") return { root, isForeign: false };
  const { client, file } = findClientFile(path) ?? {};
  const projects = find(root, "projects");
  const hasProjects = projects !== undefined && membersOf(projects).some(({ value }) => find(value, "mcpServers"));
  const isSettings = file?.isSettings === true || hasProjects;
  const switches = serverSwitches(root);
  const rootSections = SECTION_KEYS.flatMap((label): Section[] => {
    const servers = find(root, label);
    return servers === undefined ? [] : [{ label, servers, client, disabled: switches }];
  });
  if (rootSections.length > 0 && !isSettings) {
    const rest = membersOf(root).filter(({ key }) => !SECTION_KEYS.includes(key) && !(key === "mcp" && switches));
    const children = [
      ...rootSections.map((section) => adaptSection(section, root, problems)),
      ...rest.map(({ property }) => property),
    ];
    return { root: { ...root, children }, isForeign: client !== undefined };
  }
  const foreign = FOREIGN_SECTIONS.flatMap(([name, ...keys]): Section[] => {
    const servers = find(root, ...keys);
    return servers?.type === "object" ? [{ label: keys.join("."), servers, client: ownerOf(name, root, servers) }] : [];
  });
  // `mcp` has the servers themselves, or they are in `mcp.servers`.
  const nested = foreign.some(({ label }) => label === "mcp.servers");
  const local = projects === undefined ? [] : projectSections(projects);
  const sections = [
    ...local,
    ...rootSections,
    ...foreign.filter(({ label }) => !(label === "mcp" && (nested || rootSections.length > 0))),
  ];
  if (sections.length === 0 && !isSettings) return { root, isForeign: client !== undefined };
  const inputs = membersOf(root)
    .concat(membersOf(find(root, "mcp")))
    .find(({ key }) => key === "inputs");
  const adapted = withoutRepeated(sections).map((section) => adaptSection(section, root, problems));
  const children = [...adapted, ...(inputs === undefined ? [] : [inputs.property])];
  return { root: { ...root, children }, isForeign: true, ...(hasProjects && { emptyHint: projectsHint(projects) }) };
}

/** The client whose servers these are: VS Code and newer versions of opencode use the same key. */
function ownerOf(name: string, root: Node, servers: Node): Client | undefined {
  const isOpencode =
    String(find(root, "$schema")?.value).includes("opencode") ||
    membersOf(servers).some(({ value }) => find(value, "command")?.type === "array");
  return CLIENTS.find((client) => client.name === (isOpencode ? "opencode" : name));
}

/** The servers of Claude Code for the current folder, or the nearest folder above it. */
function projectSections(projects: Node): Section[] {
  const folders = new Map(membersOf(projects).map(({ key, value }) => [resolve(key), value]));
  for (let folder = process.cwd(); ; folder = dirname(folder)) {
    const project = folders.get(folder);
    const servers = find(project, "mcpServers");
    if (servers !== undefined) {
      const off = new Set(stringsIn(find(project, "disabledMcpServers")));
      const client = CLIENTS.find(({ name }) => name === "claude-code");
      const label = `projects[${JSON.stringify(folder)}].mcpServers`;
      return [{ label, servers, client, folder, disabled: (name) => off.has(name) }];
    }
    if (dirname(folder) === folder) return [];
  }
}

function projectsHint(projects: Node): string {
  const folders = membersOf(projects).filter(({ value }) => membersOf(find(value, "mcpServers")).length > 0);
  const listed = folders.map(({ key }) => key).slice(0, 5);
  return `it has servers for other folders; start in one of them: ${listed.join(", ")}`;
}

/** Gemini's `mcp.allowed` and `mcp.excluded`: whether a server is switched off. Undefined if there are no such lists. */
function serverSwitches(root: Node): ((name: string) => boolean) | undefined {
  const [allowed, excluded] = [find(root, "mcp", "allowed"), find(root, "mcp", "excluded")];
  if (allowed?.type !== "array" && excluded?.type !== "array") return undefined;
  const [only, not] = [stringsIn(allowed), stringsIn(excluded)];
  return (name) => (allowed !== undefined && !only.includes(name)) || not.includes(name);
}

/** Leaves out a server that an earlier section has too. */
function withoutRepeated(sections: readonly Section[]): Section[] {
  const seen = new Set<string>();
  return sections.map((section) => {
    const children = membersOf(section.servers).filter(({ key }) => !seen.has(key));
    for (const { key } of children) seen.add(key);
    return { ...section, servers: { ...section.servers, children: children.map(({ property }) => property) } };
  });
}

function adaptSection(section: Section, root: Node, problems: Problems): Node {
  const { servers, label, client } = section;
  const name = SECTION_KEYS.includes(label) ? label : "mcpServers";
  const property = servers.parent ?? servers;
  // A value of another type is reported by its reader.
  if (servers.type !== "object") return makeProperty(property, name, servers, label);
  const switchedOff = client?.name === "opencode" ? membersOf(find(root, "tools")) : [];
  const patterns = switchedOff.flatMap(({ key, value }) => (value.value === false ? [key] : []));
  const children = membersOf(servers).flatMap(({ key, property: member, value }) => {
    const hidden = patterns.flatMap((pattern) => withoutServer(pattern, `${key.replaceAll(/[^\w-]/g, "_")}_`) ?? []);
    const entry = { node: value, label: `${label}.${key}`, client, problems };
    const adapted = adaptEntry(entry, {
      ...(section.disabled?.(key) === true && { disabled: true }),
      ...(find(value, "command") && !find(value, "cwd") && defined({ cwd: section.folder })),
      ...(hidden.length > 0 && !find(value, "exclude") && { exclude: hidden }),
    });
    return adapted === undefined ? [] : [makeProperty(member, key, adapted)];
  });
  return makeProperty(property, name, { ...servers, children }, label);
}

/** The pattern for the tools of one server, of a pattern for names with the server in front. */
function withoutServer(pattern: string, prefix: string): string | undefined {
  const star = pattern.indexOf("*");
  const fixed = star < 0 ? pattern : pattern.slice(0, star);
  if (fixed.startsWith(prefix)) return pattern.slice(prefix.length);
  return star >= 0 && prefix.startsWith(fixed) ? pattern.slice(star) : undefined;
}

/** Keys of other clients that mean the same as one of ours. */
export const RENAMED: Readonly<Record<string, string>> = {
  httpUrl: "url",
  serverUrl: "url",
  http_headers: "headers",
  environment: "env",
  env_vars: "inheritEnv",
  isActive: "enabled",
  includeTools: "include",
  allowedTools: "include",
  enabledTools: "include",
  enabled_tools: "include",
  excludeTools: "exclude",
  disabledTools: "exclude",
  disabled_tools: "exclude",
  startup_timeout_ms: "startTimeoutMs",
};

/** An entry of a client. */
interface ForeignEntry {
  readonly node: Node;
  /** Its path in the file. */
  readonly label: string;
  readonly client: Client | undefined;
  readonly problems: Problems;
}

/** Keys of other clients that have a meaning of their own, and the properties that they become. */
const CONVERTED: Readonly<Record<string, (member: Member, entry: ForeignEntry) => Node[]>> = {
  startup_timeout_sec: ({ key, property, value }) => [makeProperty(property, "startTimeoutMs", inMs(value), key)],
  tool_timeout_sec: ({ key, property, value }) => [makeProperty(property, "timeoutMs", inMs(value), key)],
  timeout: convertTimeout,
  // A list of tools, as in Copilot; Codex has an object here, which says how tools are approved.
  tools: ({ key, property, value }) => (value.type === "array" ? [makeProperty(property, "include", value, key)] : []),
};

/** Keys of Codex that become headers. */
const HEADERS: ReadonlyMap<string, (value: Node) => Node[]> = new Map([
  ["bearer_token", (value: Node) => [makeHeader(value, "Authorization", `Bearer ${String(value.value)}`)]],
  ["bearer_token_env_var", (value) => [makeHeader(value, "Authorization", `Bearer \${${String(value.value)}}`)]],
  [
    "env_http_headers",
    (headers) => membersOf(headers).map(({ key, value }) => makeHeader(value, key, `\${${String(value.value)}}`)),
  ],
]);

function makeHeader(like: Node, name: string, value: string): Node {
  return makeProperty(like, name, toNode(value, like.offset));
}

/** The keys of other clients that are obeyed in another way than by a new name. */
export const CONVERTED_KEYS: readonly string[] = [...Object.keys(CONVERTED), ...HEADERS.keys()];

/** Gives the keys of one entry our names, and adds some. Returns undefined for an entry that only its client can start. */
function adaptEntry(entry: ForeignEntry, added: Readonly<Record<string, unknown>>): Node | undefined {
  const { node, label, client, problems } = entry;
  if (node.type !== "object") return node;
  if (client?.name === "zed" && !find(node, "command") && !find(node, "url")) {
    const hint = "an extension of Zed starts it; write its command here to use it";
    problems.warn((node.parent ?? node).offset, `${label}: ignored`, hint);
    return undefined;
  }
  // A server that is switched off elsewhere stays off, whatever its entry says.
  const members = membersOf(node).filter(({ key }) => key !== "disabled" || added["disabled"] === undefined);
  const converted = members.flatMap((member) => convertMember(member, entry));
  const more = Object.entries(added).map(([key, value]) => makeProperty(node, key, toNode(value, node.offset)));
  const properties = new Map<string, Node>();
  for (const property of [...converted, ...more]) {
    const other = properties.get(keyOf(property));
    if (other === undefined) properties.set(keyOf(property), property);
    else {
      const message = `${label}: has both "${writtenKey(other)}" and "${writtenKey(property)}"`;
      problems.error(property.offset, message, "keep one of them");
    }
  }
  const adapted = { ...node, children: withHeaders([...properties.values()], node) };
  const syntax = client?.variables;
  return syntax === undefined ? adapted : mapStrings(adapted, (text) => rewriteVariables(text, syntax));
}

function convertMember(member: Member, entry: ForeignEntry): Node[] {
  const { key, property, value } = member;
  if (key === "command") return convertCommand(property, value);
  // Gemini's has arguments after the names.
  const names = key === "includeTools" ? withoutArguments(value) : namesOnly(value);
  if (Object.hasOwn(RENAMED, key)) return [makeProperty(property, RENAMED[key] ?? key, names, key)];
  return CONVERTED_KEYS.includes(key) ? (CONVERTED[key]?.(member, entry) ?? []) : [property];
}

/** A `timeout` below this is in seconds if the client is unknown: no client waits less than a second or over 16 minutes. */
const MIN_MILLISECONDS = 1_000;

function convertTimeout({ property, value }: Member, { node, label, client, problems }: ForeignEntry): Node[] {
  if (find(node, "timeoutMs") !== undefined || value.type === "object") return [];
  const timeout = Number(value.value);
  const unit = client?.timeoutUnit ?? (timeout < MIN_MILLISECONDS ? "seconds" : "milliseconds");
  const converted = unit === "seconds" ? inMs(value) : value;
  if (client?.timeoutUnit === undefined && value.type === "number") {
    const hint = `some clients write seconds here and some milliseconds; write "timeoutMs": ${String(converted.value)}`;
    problems.warn(property.offset, `${label}.timeout: read as ${timeout} ${unit}`, hint);
  }
  return [makeProperty(property, "timeoutMs", converted, "timeout")];
}

/** Adds the headers that an entry has under other keys. */
function withHeaders(properties: Node[], entry: Node): Node[] {
  const added = membersOf(entry).flatMap(({ key, value }) => HEADERS.get(key)?.(value) ?? []);
  if (added.length === 0) return properties;
  const headers = properties.find((property) => keyOf(property) === "headers");
  const [, value] = headers?.children ?? [];
  const names = new Set(added.map(keyOf));
  const children = [...(value?.children ?? []).filter((property) => !names.has(keyOf(property))), ...added];
  const merged: Node = { ...(value ?? entry), type: "object", children };
  return [...properties.filter((property) => property !== headers), makeProperty(headers ?? entry, "headers", merged)];
}

/** Some clients write the program and its arguments as an array, or as an object with `path`. */
function convertCommand(property: Node, value: Node): Node[] {
  if (value.type === "array") {
    const [program, ...args] = value.children ?? [];
    if (program === undefined) return [property];
    return [
      makeProperty(property, "command", program),
      makeProperty(property, "args", { ...value, children: args }, "command"),
    ];
  }
  if (value.type !== "object") return [property];
  return membersOf(value).map(({ key, property: part, value: inner }) =>
    makeProperty(part, key === "path" ? "command" : key, inner, `command.${key}`),
  );
}

/** Codex also writes objects with a `name` in a list of variables. */
function namesOnly(value: Node): Node {
  if (value.type !== "array") return value;
  return { ...value, children: (value.children ?? []).map((item) => find(item, "name") ?? item) };
}

/** Gemini also writes a tool with arguments, `tool(...)`; the name alone counts. */
function withoutArguments(value: Node): Node {
  return mapStrings(value, (text) => text.replace(/\(.*$/s, ""));
}

function rewriteVariables(text: string, syntax: NonNullable<Client["variables"]>): string {
  return syntax === "$VAR"
    ? text.replaceAll(/\$([A-Za-z_]\w*)/g, "${$1}")
    : text.replaceAll(/\{env:([A-Za-z_]\w*)\}/g, "${$1:-}").replaceAll(/\{file:([^{}]+)\}/g, "${file:$1}");
}

function find(node: Node | undefined, ...keys: readonly string[]): Node | undefined {
  return keys.reduce<Node | undefined>((at, key) => membersOf(at).find((member) => member.key === key)?.value, node);
}

function stringsIn(node: Node | undefined): string[] {
  return (node?.type === "array" ? (node.children ?? []) : []).map(({ value }) => String(value));
}

function keyOf(property: Node): string {
  return String(property.children?.[0]?.value);
}

function writtenKey(property: Node): string {
  const key: KeyNode | undefined = property.children?.[0];
  return key?.written ?? keyOf(property);
}

/** A number of seconds in milliseconds. */
function inMs(value: Node): Node {
  return value.type === "number" ? { ...value, value: Number(value.value) * 1_000 } : value;
}

function mapStrings(node: Node, change: (text: string) => string): Node {
  const { type, children = [] } = node;
  if (type === "string") return { ...node, value: change(String(node.value)) };
  const isKey = (at: number): boolean => type === "property" && at === 0;
  return { ...node, children: children.map((child, at) => (isKey(at) ? child : mapStrings(child, change))) };
}
