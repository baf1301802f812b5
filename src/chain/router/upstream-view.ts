// One upstream as one group of callers sees it: its capabilities, and whether it is available. An upstream that has
// failed or timed out is tried again in the background, and the others do not wait for it until it answers. This
// concerns only the router's own requests; requests of callers go directly to the handler.

import { attempt, forwardAbort, ignoreRejection, withTimeout } from "../../core/async.ts";
import { isOfPages } from "../../core/authentication.ts";
import { ConnectionError, THE_UPSTREAM } from "../../core/errors.ts";
import type { Context, Params, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { LISTS, type ListCapability } from "../../protocol/lists.ts";
import type { Json } from "../../protocol/revision.ts";
import { isMethodNotFound, isTimeout, withUpstreamName } from "./failures.ts";
import type { RoutedUpstream } from "./names.ts";
import { backgroundContext, readAllPages, type ListContents, type PagedList } from "./pages.ts";

/** How long the list of an upstream may take, with all its pages. */
export const LIST_TIMEOUT_MS = 30_000;
/** How long the list of a caller waits for an upstream that is up. The upstream's list is read to its end. */
const LIST_WAIT_MS = 2_000;
/** How long `server/discover` waits for an upstream. It is the first request of a caller, and some callers wait 1.5 s. */
const DISCOVER_TIMEOUT_MS = 1_000;
/** How long a list waits for an upstream whose capabilities are not known, such as a program that is still starting. */
const START_TIMEOUT_MS = 15_000;
/** How long a request waits for an upstream that has failed or timed out and has not answered since. */
const UNAVAILABLE_WAIT_MS = 50;
/** How long a page of the console waits. It gets an event when the rest has arrived. */
const PAGE_WAIT_MS = 500;
/** After this long without an answer, `server/discover` is sent again. */
const REDISCOVER_MS = 60_000;

/** A list of upstreams, with the capability that announces it and its changes, or a test of capabilities. */
export type OfferedList = PagedList &
  (
    | { readonly capability: ListCapability }
    | { readonly capability?: undefined; readonly isOffered: (capabilities: Json) => boolean }
  );

interface PendingDiscover {
  readonly answer: Promise<Result>;
  readonly stop: AbortController;
  readonly since: number;
}

/** A list that was not read in time. */
interface LateList {
  /** Pending while the list is read. */
  readonly reading: Promise<ListContents> | undefined;
  /** What was read last. It is shown if the list is late again. */
  readonly contents: ListContents | undefined;
}

export class UpstreamView {
  readonly upstream: RoutedUpstream;
  /** From the last answer to `server/discover`; undefined if there was none. */
  capabilities: Json | undefined;
  readonly #onChanged: (capability: ListCapability) => void;
  /** Lists that callers have got without this upstream, and the request that must succeed until it is in them. */
  readonly #missing = new Map<ListCapability, "discover" | "list">();
  /** By method. */
  readonly #late = new Map<string, LateList>();
  /** Why it is not available. */
  #problem: Error | undefined;
  #pending: PendingDiscover | undefined;

  /** `onChanged` is called when lists contain the upstream that they lacked. */
  constructor(upstream: RoutedUpstream, onChanged: (capability: ListCapability) => void = () => undefined) {
    this.upstream = upstream;
    this.#onChanged = onChanged;
  }

  /** Sends `server/discover`. Callers that wait at the same time share one request. */
  async discover(context: Context): Promise<Result> {
    const answer = this.#discover(context);
    // After this short time, an upstream may still be starting. That is not a problem yet.
    return this.#wait(DISCOVER_TIMEOUT_MS, context, () => answer, { isTimeoutProblem: false });
  }

  /** Whether it has a capability. Sends `server/discover` again only if the capability was not declared before. */
  async offers(context: Context, isOffered: (capabilities: Json) => boolean): Promise<boolean> {
    if (!isOffered(this.capabilities ?? {})) {
      const answer = this.#discover(context);
      const isPage = isOfPages(context.caller);
      const usualMs = this.capabilities !== undefined && this.#isUp ? LIST_WAIT_MS : START_TIMEOUT_MS;
      const ms = isPage ? PAGE_WAIT_MS : usualMs;
      await this.#wait(ms, context, () => answer, { isTimeoutProblem: !isPage });
    }
    return isOffered(this.capabilities ?? {});
  }

  has(capability: string): boolean {
    return isObject(this.capabilities?.[capability]);
  }

  /** Whether it has the capability, or its capabilities are not known. */
  mayHave(capability: string): boolean {
    return this.capabilities === undefined || this.has(capability);
  }

  /**
   * Reads a whole list; undefined if the upstream has no such list. Errors get the name of the upstream. `maxWaitMs`:
   * for a caller that needs more than what can be had soon.
   */
  async readList(
    list: OfferedList,
    params: Params,
    context: Context,
    maxWaitMs?: number,
  ): Promise<ListContents | undefined> {
    const { method, capability } = list;
    let isOffered = false;
    try {
      isOffered = await this.offers(context, (capabilities) =>
        list.capability === undefined ? list.isOffered(capabilities) : isObject(capabilities[list.capability]),
      );
      if (!isOffered) return undefined;
      return await this.#read(list, params, context, maxWaitMs);
    } catch (error) {
      const isUnknown = isMethodNotFound(error);
      // Many upstreams declare prompts or resources and have no lists of them.
      if (isUnknown && method !== LISTS.tools.method) return undefined;
      if (context.signal.aborted) throw error;
      if (capability !== undefined) this.#missing.set(capability, isOffered ? "list" : "discover");
      // The answer will show that the upstream is available again.
      if (isOffered && this.#problem !== undefined) void this.#discover(context);
      if (!isUnknown) throw error;
      const message = `The upstream declares tools and does not know ${method}`;
      throw new ConnectionError("protocol", message, { cause: error, ...THE_UPSTREAM });
    }
  }

  /** Called when the upstream has answered. Callers whose lists lacked it are notified. */
  available(): void {
    for (const [capability, awaited] of [...this.#missing]) if (awaited === "discover") this.#listed(capability);
  }

  #listed(capability: ListCapability | undefined): void {
    if (capability !== undefined && this.#missing.delete(capability)) this.#onChanged(capability);
  }

  get #isUp(): boolean {
    return this.upstream.isUp?.() ?? true;
  }

  /** Waits for a list for a short time. If it comes later, it is kept, and callers are notified. */
  async #read(list: OfferedList, params: Params, context: Context, maxWaitMs?: number): Promise<ListContents> {
    const { method, capability } = list;
    const late = this.#late.get(method);
    const stop = forwardAbort(context.signal);
    const read = (signal: AbortSignal): Promise<ListContents> =>
      attempt(() => readAllPages(this.upstream.handler, list, params, { ...context, signal }));
    const reading = late?.reading ?? ignoreRejection(withTimeout(LIST_TIMEOUT_MS, stop.signal, read));
    const isNew = reading !== late?.reading;
    const newMs = isOfPages(context.caller) ? PAGE_WAIT_MS : this.#isUp ? LIST_WAIT_MS : START_TIMEOUT_MS;
    const usualMs = isNew ? newMs : UNAVAILABLE_WAIT_MS;
    try {
      const contents = await this.#wait(maxWaitMs ?? usualMs, context, () => reading, { isTimeoutProblem: false });
      if (isNew) this.#late.delete(method);
      this.#listed(capability);
      return contents;
    } catch (error) {
      if (context.signal.aborted) throw error;
      if (!isTimeout(error)) stop.abort(error);
      else if (isNew) this.#keepReading(list, reading, late?.contents);
      if (!isTimeout(error) || late?.contents === undefined) throw error;
      return { ...late.contents, ttlMs: 0 };
    } finally {
      stop.forget();
    }
  }

  #keepReading({ method, capability }: OfferedList, reading: Promise<ListContents>, before?: ListContents): void {
    this.#late.set(method, { reading, contents: before });
    reading.then(
      (contents) => {
        if (capability === undefined) {
          this.#late.delete(method);
          return;
        }
        this.#late.set(method, { reading: undefined, contents });
        const isChanged = before !== undefined && JSON.stringify(before.items) !== JSON.stringify(contents.items);
        if (isChanged) this.#missing.set(capability, "list");
        this.#listed(capability);
      },
      (error: unknown) => {
        this.#late.delete(method);
        if (!isMethodNotFound(error)) this.#problem = withUpstreamName(this.upstream.name, error);
      },
    );
  }

  async #wait<T>(
    ms: number,
    context: Context,
    work: (context: Context) => Promise<T>,
    { isTimeoutProblem }: { readonly isTimeoutProblem: boolean },
  ): Promise<T> {
    const { signal } = context;
    const before = this.#problem;
    try {
      const limitMs = before === undefined ? ms : UNAVAILABLE_WAIT_MS;
      const isStarting = this.capabilities === undefined || !this.#isUp;
      const late = isStarting ? "The upstream is still starting; ask again" : undefined;
      const request = (signal: AbortSignal): Promise<T> => attempt(() => work({ ...context, signal }));
      const done = await withTimeout(limitMs, signal, request, late, late && THE_UPSTREAM);
      this.#problem = undefined;
      return done;
    } catch (error) {
      if (signal.aborted || isMethodNotFound(error)) throw error;
      const named = withUpstreamName(this.upstream.name, error);
      const isLate = isTimeout(error);
      if (isLate && !isTimeoutProblem && before === undefined) throw named;
      this.#problem = isLate && before !== undefined ? before : named;
      throw this.#problem;
    }
  }

  #discover(context: Context): Promise<Result> {
    const known = this.#pending;
    if (known !== undefined && performance.now() - known.since < REDISCOVER_MS) return known.answer;
    known?.stop.abort(new Error("The upstream did not answer"));
    const stop = new AbortController();
    const answer = ignoreRejection(
      this.#sendDiscover(backgroundContext(context, stop.signal)).finally(() => {
        if (this.#pending?.stop === stop) this.#pending = undefined;
      }),
    );
    this.#pending = { answer, stop, since: performance.now() };
    return answer;
  }

  async #sendDiscover(context: Context): Promise<Result> {
    const request: Request = { method: "server/discover", params: {} };
    const result = await attempt(() => this.upstream.handler(request, context));
    const { capabilities } = result;
    this.capabilities = isObject(capabilities) ? capabilities : {};
    this.#problem = undefined;
    this.available();
    return result;
  }
}
