// A place in a config while it is read: its value, the way to it as people write it (`mcpServers.notes.timeout`), and
// whom to tell of a mistake. What must stand at a place is said by the readers in shape.ts.

import type { MiddlewareFactories } from "./middleware.ts";
import type { Member, Value } from "./document.ts";
import type { Position, Problems } from "./problems.ts";
import type { Variables } from "./variables.ts";

/** What has to be looked at on the disk once all is read. */
export interface FileCheck {
  readonly path: string;
  readonly kind: "file" | "folder";
  readonly severity: "error" | "warning";
  readonly spot: Spot;
  /** Whether the path holds what came from a variable. */
  readonly isHidden: boolean;
}

/** What all who read one config share. */
export interface Reading {
  readonly problems: Problems;
  readonly variables: Variables;
  /** The folder to which paths are relative. */
  readonly folder: string;
  readonly links: MiddlewareFactories;
  /** Filled as it is read. */
  readonly files: FileCheck[];
}

export class Spot {
  readonly reading: Reading;
  readonly value: Value;
  readonly way: string;
  /** Where the name of it stands; the value itself in a list. */
  readonly nameOffset: number;

  constructor(reading: Reading, value: Value, way: string, nameOffset: number = value.offset) {
    this.reading = reading;
    this.value = value;
    this.way = way;
    this.nameOffset = nameOffset;
  }

  member({ name, offset, value }: Member): Spot {
    const step = /^[\w$-]+$/.test(name) ? `${this.way === "" ? "" : "."}${name}` : `[${JSON.stringify(name)}]`;
    return new Spot(this.reading, value, `${this.way}${step}`, offset);
  }

  /** Empty where it is no object; that has been told by who read it. */
  members(): readonly Member[] {
    return this.value.kind === "object" ? this.value.members : [];
  }

  named(name: string): Spot | undefined {
    const found = this.members().find((member) => member.name === name);
    return found && this.member(found);
  }

  items(): Spot[] {
    if (this.value.kind !== "list") return [];
    return this.value.items.map((item, index) => new Spot(this.reading, item, `${this.way}[${index}]`));
  }

  get position(): Position {
    return this.reading.problems.position(this.value.offset);
  }

  /** The sentence goes on after the way: `listen.port` + ` must be ...`. */
  error(rest: string, hint?: string): undefined {
    this.reading.problems.error(this.value.offset, `${this.way}${rest}`, hint);
  }

  warn(rest: string, hint?: string): void {
    this.reading.problems.warn(this.value.offset, `${this.way}${rest}`, hint);
  }
}
