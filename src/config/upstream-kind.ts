// What a kind of end is to a config: the name that tells it from others, what may stand beside that, and how it is
// reached. One more kind costs its file and a line in kinds/index.ts; nothing else knows how many there are.

import type { UpstreamOptions, UpstreamTarget } from "../chain/upstream/upstream.ts";
import type { Command } from "../client/command.ts";
import type { Position, Problem } from "./problems.ts";
import type { Fields, Read } from "./readers.ts";
import type { Spot } from "./cursor.ts";

/** What `upstream()` is called with, once the config is used. */
export interface Reach {
  readonly target: UpstreamTarget;
  readonly options?: UpstreamOptions;
}

export interface Starts {
  readonly program: Command;
  readonly position: Position;
  /** What to do where it is not there; otherwise what is said of any program. */
  readonly hint?: string;
}

/** An end as it was read: `about` is the data, for those who show it; it may hold secrets. */
export interface Found {
  readonly kind: string;
  readonly about: Readonly<Record<string, unknown>>;
  /** The program that it takes, and where that is named; absent where an input must be asked for first. */
  readonly starts?: Starts;
  /** Why it will be of no use on this machine, as far as that is known; for whoever checks a config. */
  readonly unfit?: Problem;
  /** Fails with a sentence that says what is missing. */
  reach(): Promise<Reach>;
}

export interface Kind {
  /** The name that every entry of this kind has, and of the others none. */
  readonly key: string;
  /** For a person: what is written there. */
  readonly purpose: string;
  readonly fields: Fields;
  /** What to say where the name of another kind stands beside its own, by that name. */
  readonly beside?: Readonly<Record<string, string>>;
  /** Looks at what belongs together, and says how it is reached; undefined where it is told that it cannot be. */
  found(read: Readonly<Record<string, unknown>>, spot: Spot): Found | undefined;
}

/** A kind whose fields give what is found their types. */
export function kindOf<F extends Fields>(
  fields: F,
  kind: {
    readonly key: keyof F & string;
    readonly purpose: string;
    readonly beside?: Readonly<Record<string, string>>;
    found(read: Read<F>, spot: Spot): Found | undefined;
  },
): Kind {
  return { ...kind, fields, found: (read, spot) => kind.found(read as Read<F>, spot) };
}
