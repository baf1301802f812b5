// The names of one family of things, as the end has them and as callers see them, and the way back. A name that was
// given away is free: nothing is reached by it any more, unless something else was called so. Addresses may be
// renamed by their beginnings: `file:///*` to `notes:///*`.

import type { OptionReader } from "../../core/options.ts";

export class NewNames {
  readonly #shown: ReadonlyMap<string, string>;
  readonly #own = new Map<string, string>();
  readonly #beginnings: readonly (readonly [own: string, shown: string])[];

  constructor(read: OptionReader, option: string, mayBegin: boolean) {
    const pairs = [...read.stringMap(option)];
    const isBeginning = ([own, shown]: readonly [string, string]): boolean => {
      const stars = [own, shown].filter((name) => name.endsWith("*")).length;
      if (mayBegin && stars === 1) {
        throw read.error(`${option}.${own}`, "must end with `*` on both sides, or on none");
      }
      return mayBegin && stars === 2;
    };
    const beginnings = pairs.filter(isBeginning);
    this.#beginnings = beginnings.map(([own, shown]) => [own.slice(0, -1), shown.slice(0, -1)]);
    this.#shown = new Map(pairs.filter((pair) => !beginnings.includes(pair)));
    for (const [own, shown] of pairs) {
      const other = pairs.find((pair) => pair[0] !== own && pair[1] === shown)?.[0];
      if (other !== undefined) {
        throw read.error(`${option}.${own}`, `and \`${other}\` cannot both become ${JSON.stringify(shown)}`);
      }
    }
    for (const [own, shown] of this.#shown) this.#own.set(shown, own);
  }

  get isEmpty(): boolean {
    return this.#shown.size === 0 && this.#beginnings.length === 0;
  }

  /** As callers see it. */
  shown(own: string): string {
    const name = this.#shown.get(own);
    if (name !== undefined) return name;
    const found = this.#beginnings.find(([beginning]) => own.startsWith(beginning));
    return found === undefined ? own : found[1] + own.slice(found[0].length);
  }

  /** As the end has it; undefined where there is nothing of this name. */
  own(shown: string): string | undefined {
    const name = this.#own.get(shown);
    if (name !== undefined) return name;
    const found = this.#beginnings.find(([, beginning]) => shown.startsWith(beginning));
    const own = found === undefined ? shown : found[0] + shown.slice(found[1].length);
    return this.shown(own) === shown ? own : undefined;
  }

  /** Whether the end's own name for a thing has been given to another. */
  isTaken(own: string): boolean {
    return this.shown(own) === own && this.own(own) !== own;
  }
}
