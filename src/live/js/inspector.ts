// Node's inspector inside the main thread of a guest, for profiles, for what only the engine knows about a value, and for
// the variables of the user's functions when an error is thrown. It is loaded on first use. Within one thread, the
// inspector answers before `post` returns, and a pause ends as soon as its listener returns.

import { writeSync } from "node:fs";
import type { Debugger, Runtime, Session } from "node:inspector";
import { createRequire } from "node:module";
import process from "node:process";
import { getHeapSpaceStatistics, getHeapStatistics, setFlagsFromString } from "node:v8";
// Only to get the function `gc`, which a context has if it was created while the flag was set.
// oxlint-disable-next-line no-restricted-imports
import { runInNewContext } from "node:vm";
import { ExpiringMap } from "../../core/expiring-map.ts";

type RemoteObject = Runtime.RemoteObject;

// Saved because the user's code may declare these names.
const { defineProperty } = Object;
const { deleteProperty } = Reflect;
const GLOBAL = globalThis;
const NativeMap = Map;
const symbolFor = Symbol.for.bind(Symbol);
const toBigInt = BigInt;
const toNumber = Number;
const abort = process.abort.bind(process);

/** The global property through which the inspector finds `exchange`, for a moment. */
const KEY = "catenary.exchange";
/** Values pass between the inspector and this module through this function. */
const exchange = (...received: unknown[]): unknown => {
  if (received.length > 0) [passed] = received;
  return passed;
};
let passed: unknown;
/** What the inspector calls `exchange`. */
let exchangeId = "";

/** Each evaluation is a script. */
const MAX_URLS = 10_000;
/** The URLs of scripts by their ids, while the debugger is on. */
const urls = new ExpiringMap<string, string>({ maxEntries: MAX_URLS });
let session: Session | undefined;
let isDebugging = false;

/** The answer; undefined if there was an error. */
function post(method: string, params: object = {}): unknown {
  let answer: unknown;
  connected().post(method, params, (error, result) => {
    answer = error === null ? result : undefined;
  });
  return answer;
}

function connected(): Session {
  if (session !== undefined) return session;
  const inspector = createRequire(import.meta.url)("node:inspector") as typeof import("node:inspector");
  session = new inspector.Session();
  session.connect();
  session.on("Debugger.scriptParsed", ({ params: { scriptId, url } }) => {
    if (url !== "" && !url.startsWith("node:")) urls.set(scriptId, url);
  });
  const key = symbolFor(KEY);
  defineProperty(GLOBAL, key, { value: exchange, configurable: true });
  const found = post("Runtime.evaluate", { expression: `globalThis[Symbol.for("${KEY}")]` });
  exchangeId = (found as Partial<Runtime.EvaluateReturnType> | undefined)?.result?.objectId ?? "";
  deleteProperty(GLOBAL, key);
  return session;
}

/** Turns the debugger on or off. While it is on, each evaluation and each `await` takes a little longer. */
function setDebugging(isOn: boolean): void {
  if (isOn === isDebugging) return;
  isDebugging = isOn;
  post(isOn ? "Debugger.enable" : "Debugger.disable");
}

/** Runs `work` with the debugger on. */
function debugging<T>(work: () => T): T {
  const wasOn = isDebugging;
  setDebugging(true);
  try {
    return work();
  } finally {
    setDebugging(wasOn);
  }
}

export type Pause = Debugger.PausedEventDataType;
export type PausedFrame = Debugger.CallFrame;

/** Calls `onPause` for each error that V8 expects to be uncaught, while the debugger is on. */
function onUncaught(onPause: (pause: Pause) => void): void {
  connected().on("Debugger.paused", ({ params }) => {
    if (params.reason === "exception" || params.reason === "promiseRejection") onPause(params);
    // The debugger raises the limit of the heap to pause here, so the process must be ended as V8 would have done it.
    else if (params.reason === "OOM") endForMemory();
  });
}

function endForMemory(): void {
  writeSync(2, "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n");
  abort();
}

function setPausing(isOn: boolean): void {
  post("Debugger.setPauseOnExceptions", { state: isOn ? "uncaught" : "none" });
}

/** Releases the values of the last pause. They are kept until then. */
function releasePause(): void {
  post("Runtime.releaseObjectGroup", { objectGroup: "backtrace" });
}

function urlOf(scriptId: string): string {
  return urls.get(scriptId) ?? "";
}

/** The value of a remote object. The object for the variables of a scope is a copy. */
export function valueOf({ objectId, value, unserializableValue, type }: RemoteObject): unknown {
  if (objectId === undefined) {
    if (type === "bigint") return toBigInt((unserializableValue ?? "0n").slice(0, -1));
    return unserializableValue === undefined ? value : toNumber(unserializableValue);
  }
  passed = undefined;
  const functionDeclaration = "function (exchange) { exchange(this) }";
  post("Runtime.callFunctionOn", {
    objectId,
    functionDeclaration,
    arguments: [{ objectId: exchangeId }],
    silent: true,
  });
  const found = passed;
  passed = undefined;
  return found;
}

/** What only the engine knows about a value, such as `[[Target]]` of a proxy, with the names as the inspector writes them. */
export function internalsOf(value: object): ReadonlyMap<string, RemoteObject> {
  connected();
  passed = value;
  const functionDeclaration = "function () { return this() }";
  const given = { objectId: exchangeId, functionDeclaration, objectGroup: "internals" };
  const { result } = (post("Runtime.callFunctionOn", given) ?? {}) as Partial<Runtime.CallFunctionOnReturnType>;
  passed = undefined;
  const found = post("Runtime.getProperties", { objectId: result?.objectId ?? "", ownProperties: true });
  const { internalProperties = [] } = (found ?? {}) as Partial<Runtime.GetPropertiesReturnType>;
  return new NativeMap(
    internalProperties.flatMap(({ name, value: one }) => (one === undefined ? [] : [[name, one] as const])),
  );
}

/** Releases what `internalsOf` returned. */
export function releaseInternals(): void {
  post("Runtime.releaseObjectGroup", { objectGroup: "internals" });
}

export interface LoadedScript {
  readonly url: string;
  readonly source: string;
  readonly isModule: boolean;
}

/** The scripts and modules that the engine has, in the order in which they were compiled. */
export function loadedScripts(isWanted: (url: string) => boolean): LoadedScript[] {
  const { Session } = createRequire(import.meta.url)("node:inspector") as typeof import("node:inspector");
  // A debugger that is already on does not tell them again.
  const other = new Session();
  other.connect();
  const found: (LoadedScript & { readonly id: number })[] = [];
  other.on("Debugger.scriptParsed", ({ params: { scriptId, url, isModule = false } }) => {
    if (!isWanted(url)) return;
    other.post("Debugger.getScriptSource", { scriptId }, (error, answer) => {
      if (error === null) found.push({ url, source: answer.scriptSource, isModule, id: toNumber(scriptId) });
    });
  });
  other.post("Debugger.enable");
  other.disconnect();
  return found.toSorted((one, next) => one.id - next.id);
}

/** Where a function was defined, such as `<eval 3>:1` or `file:///folder/shop.ts:4`; empty if that is not known. */
export function locationOf(value: object): string {
  return debugging(() => {
    const remote: { readonly value?: unknown } = internalsOf(value).get("[[FunctionLocation]]") ?? {};
    releaseInternals();
    const { scriptId = "", lineNumber = 0 } = (remote.value ?? {}) as Partial<Debugger.Location>;
    const url = urlOf(scriptId);
    return url === "" ? "" : `${url}:${lineNumber + 1}`;
  });
}

// Profiles the user's code in the main thread with Node's inspector: CPU time and retained allocations. reports.ts turns
// the profiles into text.

/** The number of allocated bytes between two heap samples. */
const HEAP_INTERVAL = 16 * 1024;

/** Whether a profile was started and not stopped. */
let isProfiling = false;

let gc: (() => void) | undefined;

/** Collects all garbage before it returns. The inspector's collectGarbage does so later in some versions of Node. */
export function collectGarbage(): void {
  if (gc === undefined) {
    setFlagsFromString("--expose-gc");
    gc = runInNewContext("gc") as () => void;
    setFlagsFromString("--no-expose-gc");
  }
  gc();
}

export interface HeapProfile {
  readonly heap: ReturnType<typeof getHeapStatistics>;
  readonly spaces: ReturnType<typeof getHeapSpaceStatistics>;
  readonly memory: NodeJS.MemoryUsage;
  /** How many bytes the heap has grown, and the functions that allocated what is still in use. */
  readonly grown?: number;
  readonly profile?: unknown;
}

/** Starts profiling. The returned function stops it and returns the profile. */
export function startProfiling(op: string, params: Readonly<Record<string, unknown>>, hasCode: boolean): () => unknown {
  isProfiling = op === "profile-code" || hasCode;
  const stop = op === "profile-code" ? profileTime(params) : profileHeap(params, hasCode);
  return () => {
    const profile = stop();
    isProfiling = false;
    return profile;
  };
}

/** Stops the profiler after a job was abandoned, since it would cost time and memory as long as the process runs. */
export function abortProfiling(): void {
  if (!isProfiling) return;
  post("Profiler.disable");
  post("HeapProfiler.stopSampling");
  isProfiling = false;
}

function profileTime(params: Readonly<Record<string, unknown>>): () => unknown {
  const interval = typeof params["interval"] === "number" ? params["interval"] : 500;
  post("Profiler.enable");
  post("Profiler.setSamplingInterval", { interval });
  post("Profiler.start");
  return () => {
    const stopped = post("Profiler.stop") as { readonly profile?: unknown } | undefined;
    post("Profiler.disable");
    return stopped?.profile;
  };
}

function profileHeap(params: Readonly<Record<string, unknown>>, hasCode: boolean): () => HeapProfile {
  if (hasCode || params["gc"] === true) collectGarbage();
  const before = getHeapStatistics().used_heap_size;
  if (hasCode) post("HeapProfiler.startSampling", { samplingInterval: HEAP_INTERVAL });
  return () => {
    const growth = hasCode ? heapGrowth(before) : {};
    return { heap: getHeapStatistics(), spaces: getHeapSpaceStatistics(), memory: process.memoryUsage(), ...growth };
  };
}

function heapGrowth(before: number): Pick<HeapProfile, "grown" | "profile"> {
  collectGarbage();
  const { profile } = (post("HeapProfiler.stopSampling") ?? {}) as { readonly profile?: unknown };
  return { grown: getHeapStatistics().used_heap_size - before, profile };
}

// Keeps the variables of the user's functions at the place where an error was thrown, for the text of the error and for
// evaluate-in-frame. V8 pauses at an error that it expects to be uncaught; the values are read only if that error ends
// the evaluation. Errors that the user's code catches cost next to nothing.

// Saved because the user's code may declare this name.
const { create, is, keys } = Object;

/** The most frames that are kept, and variables of a frame that are shown. */
const MAX_FRAMES = 20;
const MAX_SHOWN = 20;
/** After this many pauses there are no more until the next evaluation, since each takes about a millisecond. */
const MAX_PAUSES = 20;

/** Scopes of the function itself; the others belong to functions and modules around it. */
const OWN_SCOPES: ReadonlySet<string> = new Set(["local", "block", "catch", "eval", "with"]);
const OUTER_SCOPES: ReadonlySet<string> = new Set(["closure", "module", "script"]);
/** Parameters of rewritten code, and what every function has. */
export const HIDDEN: RegExp = /^(?:\$c\$*|arguments)$/;

export interface CapturedFrame {
  readonly name: string;
  readonly url: string;
  /** Counted from 1. */
  readonly line: number;
  readonly column: number;
  readonly self: unknown;
  /** Copies of all variables that the function could use, without globals. */
  readonly variables: Readonly<Record<string, unknown>>;
  /** The names of its own variables, the innermost first. */
  readonly own: readonly string[];
}

export class Captures {
  /** The frames of the last error. */
  frames: readonly CapturedFrame[] = [];
  readonly #isOwnFile: (url: string) => boolean;
  #isListening = false;
  #isOn = false;
  #pauses = 0;
  #pause: Pause | undefined;

  /** `isOwnFile`: whether a file belongs to the guest. */
  constructor(isOwnFile: (url: string) => boolean) {
    this.#isOwnFile = isOwnFile;
  }

  /** Forgets the variables of the last error. */
  clear(): void {
    this.frames = [];
  }

  /** The first time takes tens of milliseconds. */
  turn(isOn: boolean): void {
    if (isOn === this.#isOn) return;
    this.#isOn = isOn;
    if (isOn && !this.#isListening) {
      this.#isListening = true;
      onUncaught((pause) => this.#onPause(pause));
    }
    setDebugging(isOn);
    if (isOn) setPausing(true);
    this.#pauses = 0;
  }

  /** Must be called before each evaluation. */
  begin(): void {
    if (this.#pauses >= MAX_PAUSES) setPausing(true);
    if (this.#pauses > 0) releasePause();
    this.#pauses = 0;
    this.#pause = undefined;
  }

  /** Reads the variables if `error` is the last at which V8 has paused. */
  take(error: unknown): readonly CapturedFrame[] {
    const pause = this.#pause;
    this.#pause = undefined;
    this.frames = [];
    if (pause !== undefined && this.#isSame(pause, error)) {
      const own = pause.callFrames.filter(({ location }) => {
        const url = urlOf(location.scriptId);
        return url !== "" && !this.#isOwnFile(url);
      });
      this.frames = own.slice(0, MAX_FRAMES).map(captureFrame);
    }
    return this.frames;
  }

  #isSame({ data }: Pause, error: unknown): boolean {
    return data !== undefined && is(valueOf(data as Parameters<typeof valueOf>[0]), error);
  }

  #onPause(pause: Pause): void {
    // The values of the pause before are no longer needed.
    if (this.#pause !== undefined) releasePause();
    this.#pause = pause;
    this.#pauses += 1;
    if (this.#pauses >= MAX_PAUSES) setPausing(false);
  }
}

function captureFrame({ functionName: name, location, scopeChain, this: self }: PausedFrame): CapturedFrame {
  const variables = create(null) as Record<string, unknown>;
  const own: string[] = [];
  for (const { type, object } of scopeChain) {
    const isOwn = OWN_SCOPES.has(type);
    if (!isOwn && !OUTER_SCOPES.has(type)) continue;
    const values = (valueOf(object) ?? {}) as Record<string, unknown>;
    for (const key of keys(values)) {
      if (key in variables) continue;
      try {
        variables[key] = values[key];
      } catch {
        // It has no value yet.
        continue;
      }
      if (isOwn && own.length < MAX_SHOWN && !HIDDEN.test(key)) own.push(key);
    }
  }
  return {
    name,
    url: urlOf(location.scriptId),
    line: location.lineNumber + 1,
    column: (location.columnNumber ?? 0) + 1,
    self: valueOf(self),
    variables,
    own,
  };
}
