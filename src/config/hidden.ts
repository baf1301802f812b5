// What the operator hides from clients: a server, or a tool of a server. It is kept in the config, in the keys that a
// person would write: `disabled` of a server, and `exclude` of its entry. The console and `catenary disable|enable` use
// this one file.

import { isDeepStrictEqual } from "node:util";
import { parse as parseJson, type ParseError } from "jsonc-parser";
import { matchesGlob } from "../core/text.ts";
import { isObject } from "../core/values.ts";
import { CLIENTS, findClientFile, type Client } from "./clients.ts";
import { RENAMED, SECTION_KEYS } from "./dialects.ts";
import { editJson, editStrings, notJson } from "./edit-json.ts";
import type { Config } from "./load.ts";
import { suggest } from "./readers.ts";
import type { UpstreamEntry } from "./upstreams.ts";

/** A server, or one of its tools by the name that it has at the server. */
export interface Hideable {
  readonly server: string;
  readonly tool?: string | undefined;
}

/** Why something cannot be hidden or shown, and what to do. */
export class HidingError extends Error {
  readonly hint: string | undefined;
  /** Whether there is no such server. */
  readonly isNotFound: boolean;

  constructor(message: string, hint?: string, isNotFound = false) {
    super(message);
    this.name = "HidingError";
    this.hint = hint;
    this.isNotFound = isNotFound;
  }
}

type Fields = { readonly [key: string]: unknown };

/** The keys that mean `exclude`, in our files and those of clients. */
const EXCLUDE_KEYS = ["exclude", ...Object.keys(RENAMED).filter((key) => RENAMED[key] === "exclude")];
/** Kinds of entries in which `exclude` has a meaning of its own. */
const OTHER_EXCLUDES = ["programs", "openapi"];

/**
 * The text of a config in which a server or a tool is hidden, or no longer. Comments and everything else stay. Returns the
 * same text if that is so already. `file`: its absolute path, which says which variables are expanded in it; without it,
 * the file may be that of any client. Throws a HidingError.
 */
export function editHidden(text: string, { server, tool }: Hideable, isHidden: boolean, file?: string): string {
  const root = parse(text);
  const { section, entry } = findEntry(root, server);
  const path = [section, server];
  if (tool !== undefined) checkToolName(tool);
  const edited =
    tool === undefined
      ? editServer(text, root, path, entry, isHidden)
      : OTHER_EXCLUDES.some((key) => entry[key] !== undefined)
        ? editFilter(text, path, entry, tool, isHidden)
        : editExclude(text, path, entry, tool, isHidden);
  if (tool !== undefined && isHidden && edited !== text) checkCanBeWritten(tool, file);
  // What cannot be edited without a change of anything else is left to the person.
  const others = (tree: Fields): unknown => ({ ...tree, [section]: { ...(tree[section] as Fields), [server]: null } });
  if (!isDeepStrictEqual(others(parse(edited)), others(root))) {
    throw new HidingError("The form of the config is unusual, so it was not changed", "change it by hand");
  }
  return edited;
}

function parse(text: string): Fields {
  const errors: ParseError[] = [];
  const value: unknown = parseJson(text, errors, { allowTrailingComma: true });
  if (errors.length > 0)
    throw new HidingError(`The config was not changed: ${notJson(text, errors[0]?.offset ?? 0).message}`);
  return isObject(value) ? value : {};
}

function sectionsOf(root: Fields): (readonly [section: string, servers: Fields])[] {
  return SECTION_KEYS.flatMap((section) => {
    const servers = root[section];
    return isObject(servers) ? [[section, servers] as const] : [];
  });
}

function findEntry(root: Fields, server: string): { readonly section: string; readonly entry: Fields } {
  const sections = sectionsOf(root);
  for (const [section, servers] of sections) {
    const entry = Object.hasOwn(servers, server) ? servers[server] : undefined;
    if (isObject(entry)) return { section, entry };
  }
  if (sections.length === 0) {
    const hint =
      "it is in the format of another client: hide it there, or bring the servers into a config of yours with catenary import";
    throw new HidingError(`The config has no servers under ${SECTION_KEYS.join(" or ")}`, hint);
  }
  throw noServer(
    server,
    sections.flatMap(([, servers]) => Object.keys(servers)),
  );
}

function noServer(server: string, names: readonly string[]): HidingError {
  const hint = suggest(server, names) ?? `there are ${names.join(", ")}`;
  return new HidingError(`There is no server ${server}`, hint, true);
}

function isOff(entry: unknown): boolean {
  return isObject(entry) && (entry["disabled"] === true || entry["enabled"] === false || entry["isActive"] === false);
}

function editServer(text: string, root: Fields, path: readonly string[], entry: Fields, isHidden: boolean): string {
  if (isHidden === isOff(entry)) return text;
  if (!isHidden) {
    const keys = ["disabled", "enabled", "isActive"].filter((key) => entry[key] !== undefined);
    return keys.reduce((before, key) => editJson(before, [...path, key], undefined), text);
  }
  const others = sectionsOf(root).flatMap(([section, servers]) =>
    Object.entries(servers).filter(([name]) => section !== path[0] || name !== path[1]),
  );
  if (others.every(([, other]) => isOff(other))) throw lastServer(path[1] ?? "");
  return editJson(text, [...path, "disabled"], true);
}

function lastServer(server: string): HidingError {
  return new HidingError(`${server} is the only server that is not hidden`, "a gateway needs one; stop it instead");
}

/** Names of tools are far shorter, and a config must stay one that can be read. */
const MAX_TOOL_NAME = 1_000;

function checkToolName(tool: string): void {
  if (tool.length > MAX_TOOL_NAME) {
    throw new HidingError(`The name of the tool has more than ${MAX_TOOL_NAME} characters`, "hide it by a rule with *");
  }
  if (tool.includes("*")) {
    throw new HidingError(`${tool} has a *, which stands for any characters in a config`, "write the rule by hand");
  }
}

/** The variables of other clients. Unlike `${`, nothing that is written in their files stands for one of these itself. */
const OTHER_VARIABLES: Readonly<Record<NonNullable<Client["variables"]>, RegExp>> = {
  $VAR: /\$[A-Za-z_]/,
  "{env:VAR}": /\{(?:env:[A-Za-z_]\w*|file:[^{}]+)\}/,
};

/** Throws if no item of a list would have this name when the file is read. */
function checkCanBeWritten(tool: string, file: string | undefined): void {
  if (tool.trim() === "") {
    throw new HidingError("The name of the tool is blank, which a config cannot have", "hide it by a rule with *");
  }
  const clients = file === undefined ? CLIENTS : [findClientFile(file)?.client];
  const client = clients.find((one) => one?.variables !== undefined && OTHER_VARIABLES[one.variables].test(tool));
  if (client === undefined) return;
  throw new HidingError(
    `${tool} would be read as a variable in a file of ${client.title}`,
    "write a rule by hand, with a * in place of the variable",
  );
}

/** A name as it is written in a list. A server chooses the names of its tools, so no variable in one is expanded. */
function writtenName(tool: string): string {
  return tool.replaceAll("${", () => "$${");
}

/** What an item of a list matches. Undefined if it has a variable, whose value is not known here. */
function patternOf(item: string): string | undefined {
  return /(?<!\$)\$\{/.test(item) ? undefined : item.replaceAll("$${", () => "${");
}

/** Whether a list in the text of a config has the tool, by its name or a pattern. */
function isListed(items: readonly string[], tool: string): boolean {
  return items.some((item) => {
    const pattern = patternOf(item);
    return pattern !== undefined && matchesGlob(pattern, tool);
  });
}

/** Throws if a tool cannot be shown without a change of a rule that a person has written. */
function checkRules(items: readonly string[], tool: string): void {
  // Not every `${` begins a variable, so an item that looks the same may be the name.
  const rule = items.find((item) => item !== writtenName(tool) && (item === tool || isListed([item], tool)));
  if (rule === undefined) return;
  throw new HidingError(
    `${tool} is hidden by the rule ${JSON.stringify(rule)}, as others may be`,
    "change the rule in the config by hand",
  );
}

function editExclude(text: string, path: readonly string[], entry: Fields, tool: string, isHidden: boolean): string {
  const key = EXCLUDE_KEYS.find((name) => entry[name] !== undefined) ?? "exclude";
  const names = strings(entry[key]);
  const written = writtenName(tool);
  if (isHidden) return isListed(names, tool) ? text : editStrings(text, [...path, key], { add: written });
  checkRules(names, tool);
  const isOnly = names.length > 0 && names.every((name) => name === written);
  return isOnly ? editJson(text, [...path, key], undefined) : editStrings(text, [...path, key], { remove: written });
}

/** In an entry whose `exclude` means something else, a filter of its own. */
function editFilter(text: string, path: readonly string[], entry: Fields, tool: string, isHidden: boolean): string {
  const written = writtenName(tool);
  const use: readonly unknown[] = Array.isArray(entry["use"]) ? entry["use"] : [];
  const excludedBy = (item: unknown): readonly string[] => {
    const filter = isObject(item) ? item["filter"] : undefined;
    const tools = isObject(filter) ? filter["tools"] : undefined;
    return isObject(tools) ? strings(tools["exclude"]) : [];
  };
  if (isHidden) {
    if (use.some((item) => isListed(excludedBy(item), tool))) return text;
    const at = use.findIndex((item) => excludedBy(item).length > 0);
    const filter = { filter: { tools: { exclude: [written] } } };
    return editJson(
      text,
      [...path, "use"],
      at === -1
        ? [...use, filter]
        : use.with(
            at,
            withExcluded(use[at] as Fields, (names) => [...names, written]),
          ),
    );
  }
  checkRules(use.flatMap(excludedBy), tool);
  const shown = use.flatMap((item) => {
    const names = excludedBy(item);
    if (!names.includes(written)) return [item];
    const isOnly =
      names.every((name) => name === written) && isDeepStrictEqual(item, { filter: { tools: { exclude: names } } });
    return isOnly ? [] : [withExcluded(item as Fields, (all) => all.filter((name) => name !== written))];
  });
  if (isDeepStrictEqual(shown, use)) return text;
  return editJson(text, [...path, "use"], shown.length === 0 ? undefined : shown);
}

function withExcluded(item: Fields, change: (names: readonly string[]) => readonly string[]): Fields {
  const filter = item["filter"] as Fields;
  const tools = filter["tools"] as Fields;
  return { ...item, filter: { ...filter, tools: { ...tools, exclude: change(strings(tools["exclude"])) } } };
}

function isExcluded(names: readonly string[], tool: string): boolean {
  return names.some((name) => matchesGlob(name, tool));
}

function strings(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

/** Whether the entry of a server hides the tool, by `include`, `exclude` or a filter of its own. */
export function entryHides({ use }: Pick<UpstreamEntry, "use">, tool: string): boolean {
  return use.some(({ kind, name, options }) => {
    const tools = kind === "named" && name === "filter" && isObject(options) ? options["tools"] : undefined;
    if (!isObject(tools)) return false;
    const { include, exclude } = tools;
    return (include !== undefined && !isExcluded(strings(include), tool)) || isExcluded(strings(exclude), tool);
  });
}

/** What was hidden without a file, so that it can be shown again. */
export interface HiddenInMemory {
  /** The entries of hidden servers, by name. */
  readonly servers: ReadonlyMap<string, UpstreamEntry>;
  /** The names of hidden tools, by server. */
  readonly tools: ReadonlyMap<string, ReadonlySet<string>>;
}

/** For a gateway without a file: the config in which more is hidden, or less. Throws a HidingError. */
export function hideInConfig(
  config: Config,
  before: HiddenInMemory,
  { server, tool }: Hideable,
  isHidden: boolean,
): { readonly config: Config; readonly hidden: HiddenInMemory } {
  const entry = config.upstreams.get(server) ?? (tool === undefined ? before.servers.get(server) : undefined);
  if (entry === undefined) throw noServer(server, [...config.upstreams.keys(), ...before.servers.keys()]);
  if (tool === undefined) {
    const servers = new Map(before.servers);
    const upstreams = new Map(config.upstreams);
    if (isHidden) {
      if (upstreams.delete(server)) servers.set(server, entry);
      if (upstreams.size === 0) throw lastServer(server);
    } else if (servers.delete(server)) upstreams.set(server, entry);
    const names = new Set(servers.keys());
    const disabled = [...new Set([...config.disabled, ...names])].filter((name) => !upstreams.has(name));
    return { config: { ...config, upstreams, disabled }, hidden: { ...before, servers } };
  }
  checkToolName(tool);
  const names = new Set(before.tools.get(server));
  // Only the filter that this function has added is changed.
  const use = entry.use.filter((item) => names.size === 0 || !isOwnFilter(item, names));
  if (isHidden) names.add(tool);
  else names.delete(tool);
  if (!isHidden && entryHides({ use }, tool)) {
    throw new HidingError(`${tool} is hidden by its entry in the config`, "change the entry");
  }
  const options = { tools: { exclude: [...names] } };
  const added = names.size === 0 ? [] : [{ kind: "named" as const, name: "filter", options, position: entry.position }];
  const upstreams = new Map(config.upstreams);
  upstreams.set(server, { ...entry, use: [...use, ...added] });
  return { config: { ...config, upstreams }, hidden: { ...before, tools: new Map(before.tools).set(server, names) } };
}

function isOwnFilter(item: UpstreamEntry["use"][number], names: ReadonlySet<string>): boolean {
  return item.name === "filter" && isDeepStrictEqual(item.options, { tools: { exclude: [...names] } });
}
