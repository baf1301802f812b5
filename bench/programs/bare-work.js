// The work that a middleware cannot do without on a call of bench/middleware.ts, written as plainly as it can be, without
// any code of ours: no compose, no checks, no promises, a context that is a plain object. bench/middleware.ts measures it
// in the same rounds, and what a middleware costs beyond it is our overhead. Middleware that is not here only looks at the
// method or at a name, so all that it costs counts as overhead. It is not TypeScript, since the loader that the
// measurements run with adds a call for the name of each function, and this takes longer than the work.

import * as api from "@opentelemetry/api";
import { Ajv } from "ajv";

const REQUEST = { method: "tools/call", params: { name: "echo", arguments: { text: "hello world" }, _meta: {} } };
const RESULT = { resultType: "complete", content: [{ type: "text", text: "hello world" }] };

const CONTEXT = {
  revision: "1",
  caller: {},
  signal: new AbortController().signal,
  logLevel: undefined,
  session: undefined,
  notify: () => undefined,
  ask: () => undefined,
  // It is here because a spread that adds a field takes V8 twenty times as long as one that only replaces fields.
  onRoute: undefined,
};

/** Keeps the compiler from leaving out the work. */
export let kept;

function repeat(work) {
  return (count) => {
    for (let n = 1; n <= count; n += 1) kept = work();
  };
}

/** Middleware that wants to know the upstream passes on another context, with a function for that. */
function withRoute(run) {
  const onRoute = (upstream) => {
    run.upstream = upstream;
  };
  return { ...CONTEXT, onRoute };
}

// authorize: the first rule that matches the name decides. The rule here is ["*"].
const RULES = [{ allow: true, tools: [/^.*$/] }];
function authorize() {
  const { name } = REQUEST.params;
  return RULES.find(({ tools }) => tools.some((glob) => glob.test(name)))?.allow;
}

// breaker: finds the circuit of the upstream, and counts failures in a row.
const circuits = new Map([["server", { failures: 0 }]]);
function breaker() {
  const run = { upstream: "server" };
  const context = withRoute(run);
  const circuit = circuits.get(run.upstream);
  if (circuit !== undefined) circuit.failures = 0;
  return context;
}

// concurrency: counts the calls of the caller, up when one begins and down when it ends.
const running = new Map([["", 0]]);
function concurrency() {
  running.set("", (running.get("") ?? 0) + 1);
  running.set("", (running.get("") ?? 0) - 1);
}

// confirm: compares the name with the pattern `delete*`, also behind the prefix of an upstream.
const CONFIRMED = /^(?:.*[_-])?delete/;
function confirm() {
  return CONFIRMED.test(REQUEST.params.name);
}

// log: the time at which the call began, and the upstream. The level is such that no line is written.
function log() {
  const run = { begun: performance.now(), upstream: "" };
  return [run, withRoute(run)];
}

// metrics: a gauge of running calls, and one observation in the histogram of the method, tool, upstream and error.
const BUCKETS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];
const histogram = { counts: BUCKETS.map(() => 0), seconds: 0 };
const series = new Map([["tools/call", new Map([["echo", new Map([["", new Map([["", histogram]])]])]])]]);
const inFlight = new Map([["tools/call", 0]]);
function metrics() {
  const { method, params } = REQUEST;
  const run = { begun: performance.now(), upstream: "" };
  inFlight.set(method, (inFlight.get(method) ?? 0) + 1);
  const context = withRoute(run);
  inFlight.set(method, (inFlight.get(method) ?? 0) - 1);
  const found = series.get(method)?.get(params.name)?.get(run.upstream)?.get("");
  if (found === undefined) return context;
  const seconds = (performance.now() - run.begun) / 1_000;
  const at = BUCKETS.findIndex((limit) => seconds <= limit);
  found.counts[at] = (found.counts[at] ?? 0) + 1;
  found.seconds += seconds;
  return context;
}

// pin: finds the digest of the tool among those that were approved.
const approved = new Map([["server", new Map([["echo", { digest: "a" }]])]]);
function pin() {
  return approved.get("server")?.get(REQUEST.params.name)?.digest === "a";
}

// redact: reads all strings of the result, and passes on a context whose notifications and questions are read too. The
// string here is shorter than any secret.
const SECRET = /\bgh[pousr]_[A-Za-z0-9]{36,255}|(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}/;
function hasSecret(value) {
  if (typeof value === "string") return value.length > 15 && SECRET.test(value);
  if (typeof value !== "object" || value === null) return false;
  for (const key of Object.keys(value)) {
    if (hasSecret(value[key])) return true;
  }
  return false;
}
function redact() {
  const notify = (notification) => {
    if (!hasSecret(notification)) CONTEXT.notify(notification);
  };
  const ask = (question) => (hasSecret(question) ? undefined : CONTEXT.ask(question));
  kept = hasSecret(RESULT);
  return { ...CONTEXT, notify, ask };
}

// shape: adds up the lengths of the texts of the result.
function shape() {
  let sum = 0;
  for (const { type, text } of RESULT.content) if (type === "text") sum += text.length;
  return sum > 25_000;
}

// trace: one span through the API of OpenTelemetry, which is the child of what `_meta` has, is active during the call,
// and goes to the upstream in `_meta`. There is no SDK here, so that nothing is recorded.
const getter = { keys: (meta) => Object.keys(meta), get: () => undefined };
const setter = { set: () => undefined };
function trace() {
  const { method, params } = REQUEST;
  const parent = api.propagation.extract(api.context.active(), params._meta, getter);
  const attributes = {
    "mcp.method.name": method,
    "mcp.protocol.version": CONTEXT.revision,
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": params.name,
  };
  const kind = api.SpanKind.SERVER;
  const span = api.trace.getTracer("bench").startSpan(`${method} ${params.name}`, { kind, attributes }, parent);
  const active = api.trace.setSpan(parent, span);
  api.propagation.inject(active, {}, setter);
  const context = api.context.with(active, () => withRoute({ upstream: "" }));
  span.end();
  return context;
}

// validate: finds the tool by its name, and checks the arguments with its compiled schema.
const schema = { type: "object", properties: { text: { type: "string" } } };
const checks = new Map([["echo", new Ajv().compile(schema)]]);
function validate() {
  return checks.get(REQUEST.params.name)?.(REQUEST.params.arguments);
}

const WORK = { authorize, breaker, concurrency, confirm, log, metrics, pin, redact, shape, trace, validate };

/** By the name of the middleware: does its work so many times. */
export const BARE_WORK = new Map(Object.entries(WORK).map(([name, work]) => [name, repeat(work)]));
