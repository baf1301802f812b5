// Who shares with whom: callers told apart by what makes a difference to an end. That is who the wire has proved them
// to be, in which style they speak, and what they can be asked; their names and their addresses make none.

import type { Caller, Context } from "../../core/handler.ts";
import { knownRevision } from "../../protocol/revisions/index.ts";
import { isObject } from "../../core/objects.ts";
import { TASKS } from "../../protocol/tasks.ts";
import { digest } from "../../core/seal.ts";

export type Style = "session" | "stateless";

export function styleOf({ revision }: Pick<Context, "revision">): Style {
  return knownRevision(revision).style;
}

/** By object, since a session's capabilities are one object for all its calls; and by text, for all others. */
const byObject = new WeakMap<Caller["capabilities"], string>();
const byText = new Map<string, string>();
const MOST_TEXTS = 1_000;
/** Callers choose how long their capabilities are, and they are keys of much that is kept: of longer ones, a digest. */
const MOST_LETTERS = 1_000;

/**
 * What a caller has declared, as a text that is the same for the same capabilities in any order. Without tasks: the
 * same caller declares them with one call and not with another, and its tasks must be found by both.
 */
export function fingerprint(capabilities: Caller["capabilities"]): string {
  const known = byObject.get(capabilities);
  if (known !== undefined) return known;
  const text = JSON.stringify(capabilities);
  let made = byText.get(text);
  if (made === undefined) {
    const sorted = inOrder(withoutTasks(capabilities));
    made = sorted.length > MOST_LETTERS ? digest(sorted) : sorted;
    if (byText.size >= MOST_TEXTS) byText.clear();
    if (text.length <= MOST_LETTERS) byText.set(text, made);
  }
  byObject.set(capabilities, made);
  return made;
}

function inOrder(capabilities: Caller["capabilities"]): string {
  return JSON.stringify(capabilities, (_key, value: unknown) =>
    isObject(value) ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))) : value,
  );
}

function withoutTasks(capabilities: Caller["capabilities"]): Caller["capabilities"] {
  const { extensions, ...rest } = capabilities;
  if (!isObject(extensions)) return rest;
  const { [TASKS]: _tasks, ...others } = extensions;
  return Object.keys(others).length === 0 ? rest : { ...rest, extensions: others };
}

/** The same for all callers who may share one session of an end, and for no others. */
export function callerKey(context: Context): string {
  return key(context, fingerprint(context.caller.capabilities));
}

/** The same for one person, whatever the calls say that they can be asked: for ends that have no sessions. */
export function personKey(context: Context): string {
  return key(context, "");
}

/** What comes first has no line breaks, so that no two callers can have the same key. */
function key(context: Context, declared: string): string {
  const { principal } = context.caller;
  return `${styleOf(context)}\n${declared}\n${principal === undefined ? "" : `is ${principal}`}`;
}

/** Whether an end may ask it anything in mid-call. */
export function canBeAsked({ capabilities }: Caller): boolean {
  return ["elicitation", "sampling", "roots"].some((name) => capabilities[name] !== undefined);
}
