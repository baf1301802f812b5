// What a listen was granted, as both sides must read it: a grant of nothing is a stream on which nothing can ever come.

import { isObject } from "../core/objects.ts";

export function isNothing(granted: unknown): boolean {
  return (
    !isObject(granted) ||
    Object.values(granted).every((value) => value === false || (Array.isArray(value) && value.length === 0))
  );
}
