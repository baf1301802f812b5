// Answers requests with results that were given before: lists and reads for as long as the server allows (`ttlMs`), and
// whatever a rule names. A result is given to no other caller, unless the server or the rule says that it is public, and
// never to a caller of another part of the gateway. It is dropped when the server notifies of a change, and not kept if
// it is an error, a task, or depends on an answer of the caller. Equal requests at the same time wait for the first one.

import { callerKey } from "../../core/caller-key.ts";
import { abortable, deferred } from "../../core/async.ts";
import { copyContext, isCancelled } from "../../core/cancel.ts";
import type { Caller, Context, Handler, Request, Result } from "../../core/handler.ts";
import { boolean, count, mapOf, ms, object, ofTools, required } from "../../core/fields.ts";
import type { OptionsOf, ValuesOf } from "../../core/options.ts";
import { digest } from "../../core/seal.ts";
import { deepFreeze } from "../../core/values.ts";
import { CACHEABLE, LIST_CAPABILITIES, UNAVAILABLE } from "../../protocol/lists.ts";
import { META } from "../../protocol/model/base.ts";
import { Cache } from "../../protocol/result-cache.ts";
import { define, type ActingMiddleware, type DefinedMiddleware } from "../define.ts";
import type { ItemKind } from "../item.ts";
import { capabilityOf, namedIn } from "../named-items.ts";
import { LISTS_BY_METHOD } from "../result-items.ts";
import { matchesGlob } from "../../core/text.ts";

const RULE = {
  ttlMs: required("for how many milliseconds results are kept", ms("For how many milliseconds results are kept.")),
  public: boolean("Whether all callers get the same result.").or(false),
};

/** For how long results are kept, and for whom. */
export type CacheRule = OptionsOf<typeof RULE>;

const OPTIONS = {
  tools: ofTools(mapOf("Results of tools, by name; `*` matches any characters.", RULE)),
  prompts: mapOf("Prompts, by name.", RULE),
  resources: mapOf("Contents of resources, by URI.", RULE),
  lists: object("For how long all lists are kept.", RULE),
  maxEntries: count("How many results are kept.").or(1_000),
  maxBytes: count("The size of all results together, in characters of JSON.").or(16_777_216, "16 MiB"),
};

/** Options of `cache()`. In the names, `*` matches any characters. The first rule that matches counts. */
export type CacheOptions = OptionsOf<typeof OPTIONS>;

/** A longer request is replaced with a digest in the key. */
const MAX_KEY_LENGTH = 500;

type Rule = CacheRule & { readonly glob: string };

/**
 * Answers lists, reads and calls with results that were given before.
 *
 * @example
 * cache({ tools: { "weather*": { ttlMs: 60_000 } } })
 */
export const cache: DefinedMiddleware<[options?: CacheOptions]> = define({
  name: "cache",
  summary: "Answers lists, reads and calls with results that were given before.",
  options: OPTIONS,
  keepsLists: true,
  middleware: createCache,
});

/** The methods whose results rules by name concern. */
const USING: ReadonlySet<string> = new Set(["tools/call", "prompts/get", "resources/read"]);

function createCache({ lists: listRule, maxEntries, maxBytes, ...byName }: ValuesOf<typeof OPTIONS>): ActingMiddleware {
  const lists = listRule && { ...listRule, glob: "*" };
  const rules = new Map(
    LIST_CAPABILITIES.map((kind) => [
      kind,
      Object.entries(byName[kind] ?? {}).map(([glob, rule]): Rule => ({ ...rule, glob })),
    ]),
  );
  const ruleNamed = (kind: ItemKind, name: string): Rule | undefined =>
    rules.get(capabilityOf(kind))?.find(({ glob }) => matchesGlob(glob, name));
  const createResults = (): CachedResults => ({ cache: new Cache({ maxEntries, maxBytes }), running: new Map() });
  let results = createResults();
  const ruleFor = (request: Request): Rule | undefined => {
    const { method } = request;
    if (LISTS_BY_METHOD.has(method)) return lists;
    const named = USING.has(method) ? namedIn(request) : undefined;
    return named && ruleNamed(named.kind, named.name);
  };
  const middleware: ActingMiddleware = (request, context, next) => {
    const { method } = request;
    if (method === "subscriptions/listen") return next(request, watching(context, results.cache));
    const rule = ruleFor(request);
    if ((rule === undefined && !CACHEABLE.has(method)) || isSpecial(request, context)) return next(request, context);
    const call = new CachedCall(results, rule, request, context);
    const known = call.find();
    return known === undefined ? call.run(next) : Promise.resolve(known);
  };
  middleware.changed = () => void (results = createResults());
  middleware.needs = (kind, name) => kind === "tools" && ruleNamed(kind, name)?.glob.includes("*") === true;
  return middleware;
}

/** The answer to a question of the server, a call that must become a task, or a notification. */
function isSpecial({ params }: Request, { task, isNotification }: Context): boolean {
  const isAnswer = params["inputResponses"] !== undefined || params["requestState"] !== undefined;
  return isAnswer || task?.mode === "required" || isNotification === true;
}

/** What all calls share. */
interface CachedResults {
  readonly cache: Cache;
  /** The first of equal requests whose result a rule will keep: others wait for it. Resolves to whether it was cancelled. */
  readonly running: Map<string, Promise<boolean>>;
}

/** The context for a subscription: drops what a notification concerns. */
function watching(context: Context, cache: Cache): Context {
  const notify: Context["notify"] = (notification) => {
    cache.invalidate(notification);
    context.notify(notification);
  };
  return copyContext(context, { notify });
}

class CachedCall {
  readonly #all: CachedResults;
  readonly #rule: Rule | undefined;
  readonly #request: Request;
  readonly #context: Context;
  /** For results that belong to the caller; undefined if it is not known what they depend on. */
  readonly #ownKey: string | undefined;
  readonly #publicKey: string;
  #hasAsked = false;
  /** Lets equal requests go on that wait for this one. */
  #release: () => void = () => undefined;

  constructor(all: CachedResults, rule: Rule | undefined, request: Request, context: Context) {
    this.#all = all;
    this.#rule = rule;
    this.#request = request;
    this.#context = context;
    const key = requestKey(request);
    const owner = resultKey(context.caller);
    // JSON has no line breaks, so the last one is before the request.
    this.#ownKey = owner === undefined ? undefined : `own ${owner}\n${key}`;
    this.#publicKey = `public ${JSON.stringify(context.caller.part ?? null)}\n${key}`;
  }

  find(): Result | undefined {
    const { cache } = this.#all;
    const ofCaller = this.#ownKey === undefined ? undefined : cache.get(this.#ownKey);
    const cached = ofCaller ?? cache.get(this.#publicKey);
    if (cached === undefined || !CACHEABLE.has(this.#request.method)) return cached?.result;
    return { ...cached.result, ttlMs: Math.floor(cached.leftMs) };
  }

  async run(next: Handler): Promise<Result> {
    const { running } = this.#all;
    const key = this.#rule?.public === true ? this.#publicKey : this.#ownKey;
    if (this.#rule === undefined || key === undefined) return this.#call(next);
    if (!this.#isSafe(this.#rule)) return next(this.#request, this.#context);
    for (let first = running.get(key); first !== undefined; first = running.get(key)) {
      const wasCancelled = await abortable(this.#context.signal, first);
      const cached = this.find();
      if (cached !== undefined) return cached;
      // After a cancelled request, one of those that wait is the first one.
      if (!wasCancelled) return this.#call(next);
    }
    const released = deferred<boolean>();
    running.set(key, released.promise);
    this.#release = () => {
      // After a question to the caller, another request may be the first one now.
      if (running.get(key) === released.promise) running.delete(key);
      released.resolve(isCancelled(this.#context));
    };
    return this.#call(next).finally(this.#release);
  }

  /** A tool that matches a pattern only by chance may change something. */
  #isSafe({ glob }: Rule): boolean {
    if (this.#request.method !== "tools/call" || !glob.includes("*")) return true;
    return this.#context.item?.facts?.isReadOnly === true;
  }

  async #call(next: Handler): Promise<Result> {
    const { cache } = this.#all;
    const { method } = this.#request;
    const changes = cache.changesOf(method);
    const result = await next(this.#request, this.#noticingQuestions());
    const { ttlMs, public: isPublic = RULE.public.default } = this.#rule ?? {
      ttlMs: result["ttlMs"],
      public: result["cacheScope"] === "public",
    };
    const key = isPublic ? this.#publicKey : this.#ownKey;
    if (typeof ttlMs !== "number" || !(ttlMs > 0) || key === undefined || !this.#mayKeep(result)) return result;
    const isForAll = isPublic && this.#context.caller.part === undefined;
    const hints = CACHEABLE.has(method) && { ttlMs, cacheScope: isForAll ? "public" : "private" };
    const hinted = { ...result, ...hints };
    // A copy, since a handler in this process may change its objects later, and must be able to.
    const json = jsonOf(hinted);
    if (json !== undefined) {
      const copy = deepFreeze(JSON.parse(json) as Result);
      cache.put(key, this.#request, { result: copy, ttlMs, changes, bytes: json.length + key.length });
    }
    return hinted;
  }

  #mayKeep({ resultType, isError, _meta }: Result): boolean {
    const isComplete = resultType === undefined || resultType === "complete";
    return isComplete && isError !== true && _meta?.[UNAVAILABLE] === undefined && !this.#hasAsked;
  }

  /** A result that depends on an answer of the caller is not kept, so that the caller is asked again. */
  #noticingQuestions(): Context {
    const context = this.#context;
    if (!context.caller.canBeAsked) return context;
    const ask: Context["ask"] = (question, options) => {
      this.#hasAsked = true;
      // The answer may take long.
      this.#release();
      return context.ask(question, options);
    };
    return copyContext(context, { ask });
  }
}

function jsonOf(result: Result): string | undefined {
  try {
    return JSON.stringify(result);
  } catch {
    // A handler in this process may return what JSON cannot express.
    return undefined;
  }
}

/** What of `_meta` is different in each request, or describes the client, and does not change the result. */
const IGNORED_META: ReadonlySet<string> = new Set([...Object.values(META), "traceparent", "tracestate", "baggage"]);

function requestKey({ method, params }: Request): string {
  const { _meta, ...rest } = params;
  const meta = Object.entries(_meta ?? {}).filter(([name]) => !IGNORED_META.has(name));
  const key = JSON.stringify([method, rest, ...(meta.length === 0 ? [] : [Object.fromEntries(meta)])]);
  return key.length > MAX_KEY_LENGTH ? JSON.stringify([method, digest(key)]) : key;
}

/** Headers that are different in each request, or that no server would use to tell callers apart. */
const IGNORED_HEADERS =
  /^(?:accept|accept-encoding|cache-control|connection|content-.*|date|host|keep-alive|last-event-id|mcp-.*|pragma|te|traceparent|tracestate|baggage|transfer-encoding|upgrade|x-request-id)$/;

/**
 * The view of the caller, and its headers, since some servers tell callers apart by them: all that a server can see of
 * it. What a host framework passes along may be anything, so there nothing is known.
 */
function resultKey(caller: Caller): string | undefined {
  if (caller.env !== undefined) return undefined;
  const view = callerKey(caller, "view");
  if (caller.headers === undefined) return view;
  const headers = Object.entries(caller.headers).filter(([name]) => !IGNORED_HEADERS.test(name));
  return headers.length === 0 ? view : JSON.stringify([view, headers]);
}
