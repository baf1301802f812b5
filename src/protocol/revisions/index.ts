// All revisions, oldest first. A new one needs a file and a line here; the previous newest becomes a delta to it. No
// source file outside this folder names a revision by its date.

import { buildRevisions } from "../revision.ts";
import type { Delta, Revision } from "../revision.ts";
import { delta as r20241105 } from "./2024-11-05.ts";
import { delta as r20250326 } from "./2025-03-26.ts";
import { delta as r20250618 } from "./2025-06-18.ts";
import { delta as r20251125 } from "./2025-11-25.ts";
import { newest } from "./2026-07-28.ts";

export { isVendorMethod } from "./standard-methods.ts";

/** Each older revision as a delta to its successor, oldest first. */
export const DELTAS: readonly Delta[] = [r20241105, r20250326, r20250618, r20251125];

/** Oldest to newest. */
export const REVISIONS: readonly Revision[] = buildRevisions(newest, DELTAS);

const byName: ReadonlyMap<string, Revision> = new Map(REVISIONS.map((revision) => [revision.name, revision]));

function findLast(fits: (revision: Revision) => boolean): Revision {
  const revision = REVISIONS.findLast(fits);
  if (!revision) throw new Error("No such revision");
  return revision;
}

export const NEWEST: Revision = findLast(() => true);
export const NEWEST_SESSION: Revision = findLast((revision) => revision.style === "session");

/** The revision of a session-style HTTP request that names none. It is the last one whose clients did not have to. */
export const ASSUMED: Revision = findLast(({ name }) => name === r20250326.name);

export function revisionNamed(name: string): Revision | undefined {
  return byName.get(name);
}

/** Throws a TypeError that lists the supported revisions if there is no such revision. */
export function knownRevision(name: string): Revision {
  const revision = byName.get(name);
  if (revision !== undefined) return revision;
  throw new TypeError(`Unknown revision ${name}; supported: ${REVISIONS.map((known) => known.name).join(", ")}`);
}
