// What is said about a key that we do not have: where it belongs if it is one of ours, and whether it is a key of another
// client that means nothing to a gateway. A key that would be ignored silently may be one that a user relies on, such
// as a token or a filter, so every other key is an error.

import { CLIENTS } from "./clients.ts";
import { type Cursor, suggest } from "./readers.ts";

/** Keys that have a right place elsewhere, and the place. */
export type Places = readonly (readonly [keys: Iterable<string>, place: (key: string) => string])[];

/** Keys of an entry that mean nothing to a gateway, such as lists of tools that need no approval. */
export const IGNORED_IN_ENTRIES: ReadonlySet<string> = new Set([
  ...CLIENTS.flatMap(({ ignored = [] }) => ignored),
  // Written by directories of servers and by other gateways.
  ...["description", "displayName", "icon", "name", "note", "tags", "title", "version"],
]);

export const IGNORED_AT_TOP: ReadonlySet<string> = new Set(CLIENTS.flatMap(({ ignoredAtTop = [] }) => ignoredAtTop));

/** Keys of an entry that promise something that the gateway does not do, and what that means. */
export const UNSUPPORTED_IN_ENTRIES: ReadonlyMap<string, string> = new Map(
  CLIENTS.flatMap(({ unsupported = {} }) => Object.entries(unsupported)),
);

/** Keys that a person writes as a comment. For the schema, too. */
export const COMMENT_KEY = "^(_|x-|//|\\$comment$)";
const isComment = new RegExp(COMMENT_KEY);

/**
 * Reports a key that an object does not have, unless it may be ignored. `middlewareKey` is that of the middleware in the
 * object.
 */
export function rejectKey(
  unknown: Cursor,
  known: readonly string[],
  places: Places,
  ignored: ReadonlySet<string>,
  middlewareKey: "chain" | "use",
): void {
  const { context, name: key } = unknown;
  const place = places.find(([keys]) => [...keys].includes(key))?.[1](key);
  if (place !== undefined) return unknown.errorAtKey("not a key here", place);
  if (ignored.has(key) || isComment.test(key)) return;
  if (context.builtIn === undefined) {
    context.needsBuiltIn = true;
    return;
  }
  // A timeout is more likely that of an upstream.
  if (key !== "timeout" && context.builtIn.has(key)) {
    unknown.errorAtKey("not a key here", `write {"${middlewareKey}": [{"${key}": ...}]}`);
    return;
  }
  const near = suggest(key, known);
  // A client may have new keys in its own file.
  if (context.isForeign && near === undefined) {
    unknown.warnAtKey("ignored", "it is not a known key; check that nothing depends on it");
    return;
  }
  unknown.errorAtKey("unknown key", near ?? `the keys are ${known.join(", ")}`);
}
