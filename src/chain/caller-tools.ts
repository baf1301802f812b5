// What the tools of a server declare, as each caller sees them. Callers may see other tools under the same names, so
// nothing that was learned from the list of one caller is used for another. For middleware that treats tools by their
// annotations.

import { BoundedMap } from "../core/collections.ts";
import type { Caller, Context, Handler, Result } from "../core/handler.ts";
import { changedMethod } from "../protocol/lists.ts";
import { ToolFacts, type ToolFact } from "../protocol/tool-facts.ts";

const MAX_CALLERS = 1_000;
/** After this long, a list is read again: a caller without a subscription is not notified of changes. */
const MAX_AGE_MS = 60_000;
const CHANGED = changedMethod("tools");

interface KnownTools {
  readonly facts: ToolFacts;
  readonly since: number;
}

export class CallerTools {
  readonly #maxAgeMs: number;
  readonly #known = new BoundedMap<string, KnownTools>(MAX_CALLERS);

  constructor(maxAgeMs: number = MAX_AGE_MS) {
    this.#maxAgeMs = maxAgeMs;
  }

  /** What is known about the tool without reading the list. */
  get(name: unknown, caller: Caller): ToolFact | undefined {
    return this.#of(caller).get(name);
  }

  /** Reads the caller's list if the tool is unknown. Undefined if it is not listed. Throws if the list cannot be read. */
  async find(name: unknown, context: Context, next: Handler): Promise<ToolFact | undefined> {
    const facts = this.#of(context.caller);
    const found = await facts.find(name, next, context);
    if (found === undefined && facts.failure !== undefined) throw facts.failure;
    return found;
  }

  /** Remembers the tools of a page that this caller gets. Returns all that is known for the caller. */
  learn(page: Result, caller: Caller): Pick<ToolFacts, "get"> {
    const facts = this.#of(caller);
    facts.learn(page);
    return facts;
  }

  /** The context for a subscription: forgets all tools when the list of this caller has changed. */
  watch(context: Context): Context {
    return {
      ...context,
      notify: (notification) => {
        if (notification.method === CHANGED) this.forget();
        context.notify(notification);
      },
    };
  }

  forget(): void {
    this.#known.every(({ facts }) => {
      facts.forget();
      return true;
    });
  }

  #of(caller: Caller): ToolFacts {
    const key = viewKey(caller);
    const known = this.#known.get(key);
    const now = performance.now();
    if (known !== undefined && now - known.since < this.#maxAgeMs) return known.facts;
    const facts = new ToolFacts();
    this.#known.set(key, { facts, since: now });
    return facts;
  }
}

/** The same for callers that certainly see the same: one client with the same identity at the same endpoint. */
export function viewKey({ key, principal, endpoint, part, scopes, claims }: Caller): string {
  // Keys of callers do not begin with a bracket.
  return principal === undefined && endpoint === undefined && part === undefined
    ? key
    : JSON.stringify([key, principal, endpoint, part, scopes, claims]);
}
