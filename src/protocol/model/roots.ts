// Roots: the places (folders, mostly) that a caller lets an end work in. Types only; a root is what the caller
// says, not a wall that anything here holds up.

import type { Meta } from "../../core/handler.ts";

export interface Root {
  /** A `file:` address. */
  readonly uri: string;
  readonly name?: string;
  readonly _meta?: Meta;
}

export interface ListRootsResult {
  readonly roots: readonly Root[];
  readonly [key: string]: unknown;
}
