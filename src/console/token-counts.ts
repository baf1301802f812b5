// Counts what definitions cost, in the background and in slices, since the tokenizer would hold up calls for seconds if
// there are thousands of tools. What is not counted yet is estimated.

import { ESTIMATE, loadTokenizer, toolForModel, type Tokenizer } from "../tools/token-cost.ts";
import type { CatalogueItem } from "./types.ts";

type Kind = CatalogueItem["kind"];
type Definition = CatalogueItem["definition"];

/** How long one slice takes, and how long a reader waits for exact counts. */
const SLICE_MS = 8;
const WAIT_MS = 250;

export class TokenCounts {
  /** By the definitions, which are the same values as long as a list has not changed. */
  readonly #known = new WeakMap<Definition, number>();
  readonly #estimates = new WeakMap<Definition, number>();
  readonly #onCounted: () => void;
  #tokenizer: Tokenizer | undefined;
  #isDone = true;
  #round = 0;

  /** `onCounted` is called when what a reader has got as an estimate is counted. */
  constructor(onCounted: () => void) {
    this.#onCounted = onCounted;
  }

  /** Whether what was prepared last is estimated. */
  get isEstimate(): boolean {
    return !this.#isDone || this.#tokenizer?.isEstimate !== false;
  }

  /** Whether `of` estimates this one. */
  estimates(definition: Definition): boolean {
    return !this.#known.has(definition) || this.#tokenizer?.isEstimate !== false;
  }

  of(definition: Definition, kind: Kind): number {
    const known = this.#known.get(definition) ?? this.#estimates.get(definition);
    if (known !== undefined) return known;
    const estimate = ESTIMATE.count(textOf(definition, kind));
    this.#estimates.set(definition, estimate);
    return estimate;
  }

  /** Counts these definitions. Resolves when that is done, or would take long. */
  async prepare(items: readonly { readonly definition: Definition; readonly kind: Kind }[]): Promise<void> {
    this.#round += 1;
    const round = this.#round;
    const waiting = items.filter(({ definition }) => !this.#known.has(definition));
    this.#isDone = waiting.length === 0;
    if (this.#isDone) return;
    let isLate = false;
    const counting = this.#count(waiting, round).then(() => {
      if (isLate && this.#isDone) this.#onCounted();
    });
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(() => {
        isLate = true;
        resolve();
      }, WAIT_MS);
    });
    await Promise.race([counting, late]);
    clearTimeout(timer);
  }

  async #count(
    items: readonly { readonly definition: Definition; readonly kind: Kind }[],
    round: number,
  ): Promise<void> {
    this.#tokenizer ??= await loadTokenizer();
    const { count } = this.#tokenizer;
    let start = performance.now();
    for (const { definition, kind } of items) {
      this.#known.set(definition, countStart(textOf(definition, kind), count));
      if (performance.now() - start < SLICE_MS) continue;
      // Calls that wait go first.
      await new Promise((resolve) => setTimeout(resolve, SLICE_MS));
      if (round !== this.#round) return;
      start = performance.now();
    }
    this.#isDone = true;
  }
}

/** A longer definition is counted by its beginning. */
const MAX_COUNTED = 50_000;

function countStart(text: string, count: (text: string) => number): number {
  if (text.length <= MAX_COUNTED) return count(text);
  return Math.ceil((count(text.slice(0, MAX_COUNTED)) * text.length) / MAX_COUNTED);
}

/** What a model gets of a definition. Prompts and resources reach it only if a person or a client picks them. */
function textOf({ _meta: _ours, icons: _icons, ...definition }: Definition, kind: Kind): string {
  return JSON.stringify(kind === "tools" ? toolForModel(definition) : definition);
}
