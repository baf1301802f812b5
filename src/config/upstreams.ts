// Reads the upstreams of a config: the entries of `mcpServers` and `servers`, which mean the same. This file has the
// fields that every entry may have; the others belong to the kind of the entry (kinds.ts, live.ts). Keys that only
// other clients use are ignored.

import { createLabels } from "../chain/router/names.ts";
import { SHARES, type UpstreamOptions } from "../chain/upstream/options.ts";
import { REVISIONS } from "../protocol/revisions/index.ts";
import {
  type Cursor,
  flag,
  milliseconds,
  nearestKey,
  objectOf,
  oneOf,
  positiveInteger,
  readFields,
  scanStrings,
  warnIfMisspelt,
  warnIfSeconds,
  wrongType,
  type Fields,
  type Reader,
} from "./readers.ts";
import type { Member, Position } from "./document.ts";
import { command, module, url, type UpstreamKind, type UpstreamSource } from "./kinds.ts";
import { live } from "./live.ts";
import { middlewareList, type MiddlewareEntry } from "./middleware.ts";
import type { Secret } from "./variables.ts";

/** The kinds of entries, in the order in which hints list them. */
export const KINDS: readonly UpstreamKind[] = [command, url, module, live];

/** The options of `upstream()` that any entry may set. */
export type UpstreamPolicy = Pick<
  UpstreamOptions,
  | "share"
  | "revision"
  | "timeoutMs"
  | "maxTimeoutMs"
  | "startTimeoutMs"
  | "idleMs"
  | "maxSessions"
  | "remember"
  | "restart"
>;

export interface UpstreamEntry extends UpstreamSource {
  readonly name: string;
  readonly policy: UpstreamPolicy;
  /** Middleware for this upstream alone. */
  readonly use: readonly MiddlewareEntry[];
  readonly position: Position;
  /** Values in the entry that came from variables and inputs. */
  readonly secrets: readonly Secret[];
}

const SECTIONS = ["mcpServers", "servers"] as const;

const RESTART = {
  maxFailures: positiveInteger,
  windowMs: milliseconds,
  firstMs: milliseconds,
  maxMs: milliseconds,
} as const satisfies Fields;
export const RESTART_FIELDS: Fields = RESTART;

const callTimeout: Reader<number> = (cursor) => {
  const given = milliseconds(cursor);
  warnIfSeconds(cursor, given);
  return given;
};

const POLICY = {
  share: oneOf(SHARES),
  revision: oneOf(REVISIONS.map(({ name }) => name)),
  timeoutMs: callTimeout,
  maxTimeoutMs: milliseconds,
  startTimeoutMs: milliseconds,
  idleMs: milliseconds,
  maxSessions: positiveInteger,
  remember: flag,
  restart: objectOf(RESTART, "an object, such as {maxFailures: 5, windowMs: 180000}"),
} as const satisfies Record<keyof UpstreamPolicy, Reader<unknown>>;

export const POLICY_FIELDS: Fields = POLICY;

/** Options for all commands and URLs that do not set them. */
export const upstreamDefaults: Reader<UpstreamPolicy> = objectOf(POLICY, 'an object, such as {"share": "shared"}');

const POLICY_KEYS = Object.keys(POLICY) as readonly (keyof UpstreamPolicy)[];

const COMMON = {
  disabled: flag,
  /** Some clients have this instead of `disabled`. */
  enabled: flag,
  ...POLICY,
  use: middlewareList,
} as const satisfies Fields;

export const COMMON_FIELDS: Fields = COMMON;

/** Keys of other clients, and our keys with the same meaning. */
const FOREIGN_KEYS: ReadonlyMap<string, string> = new Map([
  ["httpUrl", "url"],
  ["serverUrl", "url"],
  ["uri", "url"],
  ["cmd", "command"],
]);

const KIND_HINT = `add ${KINDS.map(({ key, purpose }) => `"${key}" (${purpose})`)
  .join(", ")
  .replace(/, (?=[^,]*$)/, " or ")}`;

export interface Upstreams {
  readonly upstreams: ReadonlyMap<string, UpstreamEntry>;
  /** The names of disabled entries; nothing else in them is read. */
  readonly disabled: readonly string[];
}

export function readUpstreams(root: Cursor, defaults: UpstreamPolicy): Upstreams {
  const upstreams = new Map<string, UpstreamEntry>();
  const disabled: string[] = [];
  const seen = new Map<string, Cursor>();
  const enabled = new Map<string, Cursor>();
  const errorsBefore = root.context.problems.errors;
  for (const section of SECTIONS) {
    const cursor = root.get(section);
    if (cursor === undefined) continue;
    if (cursor.value.kind !== "object") wrongType(cursor, 'an object of servers by name, such as {"notes": {...}}');
    for (const member of cursor.members()) {
      const entry = cursor.member(member);
      if (!checkName(entry, member, seen)) continue;
      seen.set(member.name, entry);
      if (isDisabled(entry)) disabled.push(member.name);
      else {
        enabled.set(member.name, entry);
        const upstream = readUpstream(entry, member.name, defaults);
        if (upstream !== undefined) upstreams.set(member.name, upstream);
      }
    }
  }
  warnOfLabels(enabled);
  if (enabled.size === 0 && root.context.problems.errors === errorsBefore) rejectEmpty(root, disabled.length > 0);
  return { upstreams, disabled };
}

/** Reports an empty or duplicate name. */
function checkName(entry: Cursor, { name, offset }: Member, seen: ReadonlyMap<string, Cursor>): boolean {
  const { problems } = entry.context;
  if (name.trim() === "") {
    problems.error(offset, "The name of a server is empty", "give it a name: errors and tool names refer to it");
    return false;
  }
  const first = seen.get(name);
  if (first === undefined) return true;
  const { line } = problems.position(first.keyOffset);
  entry.errorAtKey(`${first.path} on line ${line} has the same name`, "rename or remove one of them");
  return false;
}

function isDisabled(entry: Cursor): boolean {
  const hasValue = (name: string, expected: boolean): boolean => {
    const value = entry.get(name)?.value;
    return value?.kind === "boolean" && value.scalar === expected;
  };
  return hasValue("disabled", true) || hasValue("enabled", false);
}

function readUpstream(cursor: Cursor, name: string, defaults: UpstreamPolicy): UpstreamEntry | undefined {
  if (cursor.value.kind !== "object") return wrongType(cursor, "an object", KIND_HINT);
  const kind = findKind(cursor);
  if (kind === undefined) {
    readFields(cursor, COMMON, () => undefined);
    return undefined;
  }
  const fields = { ...COMMON, ...kind.fields };
  const values = readFields(cursor, fields, (unknown, key, known) => warnOfUnknown(unknown, key, known, kind));
  const isOwn = (key: string): boolean => Object.hasOwn(kind.fields, key);
  const source = kind.read(Object.fromEntries(Object.entries(values).filter(([key]) => isOwn(key))), cursor);
  if (source === undefined) return undefined;
  const given = Object.fromEntries(
    POLICY_KEYS.flatMap((key) => (values[key] === undefined ? [] : [[key, values[key]]])),
  ) as UpstreamPolicy;
  const policy = kind === command || kind === url ? { ...defaults, ...given } : given;
  const own = cursor.members().filter(({ name: key }) => isOwn(key));
  const secrets = own.flatMap((member) => scanStrings(cursor.member(member)).secrets);
  return { ...source, name, policy, use: values.use ?? [], secrets, position: cursor.position };
}

function warnOfUnknown(unknown: Cursor, key: string, known: readonly string[], kind: UpstreamKind): void {
  if (key === "timeout") {
    unknown.warnAtKey("ignored", "write timeoutMs, in milliseconds (some clients write seconds in timeout)");
    return;
  }
  const other = KINDS.find(({ fields }) => Object.hasOwn(fields, key));
  if (other === undefined) warnIfMisspelt(unknown, key, known);
  else unknown.warnAtKey("ignored", `it belongs to entries with "${other.key}", not "${kind.key}"`);
}

/** Finds the kind of an entry by its key. Reports an entry that has no such key, or several. */
function findKind(cursor: Cursor): UpstreamKind | undefined {
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
  const meant = cursor.members().flatMap(({ name, offset }) => {
    const near = FOREIGN_KEYS.get(name) ?? nearestKey(name, keys);
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

/** Warns about names that must be changed to be used as a prefix of tool names. */
function warnOfLabels(entries: ReadonlyMap<string, Cursor>): void {
  const names = [...entries.keys()];
  createLabels(names).forEach(({ name: label }, index) => {
    const name = names[index] ?? "";
    const cursor = entries.get(name);
    if (label === name || cursor === undefined) return;
    cursor.warnAtKey(
      `where a prefix is needed, its tools are called ${label}.TOOL`,
      "a name of up to 32 letters, digits, _ and - is used unchanged",
    );
  });
}

function rejectEmpty(root: Cursor, areDisabled: boolean): void {
  const cursor = SECTIONS.map((section) => root.get(section)).find((one) => one !== undefined);
  const sections: readonly string[] = SECTIONS;
  const misspelt = root.members().find(({ name }) => !sections.includes(name) && nearestKey(name, SECTIONS));
  const hint = areDisabled
    ? "remove `disabled` from one of them"
    : misspelt === undefined
      ? 'write {"mcpServers": {"notes": {"command": "npx", "args": ["-y", "notes-mcp"]}}}'
      : `did you mean ${nearestKey(misspelt.name, SECTIONS)} instead of ${misspelt.name}?`;
  const message = areDisabled ? "All servers are disabled" : "The config has no servers";
  root.context.problems.error(cursor?.keyOffset ?? root.value.offset, message, hint);
}
