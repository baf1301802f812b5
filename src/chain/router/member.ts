// One of the ends that were merged, as callers of one kind see it: what it can do, and how patiently it is waited for.
// An end that did not answer in time is not waited for again at length until it has answered something: others must not
// be held up by it. Requests of callers go to the handler itself; here stands only what merge asks on its own.

import type { Context } from "../../core/handler.ts";
import type { Handler, Request, Result } from "../../core/handler.ts";
import { attempt, ignoreRejection } from "../../core/async.ts";
import { bounded } from "../../dialogue/calls/backoff.ts";
import { isObject } from "../../core/objects.ts";
import { McpError } from "../../protocol/errors.ts";
import type { Json } from "../../protocol/revision.ts";
import { isTimeout, named } from "./failures.ts";
import type { Label } from "./labels.ts";

/** An end with its place among all. */
export interface RoutedUpstream {
  readonly index: number;
  readonly name: string;
  readonly label: Label;
  readonly handler: Handler;
}

/** How long an end may take to say what it can do. A caller waits for it at its first word. */
const DISCOVER_MS = 8_000;
/** The same, and for anything else, while it owes an answer. */
const SLOW_MS = 1_000;

/** After so long without an answer it is asked once more. */
const GIVEN_UP_MS = 60_000;

interface Discovering {
  readonly answer: Promise<Result>;
  readonly stop: AbortController;
  readonly since: number;
}

export class Member {
  readonly end: RoutedUpstream;
  /** What it said last. */
  capabilities: Json | undefined;
  #isSlow = false;
  #discovering: Discovering | undefined;

  constructor(end: RoutedUpstream) {
    this.end = end;
  }

  /** What it says of itself, now; one question for all who want to know at once. */
  async discover(context: Context): Promise<Result> {
    const discovering = this.#discover(context);
    return this.patiently(DISCOVER_MS, context, () => discovering);
  }

  /** Whether it can do this. What it said it could it is believed to do still; what it could not may be new. */
  async offers(context: Context, isOffered: (capabilities: Json) => boolean): Promise<boolean> {
    if (!isOffered(this.capabilities ?? {})) await this.discover(context);
    return isOffered(this.capabilities ?? {});
  }

  has(capability: string): boolean {
    return isObject(this.capabilities?.[capability]);
  }

  /** Whether it has the capability, or nobody knows. */
  mayHave(capability: string): boolean {
    return this.capabilities === undefined || this.has(capability);
  }

  /** Work at the end that is given up after so long; it throws with the end's name. */
  async patiently<T>(ms: number, context: Context, work: (context: Context) => Promise<T>): Promise<T> {
    const { signal } = context;
    try {
      const done = await bounded(this.#isSlow ? Math.min(ms, SLOW_MS) : ms, signal, (given) =>
        attempt(() => work({ ...context, signal: given })),
      );
      this.#isSlow = false;
      return done;
    } catch (error) {
      if (signal.aborted) throw error;
      if (isTimeout(error)) {
        this.#isSlow = true;
        // When this is answered, it is no longer slow.
        void this.#discover(context);
      }
      throw named(this.end.name, error);
    }
  }

  #discover(context: Context): Promise<Result> {
    const known = this.#discovering;
    if (known !== undefined && performance.now() - known.since < GIVEN_UP_MS) return known.answer;
    known?.stop.abort(new Error("The end was given up"));
    const stop = new AbortController();
    const answer = ignoreRejection(
      this.#ask(quiet(context, stop.signal)).finally(() => {
        if (this.#discovering?.stop === stop) this.#discovering = undefined;
      }),
    );
    this.#discovering = { answer, stop, since: performance.now() };
    return answer;
  }

  async #ask(context: Context): Promise<Result> {
    const request: Request = { method: "server/discover", params: {} };
    try {
      const said = await attempt(() => this.end.handler(request, context));
      const { capabilities } = said;
      this.capabilities = isObject(capabilities) ? capabilities : {};
      this.#isSlow = false;
      return said;
    } catch (error) {
      if (!isTimeout(error)) this.#isSlow = false;
      throw error;
    }
  }
}

/** The context of what we ask on our own, for a caller like this one: it may outlive the call that it is needed for. */
export function quiet({ revision, caller }: Context, signal: AbortSignal = new AbortController().signal): Context {
  return {
    revision,
    caller,
    signal,
    notify: () => undefined,
    ask: async ({ method }) => {
      throw McpError.of("missing_capability", `Nobody is there to answer ${method}`, { requiredCapabilities: {} });
    },
  };
}
