// Node's inspector inside the main thread of a guest, for profiles, for what only the engine knows about a value, and for
// the variables of the user's functions when an error is thrown. It is loaded on first use. Within one thread, the
// inspector answers before `post` returns, and a pause ends as soon as its listener returns.

import { writeSync } from "node:fs";
import type { Debugger, Runtime, Session } from "node:inspector";
import { createRequire } from "node:module";
import process from "node:process";
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
export function post(method: string, params: object = {}): unknown {
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
  const evaluated = post("Runtime.evaluate", { expression: `globalThis[Symbol.for("${KEY}")]` });
  exchangeId = (evaluated as Partial<Runtime.EvaluateReturnType> | undefined)?.result?.objectId ?? "";
  deleteProperty(GLOBAL, key);
  return session;
}

/** Turns the debugger on or off. While it is on, each evaluation and each `await` takes a little longer. */
export function setDebugging(isOn: boolean): void {
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
export function onUncaught(onPause: (pause: Pause) => void): void {
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

export function setPausing(isOn: boolean): void {
  post("Debugger.setPauseOnExceptions", { state: isOn ? "uncaught" : "none" });
}

/** Releases the values of the last pause. They are kept until then. */
export function releasePause(): void {
  post("Runtime.releaseObjectGroup", { objectGroup: "backtrace" });
}

export function urlOf(scriptId: string): string {
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
  const result = passed;
  passed = undefined;
  return result;
}

/** What only the engine knows about a value, such as `[[Target]]` of a proxy, with the names as the inspector writes them. */
export function internalsOf(value: object): ReadonlyMap<string, RemoteObject> {
  connected();
  passed = value;
  const functionDeclaration = "function () { return this() }";
  const callOptions = { objectId: exchangeId, functionDeclaration, objectGroup: "internals" };
  const { result } = (post("Runtime.callFunctionOn", callOptions) ?? {}) as Partial<Runtime.CallFunctionOnReturnType>;
  passed = undefined;
  const properties = post("Runtime.getProperties", { objectId: result?.objectId ?? "", ownProperties: true });
  const { internalProperties = [] } = (properties ?? {}) as Partial<Runtime.GetPropertiesReturnType>;
  return new NativeMap(
    internalProperties.flatMap(({ name, value: property }) =>
      property === undefined ? [] : [[name, property] as const],
    ),
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
  const scripts: (LoadedScript & { readonly id: number })[] = [];
  other.on("Debugger.scriptParsed", ({ params: { scriptId, url, isModule = false } }) => {
    if (!isWanted(url)) return;
    other.post("Debugger.getScriptSource", { scriptId }, (error, answer) => {
      if (error === null) scripts.push({ url, source: answer.scriptSource, isModule, id: toNumber(scriptId) });
    });
  });
  other.post("Debugger.enable");
  other.disconnect();
  return scripts.toSorted((one, next) => one.id - next.id);
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
