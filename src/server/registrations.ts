// What was registered with a server under a key: tools, prompts, resources or templates, in the order in which they were
// registered, with what each list shows of them.

import type { Context } from "../core/handler.ts";
import type { PageItem } from "../protocol/pages.ts";
import type { Visible } from "./options.ts";

/** What is known of everything that can be registered. */
export interface Registered {
  readonly scopes: readonly string[] | undefined;
  readonly visible: Visible | undefined;
}

/** An entry of a list; `listItem` is what clients see. */
export interface ListEntry<Item extends object> extends PageItem {
  readonly listItem: Item;
}

interface Registration<Value, Item extends object> extends ListEntry<Item> {
  readonly value: Value;
}

/**
 * Each registration gets an order number, which is not reused after the key is deleted, so that cursors stay valid while
 * the registrations change.
 */
export class Registrations<Value extends Registered, Item extends object> {
  /** Whether there ever was one that not everybody sees. */
  hasHidden = false;
  readonly #byKey = new Map<string, Registration<Value, Item>>();
  readonly #onChange: () => void;
  readonly #counter: { last: number };
  #all: readonly Registration<Value, Item>[] | undefined;

  /** Those that are listed together share one counter of order numbers. */
  constructor(onChange: () => void, counter: { last: number } = { last: 0 }) {
    this.#onChange = onChange;
    this.#counter = counter;
  }

  get all(): readonly Registration<Value, Item>[] {
    return (this.#all ??= [...this.#byKey.values()]);
  }

  get(key: string): Value | undefined {
    return this.#byKey.get(key)?.value;
  }

  set(key: string, value: Value, listItem: Item): void {
    this.hasHidden ||= value.visible !== undefined;
    // All callers get this object, so middleware that changes it must fail.
    this.#byKey.set(key, { key, order: ++this.#counter.last, value, listItem: Object.freeze(listItem) });
    this.#all = undefined;
    this.#onChange();
  }

  /** Returns whether the key was there. */
  delete(key: string): boolean {
    const wasThere = this.#byKey.delete(key);
    if (wasThere) {
      this.#all = undefined;
      this.#onChange();
    }
    return wasThere;
  }

  /** Undefined if there is none, or the caller does not see it. */
  find(key: string, context: Context): Value | undefined {
    const value = this.#byKey.get(key)?.value;
    return value?.visible === undefined || value.visible(context.caller, context.session) ? value : undefined;
  }

  seenBy({ caller, session }: Context): readonly Registration<Value, Item>[] {
    return this.hasHidden ? this.all.filter(({ value }) => value.visible?.(caller, session) ?? true) : this.all;
  }
}
