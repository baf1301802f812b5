// All revisions, oldest first. A new one costs its file and a line here; what was the newest becomes a delta
// to it. Who needs a revision by its date asks here and nowhere else.

import { fold } from "../revision.ts";
import type { Delta, Revision } from "../revision.ts";
import { delta as r20241105 } from "./2024-11-05.ts";
import { delta as r20250326 } from "./2025-03-26.ts";
import { delta as r20250618 } from "./2025-06-18.ts";
import { delta as r20251125 } from "./2025-11-25.ts";
import { newest } from "./2026-07-28.ts";

/** Each older revision as the step to its successor, oldest first. */
export const DELTAS: readonly Delta[] = [r20241105, r20250326, r20250618, r20251125];

/** Oldest to newest. */
export const REVISIONS: readonly Revision[] = fold(newest, DELTAS);

const byName: ReadonlyMap<string, Revision> = new Map(REVISIONS.map((revision) => [revision.name, revision]));

function last(fits: (revision: Revision) => boolean): Revision {
  const found = REVISIONS.findLast(fits);
  if (!found) throw new Error("No such revision");
  return found;
}

export const NEWEST: Revision = last(() => true);
export const NEWEST_SESSION: Revision = last((revision) => revision.style === "session");

export function revisionNamed(name: string): Revision | undefined {
  return byName.get(name);
}

/** For names that a person wrote: one that nobody knows is an error that lists those that are known. */
export function knownRevision(name: string): Revision {
  const found = byName.get(name);
  if (found !== undefined) return found;
  throw new TypeError(`Unknown revision ${name}; known are ${REVISIONS.map((known) => known.name).join(", ")}`);
}
