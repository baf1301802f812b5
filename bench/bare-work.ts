// The work that some middleware has with every call, written down as barely as it can be done: a clock is read, a counter
// is bumped, a schema is checked, a context gets a function that hears of the upstream. bench/middleware.ts measures it.

import * as api from "@opentelemetry/api";
import { Ajv } from "ajv";
import { Semaphore } from "../src/core/async.ts";
import { CANCEL_TOKEN, CancelToken, copyContext, type ContextBeforeSignal } from "../src/core/cancel.ts";
import type { Context } from "../src/core/handler.ts";
import { matchesGlob } from "../src/core/text.ts";
import { fakeCaller } from "../test/support/handlers/fake-client.ts";

const METHOD = "tools/call";
const TOOL = "echo";
const RESULT = { resultType: "complete", content: [{ type: "text", text: "hello world" }] };
const ARGUMENTS = { text: "hello world" };
/** A token remembers the copies of its context, so that a context is used for this many copies only. */
const COPIES = 16;

/** Keeps the compiler from leaving out the work. */
export let kept: unknown;

/** As a stateless call has it. */
function createContext(): Context {
  const token = new CancelToken();
  const context: unknown = { [CANCEL_TOKEN]: token, revision: "", caller: CALLER, logLevel, session, notify, ask };
  return token.attachTo(context as ContextBeforeSignal);
}

const CALLER = fakeCaller();
const [logLevel, session] = [undefined, undefined];
const notify: Context["notify"] = () => undefined;
const ask: Context["ask"] = () => Promise.reject(new Error("Nobody is asked"));

function repeat(work: () => unknown): (count: number) => void {
  return (count) => {
    for (let n = 1; n <= count; n += 1) kept = work();
  };
}

/** Repeats work with the context of a call. */
function repeatInCalls(work: (context: Context) => unknown): (count: number) => void {
  return (count) => {
    let context = createContext();
    for (let n = 1; n <= count; n += 1) {
      kept = work(context);
      if (n % COPIES === 0) context = createContext();
    }
  };
}

/** A context from which the middleware hears which upstream got the call. */
function withRoute(context: Context): Context {
  const onRoute: Context["onRoute"] = (upstream) => {
    kept = upstream;
  };
  return copyContext(context, { onRoute });
}

/** Reads all keys and texts, and looks for a pattern in texts that are long enough. */
function scan(value: unknown, pattern: RegExp): boolean {
  if (typeof value === "string") return value.length > 15 && pattern.test(value);
  if (typeof value !== "object" || value === null) return false;
  for (const key of Object.keys(value)) {
    if (scan((value as Readonly<Record<string, unknown>>)[key], pattern)) return true;
  }
  return false;
}

const slots = new Semaphore(1e9);
const approved = new Map([["server", new Map([[TOOL, { digest: "a" }]])]]);
const inFlight = new Map([[METHOD, 0]]);
const series = new Map([[METHOD, new Map([[TOOL, { count: 0, seconds: 0 }]])]]);
const validator = new Ajv().compile({ type: "object", properties: { text: { type: "string" } } });
const getter = { keys: () => [], get: () => undefined };
const setter = { set: () => undefined };

function span(context: Context): Context {
  const parent = api.propagation.extract(api.context.active(), {}, getter);
  const attributes = { "mcp.method.name": METHOD, "gen_ai.tool.name": TOOL, "gen_ai.operation.name": "execute_tool" };
  const kind = api.SpanKind.SERVER;
  const started = api.trace.getTracer("catenary").startSpan(`${METHOD} ${TOOL}`, { kind, attributes }, parent);
  const active = api.trace.setSpan(parent, started);
  api.propagation.inject(active, {}, setter);
  const copy = api.context.with(active, () => withRoute(context));
  started.end();
  return copy;
}

function count(context: Context): Context {
  const begun = performance.now();
  inFlight.set(METHOD, (inFlight.get(METHOD) ?? 0) + 1);
  const copy = withRoute(context);
  inFlight.set(METHOD, (inFlight.get(METHOD) ?? 0) - 1);
  const found = series.get(METHOD)?.get(TOOL);
  if (found !== undefined) {
    found.count += 1;
    found.seconds += performance.now() - begun;
  }
  return copy;
}

export const BARE_WORK: Readonly<Record<string, ((count: number) => void) | undefined>> = {
  authorize: repeat(() => matchesGlob("*", TOOL)),
  breaker: repeatInCalls(withRoute),
  concurrency: repeat(() => {
    void slots.acquire();
    slots.release();
  }),
  log: repeatInCalls((context) => [performance.now(), withRoute(context)]),
  metrics: repeatInCalls(count),
  pin: repeat(() => approved.get("server")?.get(TOOL)?.digest === "a"),
  redact: repeatInCalls((context) => {
    const own: Pick<Context, "notify" | "ask"> = {
      notify: (notification) => context.notify(notification),
      ask: (question, options) => context.ask(question, options),
    };
    kept = scan(RESULT, /\bgh[pousr]_[A-Za-z0-9]{36,255}|(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}/);
    return copyContext(context, own);
  }),
  trace: repeatInCalls(span),
  validate: repeat(() => validator(ARGUMENTS)),
};
