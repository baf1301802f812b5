// A revision is a value. The newest is written out; each older one is a delta to its successor: what it
// adds and lacks, and how messages go up to the successor's shape and down to its own. The codec of a
// revision is the walk along the deltas, folded once into one function per method, so that a method
// that never changed costs one look-up. This file folds; the dates and the facts are in revisions/.

import type { Notification, Params, Result } from "../core/handler.ts";
import type { ErrorBody } from "../jsonrpc/message.ts";
import type { CodeChanges } from "./errors.ts";
import { methodNotFound } from "./errors.ts";

export type Json = { readonly [key: string]: unknown };

/** How messages change on one step. A method that is not named does not change. */
export interface Step {
  /** Requests by method, also those that an end makes of its caller. May throw McpError: it cannot be said there. */
  readonly request?: Readonly<Record<string, (params: Params) => Params>>;
  /** For requests of every method, after the method's own change. */
  readonly everyRequest?: (params: Params, method: string) => Params;
  readonly result?: Readonly<Record<string, (result: Result) => Result>>;
  /** For results of every method, after the method's own change. */
  readonly everyResult?: (result: Result, method: string) => Result;
  /** Undefined: there is no such notification, or nothing of it is left. */
  readonly notification?: Readonly<Record<string, (params: Params | undefined) => Params | undefined>>;
  /** For every notification that has params. */
  readonly everyNotification?: (params: Params, method: string) => Params;
  readonly clientCapabilities?: (capabilities: Json) => Json;
  readonly serverCapabilities?: (capabilities: Json) => Json;
  readonly implementation?: (implementation: Json) => Json;
  readonly error?: (error: ErrorBody, request: { readonly method: string; readonly params: Params }) => ErrorBody;
}

/** Names that exist in a revision, by who sends them. */
export interface Vocabulary {
  /** Requests of a caller. */
  readonly requests: readonly string[];
  /** Requests that an end makes of its caller. */
  readonly asks: readonly string[];
  readonly callerNotifications: readonly string[];
  readonly endNotifications: readonly string[];
}

export interface Delta {
  readonly name: string;
  readonly style: "session" | "stateless";
  /** Whether messages may come several in an array. */
  readonly batches: boolean;
  /** Here but not in the successor. */
  readonly adds?: Partial<Vocabulary>;
  /** In the successor but not here. */
  readonly lacks?: Partial<Vocabulary>;
  /** Arguments that do not fit a tool's schema are an error here, and in all before; in the successor, a result. */
  readonly argumentErrors?: true;
  /** An event without data would be read as a broken message here, and in all before. */
  readonly unprimed?: true;
  /** Error codes that differ from the successor's. */
  readonly codes?: CodeChanges;
  readonly up: Step;
  readonly down: Step;
}

/** The whole way between a revision and the newest. */
export interface Codec {
  request(method: string, params: Params): Params;
  result(method: string, result: Result): Result;
  notification(notification: Notification): Notification | undefined;
  clientCapabilities(capabilities: Json): Json;
  serverCapabilities(capabilities: Json): Json;
  implementation(implementation: Json): Json;
  error(error: ErrorBody, request: { readonly method: string; readonly params: Params }): ErrorBody;
}

export interface Revision {
  readonly name: string;
  readonly style: "session" | "stateless";
  readonly batches: boolean;
  readonly codes: CodeChanges;
  /** Whether arguments that do not fit a tool's schema are an error of the request. */
  readonly argumentErrors: boolean;
  /** Whether an event stream begins with an event that has an id and no data, so that it can be resumed at once. */
  readonly primes: boolean;
  readonly requests: ReadonlySet<string>;
  readonly asks: ReadonlySet<string>;
  readonly callerNotifications: ReadonlySet<string>;
  readonly endNotifications: ReadonlySet<string>;
  /** From this revision's shape to the newest. */
  readonly lift: Codec;
  /** From the newest shape to this revision's. */
  readonly lower: Codec;
}

/** The newest revision: the shape that everything inside is in, so nothing of it needs to change. */
export interface Newest {
  readonly name: string;
  readonly style: "session" | "stateless";
  readonly batches: boolean;
  readonly vocabulary: Vocabulary;
}

/** All revisions, oldest first, from the newest and the deltas below it, oldest first. */
export function fold(newest: Newest, deltas: readonly Delta[]): readonly Revision[] {
  const revisions: Revision[] = [];
  let words = newest.vocabulary;
  let codes: CodeChanges = {};
  let argumentErrors = false;
  let primes = true;
  const ups: Walked[] = [];
  const downs: Walked[] = [];
  const add = (of: Newest | Delta): void => {
    revisions.unshift({
      name: of.name,
      style: of.style,
      batches: of.batches,
      codes,
      argumentErrors,
      primes: primes && of.style === "session",
      requests: new Set(words.requests),
      asks: new Set(words.asks),
      callerNotifications: new Set(words.callerNotifications),
      endNotifications: new Set(words.endNotifications),
      lift: codec(ups),
      lower: codec(downs),
    });
  };
  add(newest);
  for (const delta of deltas.toReversed()) {
    const above = words;
    words = changeWords(above, delta);
    codes = { ...codes, ...delta.codes };
    argumentErrors ||= delta.argumentErrors === true;
    primes &&= delta.unprimed !== true;
    ups.unshift({ step: delta.up, gone: goneWords(words, above), refuses: false });
    downs.push({ step: delta.down, gone: goneWords(above, words), refuses: true });
    add(delta);
  }
  return revisions;
}

/** One step of a walk, with the names that exist before it and not after it. */
interface Walked {
  readonly step: Step;
  readonly gone: { readonly requests: ReadonlySet<string>; readonly notifications: ReadonlySet<string> };
  /** Whether a request whose name is gone is refused. Going up it is not: a session answers its own words itself. */
  readonly refuses: boolean;
}

const KINDS = ["requests", "asks", "callerNotifications", "endNotifications"] as const;

function changeWords(above: Vocabulary, delta: Delta): Vocabulary {
  const change = (kind: (typeof KINDS)[number]): readonly string[] => {
    const lacks = new Set(delta.lacks?.[kind]);
    return [...above[kind].filter((word) => !lacks.has(word)), ...(delta.adds?.[kind] ?? [])];
  };
  return {
    requests: change("requests"),
    asks: change("asks"),
    callerNotifications: change("callerNotifications"),
    endNotifications: change("endNotifications"),
  };
}

function goneWords(before: Vocabulary, after: Vocabulary): Walked["gone"] {
  const requests = new Set([...after.requests, ...after.asks]);
  const notifications = new Set([...after.callerNotifications, ...after.endNotifications]);
  return {
    requests: new Set([...before.requests, ...before.asks].filter((word) => !requests.has(word))),
    notifications: new Set(
      [...before.callerNotifications, ...before.endNotifications].filter((word) => !notifications.has(word)),
    ),
  };
}

type Change<T> = (value: T, method: string) => T;

function codec(walk: readonly Walked[]): Codec {
  const steps = walk.map((walked) => walked.step);
  const requests = byMethod<Params>(
    walk.map(({ step, gone, refuses }) => ({
      own: refuses
        ? { ...step.request, ...Object.fromEntries([...gone.requests].map((m) => [m, refuse])) }
        : step.request,
      every: step.everyRequest,
    })),
  );
  const results = byMethod<Result>(steps.map((step) => ({ own: step.result, every: step.everyResult })));
  const notifications = byMethod<Params | undefined>(
    steps.map((step) => ({
      own: step.notification,
      every: step.everyNotification && whereThere(step.everyNotification),
    })),
  );
  const gone = new Set(walk.flatMap((walked) => [...walked.gone.notifications]));
  const changed = new Set(steps.flatMap((step) => Object.keys(step.notification ?? {})));
  const errors = steps.flatMap((step) => step.error ?? []);
  return {
    request: (method, params) => requests(params, method),
    result: (method, result) => results(result, method),
    notification: (notification) => {
      const { method, params } = notification;
      if (gone.has(method)) return undefined;
      const after = notifications(params, method);
      if (after === params) return after === undefined && changed.has(method) ? undefined : notification;
      return after === undefined ? undefined : { ...notification, params: after };
    },
    clientCapabilities: pipe(steps.flatMap((step) => step.clientCapabilities ?? [])),
    serverCapabilities: pipe(steps.flatMap((step) => step.serverCapabilities ?? [])),
    implementation: pipe(steps.flatMap((step) => step.implementation ?? [])),
    error: (error, request) => errors.reduce((body, change) => change(body, request), error),
  };
}

function refuse(_: unknown, method: string): never {
  throw methodNotFound(method);
}

/** A notification without params has nothing that a change for all of them could find. */
function whereThere(change: Change<Params>): Change<Params | undefined> {
  return (params, method) => params && change(params, method);
}

/** One function for each method that some step names, and one for all others. */
function byMethod<T>(
  steps: readonly {
    readonly own: Readonly<Record<string, Change<T>>> | undefined;
    readonly every: Change<T> | undefined;
  }[],
): Change<T> {
  const walkOf = (method?: string): Change<T> =>
    pipe(
      steps.flatMap(({ own, every }) => {
        const mine = method !== undefined && own && Object.hasOwn(own, method) ? own[method] : undefined;
        return [mine, every].filter((change) => change !== undefined);
      }),
    );
  const methods = new Set(steps.flatMap(({ own }) => Object.keys(own ?? {})));
  const walks = new Map([...methods].map((method) => [method, walkOf(method)]));
  const others = walkOf();
  return (value, method) => (walks.get(method) ?? others)(value, method);
}

function pipe<T, Rest extends readonly unknown[]>(
  changes: readonly ((value: T, ...rest: Rest) => T)[],
): (value: T, ...rest: Rest) => T {
  const [first, second] = changes;
  if (first === undefined) return (value, ..._) => value;
  if (second === undefined) return first;
  return (value, ...rest) => changes.reduce((so, change) => change(so, ...rest), value);
}
