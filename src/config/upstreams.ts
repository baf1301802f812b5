// The ends of a config: the entries of `mcpServers` and of `servers`, which mean the same. What all entries may say
// stands here; what each kind of them says of itself is in kinds/. Names that only other clients know are left alone.

import { SHARES, type UpstreamOptions } from "../chain/upstream/upstream.ts";
import { labelsOf } from "../chain/router/labels.ts";
import { REVISIONS } from "../protocol/revisions/index.ts";
import type { Member } from "./document.ts";
import { KINDS } from "./kinds/index.ts";
import type { Found, Kind } from "./upstream-kind.ts";
import { middlewareList, type MiddlewareEntry } from "./middleware.ts";
import type { Position } from "./problems.ts";
import {
  contents,
  flag,
  milliseconds,
  misspelt,
  numberThat,
  objectOf,
  oneOf,
  readFields,
  warnOfSeconds,
  warnOfStray,
  wrongKind,
  type Fields,
  type Reader,
} from "./readers.ts";
import type { Spot } from "./cursor.ts";
import type { Hidden } from "./variables.ts";

/** What an end may be told whatever its kind. */
export type UpstreamPolicy = Pick<
  UpstreamOptions,
  "share" | "revision" | "timeout" | "startTimeout" | "idle" | "restart"
>;

export interface UpstreamEntry extends Found {
  readonly name: string;
  readonly policy: UpstreamPolicy;
  /** Links for this end alone. */
  readonly use: readonly MiddlewareEntry[];
  readonly position: Position;
  /** What in it came from variables and inputs. */
  readonly hidden: readonly Hidden[];
}

const SECTIONS = ["mcpServers", "servers"] as const;

const TIMEOUT = { idleMs: milliseconds, totalMs: milliseconds } as const satisfies Fields;
export const TIMEOUT_FIELDS: Fields = TIMEOUT;

const RESTART = {
  most: numberThat((given) => Number.isInteger(given) && given > 0, "a whole number above 0"),
  windowMs: milliseconds,
  firstMs: milliseconds,
  maxMs: milliseconds,
} as const satisfies Fields;
export const RESTART_FIELDS: Fields = RESTART;

const timeouts = objectOf(TIMEOUT, "an object");

const timeout: Reader<number | { readonly idleMs?: number; readonly totalMs?: number }> = (spot) => {
  if (spot.value.kind === "object") return timeouts(spot);
  const given = numberThat((ms) => ms >= 0, "a number of milliseconds, or {idleMs, totalMs}")(spot);
  warnOfSeconds(spot, given);
  return given === undefined ? undefined : milliseconds(spot);
};

const COMMON = {
  disabled: flag,
  /** As some clients say it. */
  enabled: flag,
  share: oneOf(SHARES),
  revision: oneOf(REVISIONS.map(({ name }) => name)),
  timeout,
  startTimeout: milliseconds,
  idle: milliseconds,
  restart: objectOf(RESTART, "an object, such as {most: 5, windowMs: 180000}"),
  use: middlewareList,
} as const satisfies Fields;

export const COMMON_FIELDS: Fields = COMMON;

/** Names by which other clients call what has another name here. */
const ELSEWHERE: ReadonlyMap<string, string> = new Map([
  ["httpUrl", "url"],
  ["serverUrl", "url"],
  ["uri", "url"],
  ["cmd", "command"],
]);

export interface Ends {
  readonly ends: ReadonlyMap<string, UpstreamEntry>;
  /** Names of those that are switched off; nothing in them is looked at. */
  readonly disabled: readonly string[];
}

export function readUpstreams(root: Spot): Ends {
  const ends = new Map<string, UpstreamEntry>();
  const disabled: string[] = [];
  const seen = new Map<string, Spot>();
  const enabled = new Map<string, Spot>();
  const before = root.reading.problems.errors;
  for (const section of SECTIONS) {
    const spot = root.named(section);
    if (spot !== undefined && spot.value.kind !== "object")
      wrongKind(spot, 'an object of servers by name, such as {"notes": {...}}');
    for (const member of spot?.members() ?? []) {
      const entry = spot?.member(member);
      if (entry === undefined || !isNew(entry, member, seen)) continue;
      seen.set(member.name, entry);
      if (isDisabled(entry)) disabled.push(member.name);
      else {
        enabled.set(member.name, entry);
        const end = readUpstream(entry, member.name);
        if (end !== undefined) ends.set(member.name, end);
      }
    }
  }
  tellOfLabels(enabled);
  if (enabled.size === 0 && root.reading.problems.errors === before) tellOfNothing(root, disabled.length > 0);
  return { ends, disabled };
}

function isNew(entry: Spot, { name, offset }: Member, seen: ReadonlyMap<string, Spot>): boolean {
  const { problems } = entry.reading;
  if (name.trim() === "") {
    problems.error(offset, "The name of a server is empty", "give it one: it says in answers whose they are");
    return false;
  }
  const first = seen.get(name);
  if (first === undefined) return true;
  const { line } = problems.position(first.nameOffset);
  problems.error(
    offset,
    `${entry.way}: ${first.way}, on line ${line}, has the same name`,
    "rename one of them, or remove it",
  );
  return false;
}

function isDisabled(entry: Spot): boolean {
  const says = (name: string, word: boolean): boolean => {
    const value = entry.named(name)?.value;
    return value?.kind === "boolean" && value.plain === word;
  };
  return says("disabled", true) || says("enabled", false);
}

function readUpstream(spot: Spot, name: string): UpstreamEntry | undefined {
  if (spot.value.kind !== "object") {
    return wrongKind(spot, "an object that says how the server is reached", HOW);
  }
  const kind = kindOfEntry(spot);
  if (kind === undefined) {
    readFields(spot, COMMON, () => undefined);
    return undefined;
  }
  const fields = { ...COMMON, ...kind.fields };
  const read = readFields(spot, fields, (stray, key, known) => {
    const other = KINDS.find((one) => Object.hasOwn(one.fields, key));
    if (other === undefined) warnOfStray(stray, key, known);
    else
      stray.reading.problems.warn(
        stray.nameOffset,
        `${stray.way} is passed over`,
        `it goes with ${other.key}, not with ${kind.key}`,
      );
  });
  const {
    disabled: _disabled,
    enabled: _enabled,
    use = [],
    share,
    revision,
    timeout: given,
    startTimeout,
    idle,
    restart,
  } = read;
  const found = kind.found(read, spot);
  if (found === undefined) return undefined;
  const policy: UpstreamPolicy = {
    ...(share && { share }),
    ...(revision && { revision }),
    ...(given !== undefined && { timeout: given }),
    ...(startTimeout !== undefined && { startTimeout }),
    ...(idle !== undefined && { idle }),
    ...(restart && { restart }),
  };
  const known = spot.members().filter((member) => Object.hasOwn(kind.fields, member.name));
  const hidden = known.flatMap((member) => contents(spot.member(member)).hidden);
  return { ...found, name, policy, use, hidden, position: spot.position };
}

const HOW = `write ${KINDS.map(({ key, purpose }) => `"${key}" for ${purpose}`).join(", or ")}`;

/** The one kind whose name is there. Undefined: it has been told that there is none, or more. */
function kindOfEntry(spot: Spot): Kind | undefined {
  const [kind, other] = KINDS.filter(({ key }) => spot.named(key) !== undefined);
  const { problems } = spot.reading;
  if (kind !== undefined && other === undefined) return kind;
  if (kind !== undefined && other !== undefined) {
    const second = spot.named(other.key) ?? spot;
    problems.error(
      second.nameOffset,
      `${spot.way} has both ${kind.key} and ${other.key}`,
      other.beside?.[kind.key] ?? "keep the one by which it is reached",
    );
    return undefined;
  }
  const keys = KINDS.map(({ key }) => key);
  const meant = spot.members().flatMap(({ name, offset }) => {
    const near = ELSEWHERE.get(name) ?? misspelt(name, keys);
    return near === undefined ? [] : [{ name, offset, near }];
  })[0];
  if (meant === undefined) problems.error(spot.nameOffset, `${spot.way} does not say how it is reached`, HOW);
  else
    problems.error(
      meant.offset,
      `${spot.way} does not say how it is reached`,
      `did you mean ${meant.near} where ${meant.name} stands?`,
    );
  return undefined;
}

function tellOfLabels(entries: ReadonlyMap<string, Spot>): void {
  const names = [...entries.keys()];
  labelsOf(names).forEach(({ name: label }, index) => {
    const name = names[index] ?? "";
    const spot = entries.get(name);
    if (label === name || spot === undefined) return;
    const hint = "it may have up to 32 letters, digits, _ and -, to be used as it is";
    spot.reading.problems.warn(
      spot.nameOffset,
      `Tools that need the name of ${spot.way} are called ${label}.name`,
      hint,
    );
  });
}

function isSection(name: string): boolean {
  return SECTIONS.some((section) => section === name);
}

function tellOfNothing(root: Spot, areDisabled: boolean): void {
  const spot = SECTIONS.map((section) => root.named(section)).find((one) => one !== undefined);
  const misnamed = root.members().find(({ name }) => !isSection(name) && misspelt(name, SECTIONS) !== undefined);
  const hint = areDisabled
    ? "remove `disabled` from one of them"
    : misnamed === undefined
      ? 'write {"mcpServers": {"notes": {"command": "npx", "args": ["-y", "notes-mcp"]}}}'
      : `did you mean ${misspelt(misnamed.name, SECTIONS)} where ${misnamed.name} stands?`;
  const what = areDisabled ? "All servers are disabled" : "There is no server in it";
  root.reading.problems.error(spot?.nameOffset ?? root.value.offset, `${what}, so there is nothing to serve`, hint);
}
