// A caller's word that its roots have changed, from its session to that of an end: in front it is taken from the caller
// and told to whoever stands behind the session's listen, at the back it is said again. An end of the other style is
// told nothing: it asks.

import type { Context, Request } from "../../core/handler.ts";
import type { Json } from "../../protocol/revision.ts";
import { ROOTS_CHANGED, type TellingRoots, tellsRoots } from "../../protocol/roots.ts";

/** What the front keeps. */
export class RootChanges {
  readonly #heard = new Set<() => void>();

  /** For the context of what no call stands behind; nothing where the caller has not said that it tells. */
  way(capabilities: Json): TellingRoots {
    if (!tellsRoots(capabilities)) return {};
    return {
      [ROOTS_CHANGED]: (changed) => {
        this.#heard.add(changed);
        return () => this.#heard.delete(changed);
      },
    };
  }

  tell(): void {
    for (const changed of [...this.#heard]) changed();
  }
}

/** At the back: says it while the listen lasts. A session has one listen for lists, and others that are no way for this. */
export function passOnRoots(listen: Request, context: Context & TellingRoots, say: () => void): () => void {
  const wanted = listen.params["notifications"] as Json;
  const isOther = wanted["resourceSubscriptions"] !== undefined || wanted["taskIds"] !== undefined;
  const nothing = (): void => undefined;
  return (isOther ? undefined : context[ROOTS_CHANGED]?.(say)) ?? nothing;
}
