// Changes, told to whoever listens: one long request for each listener. The first thing it hears is what was
// granted of its wishes; it ends when the caller goes, when the server lets go of everything, or at once where
// nothing was granted. A list that changes many times in one tick is one change. Tagging what is sent with the
// subscription's id is the dialogue's work.

import type { Context, Notification, Request } from "../core/handler.ts";
import type { SubscriptionFilter } from "../protocol/model/index.ts";

export type ListName = "tools" | "prompts" | "resources";

/** What the server can promise right now. */
export interface Offer {
  listChanged(list: ListName): boolean;
  updates(uri: string): boolean;
}

/** What a listen carries besides lists and resources. */
export interface Extra {
  readonly granted: SubscriptionFilter;
  /** What a caller must be allowed to do before it hears of it. */
  readonly scopes: readonly string[];
  /** Begins to tell; calls `end` when nothing more can come. Returns how to stop it. */
  begin(end: () => void): () => void;
}

interface Listener {
  readonly lists: ReadonlySet<ListName>;
  readonly uris: ReadonlySet<string>;
  readonly notify: (notification: Notification) => void;
  readonly end: () => void;
}

const WISHES = {
  tools: "toolsListChanged",
  prompts: "promptsListChanged",
  resources: "resourcesListChanged",
} as const;
const LISTS = Object.keys(WISHES) as readonly ListName[];

export class Subscriptions {
  readonly #listeners = new Set<Listener>();
  readonly #changed = new Set<ListName>();
  readonly #fanOut = new FanOut<Listener>();

  /** Resolves when the listening is over. */
  async listen({ params }: Request, context: Context, offer: Offer, extra?: Extra): Promise<void> {
    const wanted = params["notifications"] as SubscriptionFilter;
    const lists = new Set(LISTS.filter((list) => wanted[WISHES[list]] === true && offer.listChanged(list)));
    const uris = new Set(wanted.resourceSubscriptions?.filter((uri) => offer.updates(uri)));
    const granted: SubscriptionFilter = {
      ...Object.fromEntries(Array.from(lists, (list) => [WISHES[list], true])),
      ...(uris.size === 0 ? undefined : { resourceSubscriptions: [...uris] }),
      ...extra?.granted,
    };
    context.notify({
      method: "notifications/subscriptions/acknowledged",
      params: { notifications: granted },
    });
    const { signal } = context;
    const changes = lists.size > 0 || uris.size > 0;
    if ((!changes && extra === undefined) || signal.aborted) return;
    let stop = (): void => undefined;
    await new Promise<void>((resolve) => {
      const listener: Listener = {
        lists,
        uris,
        notify: (notification) => context.notify(notification),
        end: () => {
          this.#listeners.delete(listener);
          signal.removeEventListener("abort", listener.end);
          stop();
          resolve();
        },
      };
      this.#listeners.add(listener);
      signal.addEventListener("abort", listener.end);
      stop = extra?.begin(() => (changes ? undefined : listener.end())) ?? stop;
    });
  }

  changed(list: ListName): void {
    if (this.#listeners.size === 0) return;
    if (this.#changed.size === 0) queueMicrotask(() => this.#flush());
    this.#changed.add(list);
  }

  updated(uri: string): void {
    this.#tell((listener) => listener.uris.has(uri), {
      method: "notifications/resources/updated",
      params: { uri },
    });
  }

  close(): void {
    for (const listener of this.#listeners) listener.end();
  }

  #flush(): void {
    const lists = [...this.#changed];
    this.#changed.clear();
    for (const list of lists) {
      this.#tell((listener) => listener.lists.has(list), {
        method: `notifications/${list}/list_changed`,
      });
    }
  }

  #tell(isFor: (listener: Listener) => boolean, notification: Notification): void {
    this.#fanOut.say([...this.#listeners].filter(isFor), (listener) => {
      if (this.#listeners.has(listener)) listener.notify(notification);
    });
  }
}

// One word to many, a slice at a time: between two slices everybody else gets a turn, so that ten thousand listeners
// do not keep one caller waiting. Who is to hear several words hears them in their order, because each word reaches
// its last hearer before the next one begins.

/** So many hear in one go: a few milliseconds' work. */
const SLICE = 64;

interface Word<Hearer> {
  readonly hearers: readonly Hearer[];
  readonly tell: (hearer: Hearer) => void;
  told: number;
}

export class FanOut<Hearer> {
  readonly #words: Word<Hearer>[] = [];

  /** The first slice hears at once, unless an earlier word is still on its way. */
  say(hearers: readonly Hearer[], tell: (hearer: Hearer) => void): void {
    this.#words.push({ hearers, tell, told: 0 });
    if (this.#words.length === 1) this.#go();
  }

  #go(): void {
    let left = SLICE;
    for (let word = this.#words[0]; word !== undefined; word = this.#words[0]) {
      const end = Math.min(word.hearers.length, word.told + left);
      left -= end - word.told;
      while (word.told < end) attempt(word.tell, word.hearers[word.told++] as Hearer);
      if (word.told < word.hearers.length) break;
      this.#words.shift();
    }
    if (this.#words.length > 0) setImmediate(() => this.#go());
  }
}

/** Who cannot be told keeps the word from nobody else. */
function attempt<Hearer>(tell: (hearer: Hearer) => void, hearer: Hearer): void {
  try {
    tell(hearer);
  } catch {
    // Its way back is broken, and whoever holds that way knows.
  }
}
