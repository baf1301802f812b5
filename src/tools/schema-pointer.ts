// References within a schema. Apart from schema-kind.ts, since a small server never follows them.

import { parsePointer } from "./schema-kind.ts";

/** What a reference within the schema leads to; undefined if there is no such place. */
export function resolvePointer(root: unknown, pointer: string): unknown {
  if (!/^#(?:\/|$)/.test(pointer)) return undefined;
  let found = root;
  for (const part of parsePointer(pointer)) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, part)) return undefined;
    found = (found as Readonly<Record<string, unknown>>)[part];
  }
  return found;
}
