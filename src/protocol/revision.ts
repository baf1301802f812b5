// A revision of the protocol as a value. The newest is written out in full. Each older one is a delta to its successor:
// the method names that it adds or lacks, and functions that convert messages up to the successor and down from it.
// A codec composes the deltas into one function per method, so a method that never changed costs one lookup. The
// deltas are in revisions/.

import type { Notification, Params, Result } from "../core/handler.ts";
import type { ErrorBody } from "../jsonrpc/message.ts";
import type { CodeChanges } from "./errors.ts";
import { methodNotFound } from "./errors.ts";

export type Json = { readonly [key: string]: unknown };

/** How messages change between two revisions. A method that is not listed does not change. */
export interface Step {
  /** By method, for requests of either side. Throws an McpError if the other revision cannot express the request. */
  readonly request?: Readonly<Record<string, (params: Params) => Params>>;
  /** Applied to every request, after the change for its method. */
  readonly everyRequest?: (params: Params, method: string) => Params;
  readonly result?: Readonly<Record<string, (result: Result) => Result>>;
  /** Applied to every result, after the change for its method. */
  readonly everyResult?: (result: Result, method: string) => Result;
  /** By method. Returning undefined drops the notification. */
  readonly notification?: Readonly<Record<string, (params: Params | undefined) => Params | undefined>>;
  /** Applied to every notification that has params, after the change for its method. */
  readonly everyNotification?: (params: Params, method: string) => Params;
  readonly clientCapabilities?: (capabilities: Json) => Json;
  readonly serverCapabilities?: (capabilities: Json) => Json;
  readonly implementation?: (implementation: Json) => Json;
  readonly error?: (error: ErrorBody, request: { readonly method: string; readonly params: Params }) => ErrorBody;
}

export interface Vocabulary {
  /** Requests from the client to the server. */
  readonly requests: readonly string[];
  /** Requests from the server to the client. */
  readonly clientRequests: readonly string[];
  readonly clientNotifications: readonly string[];
  readonly serverNotifications: readonly string[];
}

/** What every revision says. */
interface Described {
  readonly name: string;
  readonly style: "session" | "stateless";
  /** Whether JSON-RPC batches are allowed. */
  readonly batches?: boolean;
}

export interface Delta extends Described {
  /** Method names that the successor does not have. */
  readonly adds?: Partial<Vocabulary>;
  /** Method names that only the successor has. */
  readonly lacks?: Partial<Vocabulary>;
  /** Invalid tool arguments are a JSON-RPC error in this and all earlier revisions, and a tool result in later ones. */
  readonly argumentErrors?: true;
  /** Clients of this and all earlier revisions cannot parse an SSE event without data; see `primesStreams`. */
  readonly unprimedStreams?: true;
  /** Error codes that differ from the successor's. */
  readonly codes?: CodeChanges;
  readonly up: Step;
  readonly down: Step;
}

/** Converts messages in one direction between a revision and the newest one: see `lift` and `lower` of `Revision`. */
export interface Codec {
  request(method: string, params: Params): Params;
  result(method: string, result: Result): Result;
  notification(notification: Notification): Notification | undefined;
  clientCapabilities(capabilities: Json): Json;
  serverCapabilities(capabilities: Json): Json;
  implementation(implementation: Json): Json;
  error(error: ErrorBody, request: { readonly method: string; readonly params: Params }): ErrorBody;
}

export interface Revision extends Omit<Described, "batches">, Readonly<Record<keyof Vocabulary, ReadonlySet<string>>> {
  readonly batches: boolean;
  readonly codes: CodeChanges;
  /** Whether invalid tool arguments are a JSON-RPC error instead of a tool result. */
  readonly argumentErrors: boolean;
  /** Whether an SSE stream starts with an event that has an id and no data, so that it can be resumed at once. */
  readonly primesStreams: boolean;
  /** Converts from this revision to the newest. */
  readonly lift: Codec;
  /** Converts from the newest revision to this one. */
  readonly lower: Codec;
}

/** The newest revision. All other code uses its message shapes, so its messages need no conversion. */
export interface Newest extends Described {
  readonly vocabulary: Vocabulary;
}

/** Builds all revisions from the newest one and the deltas. Both the deltas and the returned list are oldest first. */
export function buildRevisions(newest: Newest, deltas: readonly Delta[]): readonly Revision[] {
  const revisions: Revision[] = [];
  let names = newest.vocabulary;
  let codes: CodeChanges = {};
  let argumentErrors = false;
  let primesStreams = true;
  const ups: DirectedStep[] = [];
  const downs: DirectedStep[] = [];
  const add = (of: Newest | Delta): void => {
    revisions.unshift({
      name: of.name,
      style: of.style,
      batches: of.batches === true,
      codes,
      argumentErrors,
      primesStreams: primesStreams && of.style === "session",
      requests: new Set(names.requests),
      clientRequests: new Set(names.clientRequests),
      clientNotifications: new Set(names.clientNotifications),
      serverNotifications: new Set(names.serverNotifications),
      lift: codec(ups),
      lower: codec(downs),
    });
  };
  add(newest);
  for (const delta of deltas.toReversed()) {
    const above = names;
    names = changeNames(above, delta);
    codes = { ...codes, ...delta.codes };
    argumentErrors ||= delta.argumentErrors === true;
    primesStreams &&= delta.unprimedStreams !== true;
    ups.unshift({ step: delta.up, removed: removedNames(names, above), refuses: false });
    downs.push({ step: delta.down, removed: removedNames(above, names), refuses: true });
    add(delta);
  }
  return revisions;
}

/** A step up or down, with the method names that it removes. */
interface DirectedStep {
  readonly step: Step;
  readonly removed: { readonly requests: ReadonlySet<string>; readonly notifications: ReadonlySet<string> };
  /** Whether a request with a removed name is refused. False on the way up, where the session layer handles it. */
  readonly refuses: boolean;
}

function changeNames(above: Vocabulary, delta: Delta): Vocabulary {
  const change = (kind: keyof Vocabulary): readonly string[] => {
    const lacks = new Set(delta.lacks?.[kind]);
    return [...above[kind].filter((name) => !lacks.has(name)), ...(delta.adds?.[kind] ?? [])];
  };
  return {
    requests: change("requests"),
    clientRequests: change("clientRequests"),
    clientNotifications: change("clientNotifications"),
    serverNotifications: change("serverNotifications"),
  };
}

function removedNames(before: Vocabulary, after: Vocabulary): DirectedStep["removed"] {
  const requests = new Set([...after.requests, ...after.clientRequests]);
  const notifications = new Set([...after.clientNotifications, ...after.serverNotifications]);
  return {
    requests: new Set([...before.requests, ...before.clientRequests].filter((name) => !requests.has(name))),
    notifications: new Set(
      [...before.clientNotifications, ...before.serverNotifications].filter((name) => !notifications.has(name)),
    ),
  };
}

type Change<T> = (value: T, method: string) => T;

interface Changes<T> {
  /** For the methods that some step changes. */
  readonly byMethod: ReadonlyMap<string, readonly Change<T>[]>;
  readonly others: readonly Change<T>[];
}

function codec(path: readonly DirectedStep[]): Codec {
  const steps = path.map(({ step }) => step);
  const requests = changesOf<Params>(
    path.map(({ step, removed, refuses }) => ({
      named: refuses
        ? { ...step.request, ...Object.fromEntries([...removed.requests].map((method) => [method, refuse])) }
        : step.request,
      every: step.everyRequest,
    })),
  );
  const results = changesOf<Result>(steps.map((step) => ({ named: step.result, every: step.everyResult })));
  const notifications = changesOf<Params | undefined>(
    steps.map(({ notification, everyNotification: every }) => ({
      named: notification,
      every: every && ((params, method) => params && every(params, method)),
    })),
  );
  const removedNotifications = new Set(path.flatMap(({ removed }) => [...removed.notifications]));
  const changed = new Set(steps.flatMap((step) => Object.keys(step.notification ?? {})));
  const pipe = (kind: "clientCapabilities" | "serverCapabilities" | "implementation") => {
    const changes = steps.flatMap((step) => step[kind] ?? []);
    return (value: Json): Json => changes.reduce((current, change) => change(current), value);
  };
  const errors = steps.flatMap((step) => step.error ?? []);
  return {
    // These two are on the path of every call, so they are loops of their own.
    request: (method, params) => {
      let current = params;
      for (const step of requests.byMethod.get(method) ?? requests.others) current = step(current, method);
      return current;
    },
    result: (method, result) => {
      let current = result;
      for (const step of results.byMethod.get(method) ?? results.others) current = step(current, method);
      return current;
    },
    notification: (notification) => {
      const { method, params } = notification;
      if (removedNotifications.has(method)) return undefined;
      let after = params;
      for (const step of notifications.byMethod.get(method) ?? notifications.others) after = step(after, method);
      if (after === params) return after === undefined && changed.has(method) ? undefined : notification;
      return after === undefined ? undefined : { ...notification, params: after };
    },
    clientCapabilities: pipe("clientCapabilities"),
    serverCapabilities: pipe("serverCapabilities"),
    implementation: pipe("implementation"),
    error: (error, request) => errors.reduce((body, step) => step(body, request), error),
  };
}

function refuse(_: unknown, method: string): never {
  throw methodNotFound(method);
}

function changesOf<T>(
  steps: readonly {
    readonly named: Readonly<Record<string, Change<T>>> | undefined;
    readonly every: Change<T> | undefined;
  }[],
): Changes<T> {
  const changesFor = (method?: string): readonly Change<T>[] =>
    steps.flatMap(({ named, every }) => {
      const ofMethod = method !== undefined && named && Object.hasOwn(named, method) ? named[method] : undefined;
      return [ofMethod, every].filter((step) => step !== undefined);
    });
  const methods = new Set(steps.flatMap(({ named }) => Object.keys(named ?? {})));
  return { byMethod: new Map([...methods].map((method) => [method, changesFor(method)])), others: changesFor() };
}
