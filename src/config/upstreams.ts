// Reads the upstreams of a config: the entries of `mcpServers` and `servers`, which mean the same. This file has the
// fields that every entry may have; the others belong to the kind of the entry (kinds.ts). Keys of other clients have
// been given our names before (dialects.ts).

import { createLabels, MAX_LABEL_LENGTH } from "../chain/router/labels.ts";
import { SEPARATOR } from "../chain/router/names.ts";
import { UPSTREAM_NAMING, type UpstreamNaming } from "../chain/router/naming.ts";
import { UPSTREAM, type UpstreamOptions } from "../chain/upstream/options.ts";
import { findSpawnProblem } from "../process/spawn-problem.ts";
import { REVISIONS } from "../protocol/revisions/index.ts";
import { documented } from "../core/fields.ts";
import { readBounded } from "../core/files.ts";
import { digest } from "../core/seal.ts";
import type { Secret } from "../core/secrets.ts";
import { defined } from "../core/values.ts";
import { orList } from "../live/languages.ts";
import { LIMITS, LIVE } from "../live/options.ts";
import { MAX_DOCUMENT_BYTES } from "../openapi/document.ts";
import { OPENAPI } from "../openapi/options.ts";
import { PROGRAMS } from "../programs/options.ts";
import { SECTION_KEYS } from "./dialects.ts";
import { MAX_SERVERS, type Position, type Problem } from "./document.ts";
import { command, module, type RequiredProgram, type UpstreamKind, type UpstreamSource, url } from "./kinds.ts";
import { live, sandboxProblems } from "./live.ts";
import { middlewareList, type MiddlewareEntry } from "./middleware.ts";
import * as read from "./readers.ts";
import { openapi, programs } from "./tool-kinds.ts";
import { IGNORED_IN_ENTRIES, type Places, rejectKey, UNSUPPORTED_IN_ENTRIES } from "./unknown-keys.ts";
import { createRedactor } from "./redaction.ts";

/** The kinds of entries, in the order in which hints list them. */
/** The kinds of entries. */
export const KINDS: readonly UpstreamKind[] = [command, url, module, live, programs, openapi];

/** A server in a config. */
export interface UpstreamEntry extends UpstreamSource {
  /** Its key in the config. */
  readonly name: string;
  /** The key of its kind, such as `command`. */
  readonly kind: string;
  /** Equal for entries that make the same upstream. `limits` are those of the config. */
  key(limits: object): Promise<string>;
  /** The options of `upstream()` that it sets. */
  readonly policy: UpstreamPolicy;
  /** How the names of its tools and prompts are shown. */
  readonly naming: UpstreamNaming;
  /** Middleware for this upstream alone. */
  readonly use: readonly MiddlewareEntry[];
  /** Where it is in the config. */
  readonly position: Position;
  /** Values in the entry that came from variables and inputs. */
  readonly secrets: readonly Secret[];
  /** Why it cannot be used: a variable in its entry is not set. */
  readonly missing?: string;
}

const revision = read.oneOf(REVISIONS.map(({ name }) => name));

const { share, timeoutMs, maxTimeoutMs, startTimeoutMs, idleMs, remember, start, restart, maxSessions, inheritEnv } =
  UPSTREAM;

const POLICY = {
  ...read.readersOf({
    ...{ share, maxTimeoutMs, startTimeoutMs, idleMs, remember, start, restart, inheritEnv },
    // These two concern other kinds of entries too.
    timeoutMs: documented(
      `${timeoutMs.description} For live, programs and openapi: milliseconds after which an evaluation, a program or a request is ended. Default: ${LIMITS.timeoutMs.default}.`,
      timeoutMs,
    ),
    maxSessions: documented(`${maxSessions.description} For live: ${LIVE.maxSessions.default}.`, maxSessions),
  }),
  // The schema does not list the revisions, so that a config for a later version is not marked as wrong.
  revision: read
    .reader({ type: "string", pattern: "^\\d{4}-\\d{2}-\\d{2}$|\\$\\{" }, revision)
    .describe(UPSTREAM.revision.description),
} as const satisfies { readonly [Name in keyof UpstreamOptions]?: read.Reader<unknown> };

/** The options of `upstream()` that any entry may set. */
export type UpstreamPolicy = Pick<UpstreamOptions, keyof typeof POLICY>;

export const POLICY_KEYS: readonly (keyof UpstreamPolicy)[] = Object.keys(POLICY) as (keyof UpstreamPolicy)[];

/** Refers to the properties of a server instead of repeating them. */
const defaultSchemas = POLICY_KEYS.map((name) => {
  const $ref = `#/definitions/server/properties/${name}`;
  return [name, { description: `The default of ${name} of a server.`, $ref }];
});

/** Options for all commands and URLs that do not set them. */
export const upstreamDefaults: read.Reader<UpstreamPolicy> = read.reader(
  { type: "object", additionalProperties: false, properties: Object.fromEntries(defaultSchemas) },
  read.objectOf(POLICY, 'an object, such as {"share": "shared"}'),
);

const toolNames = read.arrayOf(read.nonEmptyString, 'an array of tool names, such as ["delete_*"]');

const COMMON = {
  disabled: read.flag.describe("true: ignore this server."),
  // Some clients have this instead of `disabled`.
  enabled: read.flag.describe("false: ignore this server, as with disabled."),
  ...POLICY,
  ...read.readersOf(UPSTREAM_NAMING),
  use: middlewareList.describe("Middleware in front of this server only."),
  include: toolNames.describe(
    `The tools to show; all others are hidden. \`*\` matches any characters. For programs: ${PROGRAMS.include.description} For an API: ${OPENAPI.include.description}`,
  ),
  exclude: toolNames.describe("What to hide and refuse, even if include has it."),
} as const satisfies read.Fields;

/** The fields of entries, of all kinds. */
export const FIELDS: read.Fields = {
  ...KINDS.reduce<read.Fields>((all, { fields }) => ({ ...all, ...fields }), {}),
  ...COMMON,
};

/** The keys of entries, of all kinds. */
export const ENTRY_KEYS: readonly string[] = Object.keys(FIELDS);

/** Keys that are wrong in an entry, and where they belong. */
const PLACES: Places = [
  [["chain", "links", "middleware"], () => 'write middleware for one server in "use"'],
  [
    ["token", "bearer", "apiKey", "api_key"],
    () => 'write it in "headers" of a URL, {"headers": {"Authorization": "Bearer ${TOKEN}"}}, or in "env" of a command',
  ],
  [
    ["listen", "limits", "inputs", "defaults", "instructions"],
    () => 'write it at the top of the file, beside "mcpServers"',
  ],
  [["port", "host"], () => 'an upstream over HTTP has its port in "url"; the gateway\'s own is in "listen" at the top'],
];

/** Other names for our keys that no client uses. */
const OTHER_NAMES: ReadonlyMap<string, string> = new Map([
  ["uri", "url"],
  ["endpoint", "url"],
  ["cmd", "command"],
]);

const KIND_HINT = `add ${orList(KINDS.map(({ key, purpose }) => `"${key}" (${purpose})`))}`;

export interface Upstreams {
  readonly upstreams: ReadonlyMap<string, UpstreamEntry>;
  /** The names of disabled entries; nothing else in them is read. */
  readonly disabled: readonly string[];
}

export function readUpstreams(root: read.Cursor, defaults: UpstreamPolicy): Upstreams {
  const { problems } = root.context;
  const errorsBefore = problems.errors;
  const entries = new Map<string, read.Cursor>();
  for (const section of root.members().filter(({ name }) => SECTION_KEYS.includes(name))) {
    for (const entry of entriesOf(section)) if (isNewName(entry, entries)) entries.set(entry.name, entry);
  }
  const enabled = [...entries.values()].filter((entry) => !isDisabled(entry));
  const read = enabled.flatMap((entry) => problems.within(entry.name, () => readUpstream(entry, defaults)) ?? []);
  const upstreams = new Map(read.map((upstream) => [upstream.name, upstream]));
  warnOfLabels(enabled, upstreams);
  if (enabled.length === 0 && problems.errors === errorsBefore) rejectEmpty(root, entries.size > 0);
  return { upstreams, disabled: [...entries.keys()].filter((name) => !enabled.some((entry) => entry.name === name)) };
}

function entriesOf(section: read.Cursor): readonly read.Cursor[] {
  if (section.kind !== "object") read.wrongType(section, 'an object of servers by name, such as {"notes": {...}}');
  const entries = section.members();
  if (entries.length <= MAX_SERVERS) return entries;
  const hint = "split the config: a gateway may be a server of another one";
  section.errorAtKey(`${entries.length} servers; the limit is ${MAX_SERVERS}`, hint);
  return [];
}

/** Reports an empty or duplicate name. */
function isNewName(entry: read.Cursor, seen: ReadonlyMap<string, read.Cursor>): boolean {
  const { problems } = entry.context;
  if (entry.name.trim() === "") {
    const hint = "give it a name: errors and tool names refer to it";
    problems.error(entry.keyOffset, "The name of a server is empty", hint);
    return false;
  }
  const first = seen.get(entry.name);
  if (first === undefined) return true;
  const { line } = problems.position(first.keyOffset);
  entry.errorAtKey(`${first.path} on line ${line} has the same name`, "rename or remove one of them");
  return false;
}

function isDisabled(entry: read.Cursor): boolean {
  return entry.get("disabled")?.value === true || entry.get("enabled")?.value === false;
}

function readUpstream(cursor: read.Cursor, defaults: UpstreamPolicy): UpstreamEntry | undefined {
  if (cursor.kind !== "object") return read.wrongType(cursor, "an object", KIND_HINT);
  const kind = findKind(cursor);
  if (kind === undefined) {
    read.readFields(cursor, COMMON, () => undefined);
    return undefined;
  }
  const fields = { ...COMMON, ...kind.fields };
  const values = read.readFields(cursor, fields, (unknown, known) => onUnknown(unknown, known, kind));
  const isOwn = (key: string): boolean => Object.hasOwn(kind.fields, key);
  const source = kind.read(Object.fromEntries(Object.entries(values).filter(([key]) => isOwn(key))), cursor);
  if (source === undefined) return undefined;
  const entryPolicy = defined(Object.fromEntries(POLICY_KEYS.map((key) => [key, values[key]]))) as UpstreamPolicy;
  const policy = kind.isConnected === true ? { ...defaults, ...entryPolicy } : entryPolicy;
  for (const option of kind.plural === undefined ? [] : POLICY_KEYS.filter((key) => !isOwn(key))) {
    cursor.get(option)?.warnAtKey("ignored", `${kind.plural} do not have this option`);
  }
  const ownMembers = cursor.members().filter(({ name }) => isOwn(name));
  const secrets = ownMembers.flatMap((member) => read.scanStrings(member).secrets);
  const use = [...(values.use ?? []), ...(isOwn("include") ? [] : toolFilter(cursor, values))];
  const naming: UpstreamNaming = defined({ names: values.names, prefix: values.prefix });
  return {
    ...source,
    name: cursor.name,
    kind: kind.key,
    key: async (limits) => {
      const { settings, files = [] } = source;
      const contents = await Promise.all(files.map(digestFile));
      return JSON.stringify([kind.key, settings, contents, ...(kind.isConnected === true ? [policy, limits] : [])]);
    },
    policy,
    naming,
    use,
    secrets,
    position: cursor.position,
  };
}

async function digestFile(path: string): Promise<string | undefined> {
  const content = await readBounded(path, MAX_DOCUMENT_BYTES).catch(() => undefined);
  return content && digest(content.toString());
}

/** The filter for the tools that the entry includes or excludes. It is the innermost, so it sees the server's own names. */
function toolFilter(
  cursor: read.Cursor,
  { include, exclude }: read.FieldValues<Pick<typeof COMMON, "include" | "exclude">>,
): MiddlewareEntry[] {
  if (include === undefined && exclude === undefined) return [];
  const options = { tools: defined({ include, exclude }) };
  return [{ kind: "named", name: "filter", options, position: cursor.position }];
}

function onUnknown(unknown: read.Cursor, known: readonly string[], kind: UpstreamKind): void {
  const { name: key } = unknown;
  const other = KINDS.find(({ fields }) => Object.hasOwn(fields, key));
  const unsupported = UNSUPPORTED_IN_ENTRIES.get(key);
  // In the file of another client, its own meaning of a key counts.
  const isTheirs = unsupported !== undefined && unknown.context.isForeign;
  const misplaced = kind.misplaced?.[key];
  if (misplaced !== undefined) unknown.errorAtKey("not a key here", misplaced);
  else if (other !== undefined && !isTheirs)
    unknown.warnAtKey("ignored", `it belongs to entries with "${other.key}", not "${kind.key}"`);
  else if (unsupported !== undefined) unknown.warnAtKey("ignored", unsupported);
  else rejectKey(unknown, known, PLACES, IGNORED_IN_ENTRIES, "use");
}

/** Finds the kind of an entry by its key. Reports an entry that has no such key, or several. */
function findKind(cursor: read.Cursor): UpstreamKind | undefined {
  const [kind, other] = KINDS.filter(({ key }) => cursor.get(key) !== undefined);
  const { problems } = cursor.context;
  if (kind !== undefined && other === undefined) return kind;
  if (kind !== undefined && other !== undefined) {
    const second = cursor.get(other.key) ?? cursor;
    problems.error(
      second.keyOffset,
      `${cursor.path}: has both "${kind.key}" and "${other.key}"`,
      other.conflicts?.[kind.key] ?? "keep one of them",
    );
    return undefined;
  }
  const keys = KINDS.map(({ key }) => key);
  const meant = cursor.members().flatMap(({ name, keyOffset: offset }) => {
    const near = OTHER_NAMES.get(name) ?? read.nearestKey(name, keys);
    return near === undefined ? [] : [{ name, offset, near }];
  })[0];
  const listed = keys.map((key) => `"${key}"`).join(", ");
  problems.error(
    meant?.offset ?? cursor.keyOffset,
    `${cursor.path}: expected one of ${listed}`,
    meant === undefined ? KIND_HINT : `did you mean ${meant.near} instead of ${meant.name}?`,
  );
  return undefined;
}

/** Warns about names that must be changed to be used as a prefix of tool names. Two equal prefixes are an error. */
function warnOfLabels(entries: readonly read.Cursor[], upstreams: Upstreams["upstreams"]): void {
  const names = entries.map(({ name }) => name);
  const prefixOf = (name: string): string | undefined => upstreams.get(name)?.naming.prefix;
  const labels = createLabels(names, prefixOf);
  for (const [index, cursor] of entries.entries()) {
    const { name } = cursor;
    const { name: label = name } = labels[index] ?? {};
    const prefix = prefixOf(name);
    const first = names.find((other) => prefix !== undefined && prefixOf(other) === prefix);
    if (first !== undefined && first !== name) {
      cursor.get("prefix")?.error(`${first} has the same prefix`, "choose another");
    }
    if (prefix !== undefined || label === name) continue;
    cursor.warnAtKey(
      `where a prefix is needed, its tools are called ${label}${SEPARATOR}TOOL`,
      `a name of up to ${MAX_LABEL_LENGTH} letters, digits, _ and - is used unchanged; or write "prefix"`,
    );
  }
}

function rejectEmpty(root: read.Cursor, areDisabled: boolean): void {
  const cursor = SECTION_KEYS.map((section) => root.get(section)).find((section) => section !== undefined);
  const misspelt = root
    .members()
    .find(({ name }) => !SECTION_KEYS.includes(name) && read.nearestKey(name, SECTION_KEYS));
  const hint = areDisabled
    ? "remove `disabled` from one of them"
    : misspelt === undefined
      ? (root.context.emptyHint ?? 'write {"mcpServers": {"notes": {"command": "npx", "args": ["-y", "notes-mcp"]}}}')
      : `did you mean ${read.nearestKey(misspelt.name, SECTION_KEYS)} instead of ${misspelt.name}?`;
  const message = areDisabled ? "All servers are disabled" : "The config has no servers";
  root.context.problems.error(cursor?.keyOffset ?? root.offset, message, hint);
}

/** Marks the servers that have no value for a variable. Their problems become warnings, since the others can be used. */
export function markMissing(
  upstreams: Upstreams["upstreams"],
  problems: readonly Problem[],
): Pick<Upstreams, "upstreams"> & { readonly warnings: readonly Problem[] } {
  const reasons = new Map<string, string>();
  const warnings = problems.map((problem): Problem => {
    const { server, ...rest } = problem;
    if (server === undefined) return problem;
    const { message, hint } = rest;
    const before = reasons.get(server);
    const reason = hint === undefined ? message : `${message}: ${hint}`;
    reasons.set(server, before === undefined ? reason : `${before}; ${reason}`);
    return { ...rest, severity: "warning", message: `${message}, so the server ${server} does not run` };
  });
  const marked = [...upstreams].map(([name, entry]): [string, UpstreamEntry] => {
    const missing = reasons.get(name);
    if (missing === undefined) return [name, entry];
    return [name, { ...entry, missing, resolve: () => Promise.reject(new Error(missing)) }];
  });
  return { upstreams: new Map(marked), warnings };
}

/** What an entry needs on this machine. */
export type Requirements = Pick<UpstreamEntry, "programs" | "sandbox" | "warning" | "secrets">;

/** Returns only warnings: a program or a sandbox that is missing now may exist when the config is used. */
export async function findMissingPrograms(upstreams: readonly Requirements[]): Promise<Problem[]> {
  const required = upstreams.flatMap(({ programs = [], secrets }) => programs.map((program) => ({ program, secrets })));
  const problems = await Promise.all(required.map(({ program, secrets }) => checkProgram(program, secrets)));
  const sandboxes = upstreams.flatMap(({ sandbox = [] }) => sandbox);
  return [
    ...[...upstreams.map(({ warning }) => warning), ...problems].filter((problem) => problem !== undefined),
    ...(await sandboxProblems(sandboxes, "warning")),
  ];
}

async function checkProgram(program: RequiredProgram, secrets: readonly Secret[]): Promise<Problem | undefined> {
  const spawnProblem = await findSpawnProblem(program.command);
  if (spawnProblem === undefined) return undefined;
  const hide = createRedactor(secrets);
  const what = hide(spawnProblem.problem);
  const message = `${what.charAt(0).toUpperCase()}${what.slice(1)}`;
  const { position } = program;
  const hint = program.hint === undefined ? spawnProblem.hint?.text : (spawnProblem.fix ?? program.hint);
  return { ...position, severity: "warning", message, ...(hint !== undefined && { hint: hide(hint) }) };
}
