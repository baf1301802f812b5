// What a server keeps for each session of its clients: an id and a place for values, until the session ends. Clients of
// stateless revisions over HTTP have no session, since nothing tells two of them apart, or when one has gone.

import type { Caller, Context, SessionHints } from "../core/handler.ts";
import { onAbort } from "../core/async.ts";

/** The session of a client, as handlers see it. */
export interface Session extends SessionHints {
  /** The same for all requests of the session. No other session of this process has it. */
  readonly id: string;
  /** Values that live as long as the session. No other session sees them. */
  readonly state: Map<string, unknown>;
  /** Aborted when the session ends. */
  readonly ended: AbortSignal;
}

/** Whether a caller may see and use something. A session-style client, and one in memory, has a session. */
export type Visible = (caller: Caller, session: Session | undefined) => boolean;

export class Sessions {
  readonly #sessions = new Map<string, Session>();

  /** The session of a request. It is kept until it ends. */
  of({ caller, session }: Pick<Context, "caller" | "session">): Session | undefined {
    const ended = session?.ended;
    if (ended === undefined) return undefined;
    const id = caller.key;
    let found = this.#sessions.get(id);
    if (found === undefined) {
      found = { id, state: new Map(), ended };
      if (!ended.aborted) {
        this.#sessions.set(id, found);
        onAbort(ended, () => this.#sessions.delete(id));
      }
    }
    return found;
  }

  permits(visible: Visible | undefined, context: Pick<Context, "caller" | "session">): boolean {
    return visible === undefined || visible(context.caller, this.of(context));
  }
}
