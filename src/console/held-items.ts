// The definitions that `pin` holds: what has changed in them, and their approval in the file of pins, as `catenary pins`
// does it. The gateway takes an approval over with its next request, and tells its clients that lists have changed.

import { Pins, PIN_NOUNS, type PinnedDefinition } from "../chain/pins.ts";
import {
  approveHeld,
  changedLines,
  pinFilesOf,
  pinnedServersOf,
  readPinnedItems,
  stateOf,
  type PinnedItem,
} from "../config/pinned-items.ts";
import type { Config } from "../config/load.ts";
import { errorMessage } from "../core/values.ts";
import type { ConsoleHost } from "./host.ts";
import { ApiError } from "./route.ts";
import type { HeldDefinition, Need, PinReview } from "./types.ts";
import { valueChanges } from "./value-diff.ts";

export class HeldItems {
  readonly #host: ConsoleHost;
  /** Those of the config that was last asked for. Each reads its file only if that has changed. */
  #files: { readonly config: Config; readonly pins: Promise<readonly Pins[]> } | undefined;

  constructor(host: ConsoleHost) {
    this.#host = host;
  }

  /** One for each server of which something is held. */
  async needs(): Promise<readonly Need[]> {
    let held: readonly PinnedItem[];
    try {
      held = await this.#held();
    } catch (error) {
      return [{ id: "pins", kind: "pin", text: errorMessage(error), hint: "until then, pin refuses lists and calls" }];
    }
    const counts = new Map<string, number>();
    for (const { server } of held) counts.set(server, (counts.get(server) ?? 0) + 1);
    return [...counts].map(([server, count]) => {
      const what = count === 1 ? "1 definition is" : `${count} definitions are`;
      const hint = `compare and approve them here, or run: catenary pins ${server}`;
      return { id: `pin ${server}`, kind: "pin", server, text: `${what} new or changed, and held back`, hint };
    });
  }

  /** What is held of a server, with what has changed. */
  async review(server: string): Promise<PinReview> {
    return { server, items: (await this.#heldOf(server)).map(describe) };
  }

  /**
   * Approves what is held of a server, or the items with these names. With `digests`, only definitions that have them, so
   * that nothing is approved that has changed since it was shown. Returns what is still held.
   */
  async approve(server: string, names?: readonly string[], digests?: readonly string[]): Promise<PinReview> {
    const chosen = (await this.#heldOf(server)).filter(
      ({ name, pin }) =>
        names?.includes(name) !== false && (digests === undefined || digests.includes(pin.held?.digest ?? "")),
    );
    if (chosen.length === 0) {
      throw new ApiError(409, `Nothing of that is held of ${server} now`, "it may have changed again: look at it anew");
    }
    const approved = await approveHeld(chosen);
    const { log, running } = this.#host;
    for (const { kind, name } of approved) {
      log.write({
        level: "info",
        upstream: server,
        message: `the ${PIN_NOUNS[kind]} ${name} was approved in the console`,
      });
    }
    // Subscriptions move to the same parts, so that clients learn that their lists may have changed.
    await running.change(running.config);
    return this.review(server);
  }

  async #heldOf(server: string): Promise<readonly PinnedItem[]> {
    try {
      return (await this.#held()).filter((item) => item.server === server);
    } catch (error) {
      throw new ApiError(503, errorMessage(error));
    }
  }

  async #held(): Promise<readonly PinnedItem[]> {
    const { config } = this.#host.running;
    if (this.#files?.config !== config) {
      const pins = pinFilesOf(config).then((files) => files.map((file) => new Pins(file)));
      this.#files = { config, pins };
    }
    const items = await Promise.all((await this.#files.pins).map(readPinnedItems));
    const known = pinnedServersOf(config);
    return items.flat().filter(({ server, pin }) => pin.held !== undefined && known.has(server));
  }
}

function describe({ kind, name, pin }: PinnedItem): HeldDefinition {
  const { approved, held } = pin;
  const lines = changedLines(approved, held);
  return {
    kind: PIN_NOUNS[kind],
    name,
    state: stateOf(pin) === "new" ? "new" : "changed",
    digest: held?.digest ?? "",
    changes: valueChanges(shown(approved), shown(held)),
    ...(lines !== undefined && { lines }),
  };
}

function shown(pinned: PinnedDefinition | undefined): unknown {
  return pinned?.definition ?? {};
}
