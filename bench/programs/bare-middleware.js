// What an author has to write who does the work of a built-in middleware by hand, and only for a call as
// bench/middleware.ts makes it: a function `(request, context, next)`, which is async and awaits `next` if it has to see
// the outcome, and passes on `{ ...context }` if it has to change the context. There is no code of ours in it: nothing is
// checked, and `next` is the server itself. What a built-in middleware costs beyond it is our overhead. It is not
// TypeScript, since the loader of the measurements adds a call for the name of each function that is created.

import * as api from "@opentelemetry/api";
import { Ajv } from "ajv";

// authorize: the first rule that matches the name decides. The rule here is ["*"].
const RULES = [{ allow: true, tools: [/^.*$/s] }];
function authorize(request, context, next) {
  const { name } = request.params;
  const rule = RULES.find(({ tools }) => tools.some((glob) => glob.test(name)));
  if (rule?.allow !== true) throw new Error(`Unknown tool: ${name}`);
  return next(request, context);
}

// breaker: refuses calls of one that failed too often in a row, and counts its failures.
const failures = new Map();
async function breaker(request, context, next) {
  const key = context.item?.upstream ?? "";
  const { count = 0, until = 0 } = failures.get(key) ?? {};
  if (count >= 5 && performance.now() < until) throw new Error(`${key} has failed several times in a row`);
  try {
    const result = await next(request, context);
    failures.delete(key);
    return result;
  } catch (error) {
    failures.set(key, { count: (failures.get(key)?.count ?? 0) + 1, until: performance.now() + 30_000 });
    throw error;
  }
}

// concurrency: counts the calls of the caller that run.
const running = new Map();
async function concurrency(request, context, next) {
  const key = context.caller.principal ?? "";
  const count = running.get(key) ?? 0;
  if (count >= 1e9) throw new Error("Too many calls");
  running.set(key, count + 1);
  try {
    return await next(request, context);
  } finally {
    running.set(key, running.get(key) - 1);
  }
}

// confirm: compares the name with the pattern `delete*`, also behind the prefix of an upstream.
const CONFIRMED = /^(?:.*[_-])?delete/;
function confirm(request, context, next) {
  if (CONFIRMED.test(request.params.name)) throw new Error("Not confirmed");
  return next(request, context);
}

// log: measures the time, and learns the upstream. The level is such that only an error would be written.
function writeLine({ method }, upstream, begun, error) {
  process.stderr.write(`${method} ${upstream}: ${error}, ${performance.now() - begun} ms\n`);
}
async function log(request, context, next) {
  const begun = performance.now();
  let upstream;
  const routed = (name, sent) => {
    upstream = name;
    context.observer?.routed(name, sent);
  };
  try {
    return await next(request, { ...context, observer: { routed } });
  } catch (error) {
    writeLine(request, upstream, begun, error);
    throw error;
  }
}

// metrics: a gauge of running calls, and a histogram for each method, tool, upstream and error.
const BUCKETS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];
const histograms = new Map();
const inFlight = new Map();
function inner(map, key) {
  let found = map.get(key);
  if (found === undefined) map.set(key, (found = new Map()));
  return found;
}
function observe({ method, params }, upstream, error, seconds) {
  const byError = inner(inner(inner(histograms, method), params.name), upstream);
  let histogram = byError.get(error);
  if (histogram === undefined) byError.set(error, (histogram = { counts: BUCKETS.map(() => 0), seconds: 0 }));
  histogram.counts[BUCKETS.findIndex((limit) => seconds <= limit)] += 1;
  histogram.seconds += seconds;
}
async function metrics(request, context, next) {
  const { method } = request;
  const begun = performance.now();
  let upstream;
  const routed = (name, sent) => {
    upstream = name;
    context.observer?.routed(name, sent);
  };
  let error = "";
  inFlight.set(method, (inFlight.get(method) ?? 0) + 1);
  try {
    return await next(request, { ...context, observer: { routed } });
  } catch (thrown) {
    error = thrown.name;
    throw thrown;
  } finally {
    inFlight.set(method, inFlight.get(method) - 1);
    observe(request, upstream, error, (performance.now() - begun) / 1_000);
  }
}

// pin: finds the digest of the tool among those that were approved.
const approved = new Map([["echo", "a"]]);
function pin(request, context, next) {
  if (approved.get(request.params.name) !== "a") throw new Error("Not approved");
  return next(request, context);
}

// redact: looks for secrets in the result, and in notifications and questions.
const SECRET = /\bgh[pousr]_[A-Za-z0-9]{36,255}|(?<![\w-])eyJ[\w-]{8,}\.eyJ[\w-]{8,}/;
function clean(value) {
  // The text here is shorter than any secret.
  if (typeof value === "string") return value.length > 15 && SECRET.test(value) ? "[redacted]" : value;
  if (typeof value !== "object" || value === null) return value;
  let copy;
  for (const key of Object.keys(value)) {
    const cleaned = clean(value[key]);
    if (cleaned === value[key]) continue;
    copy ??= Array.isArray(value) ? [...value] : { ...value };
    copy[key] = cleaned;
  }
  return copy ?? value;
}
async function redact(request, context, next) {
  const notify = (notification) => context.notify(clean(notification));
  const ask = (question, options) => context.ask(clean(question), options);
  return clean(await next(request, { ...context, notify, ask }));
}

// shape: adds up the lengths of the texts of the result.
async function shape(request, context, next) {
  const result = await next(request, context);
  let sum = 0;
  for (const { type, text } of result.content) if (type === "text") sum += text.length;
  return sum > 20_000 ? { ...result, content: [{ type: "text", text: "Too long" }] } : result;
}

// trace: a span that is the child of what `_meta` has, is active during the call, and goes to the upstream in `_meta`.
// There is no SDK here, so that nothing is recorded.
const getter = { keys: (meta) => Object.keys(meta), get: (meta, key) => meta[key] };
const setter = { set: (meta, key, value) => (meta[key] = value) };
async function trace(request, context, next) {
  const { method, params } = request;
  const parent = api.propagation.extract(api.context.active(), params._meta, getter);
  const attributes = {
    "mcp.method.name": method,
    "mcp.protocol.version": context.revision,
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": params.name,
  };
  const kind = api.SpanKind.SERVER;
  const span = api.trace.getTracer("bench").startSpan(`${method} ${params.name}`, { kind, attributes }, parent);
  const active = api.trace.setSpan(parent, span);
  const _meta = { ...params._meta };
  api.propagation.inject(active, _meta, setter);
  const routed = (upstream, sent) => {
    if (upstream !== undefined) span.setAttribute("catenary.upstream", upstream);
    context.observer?.routed(upstream, sent);
  };
  const sent = { method, params: { ...params, _meta } };
  try {
    return await api.context.with(active, () => next(sent, { ...context, observer: { routed } }));
  } catch (error) {
    span.setStatus({ code: api.SpanStatusCode.ERROR });
    throw error;
  } finally {
    span.end();
  }
}

// validate: finds the tool by its name, and checks the arguments with its compiled schema.
const schema = { type: "object", properties: { text: { type: "string" } } };
const checks = new Map([["echo", new Ajv().compile(schema)]]);
function validate(request, context, next) {
  const { name, arguments: args } = request.params;
  if (checks.get(name)?.(args) !== true) throw new Error("Invalid arguments");
  return next(request, context);
}

const MIDDLEWARE = { authorize, breaker, concurrency, confirm, log, metrics, pin, redact, shape, trace, validate };

/** A context of ours creates its signal when it is spread, which costs more than the spread, so it is not used here. */
const CONTEXT = {
  revision: "1",
  caller: { style: "stateless", key: "", capabilities: {}, canBeAsked: false },
  signal: new AbortController().signal,
  logLevel: undefined,
  session: undefined,
  notify: () => undefined,
  ask: () => undefined,
  // They are here because a spread that adds a field takes V8 twenty times as long as one that only replaces fields.
  item: undefined,
  observer: undefined,
};

/** The server behind one of them. Calls are made one after another, so one variable is enough for the real context. */
function inFrontOf(middleware, server) {
  let real;
  const next = (request, context) => {
    context.observer?.routed(undefined, request);
    return server(request, real);
  };
  return (request, context) => {
    real = context;
    return request.method === "tools/call" ? middleware(request, CONTEXT, next) : server(request, context);
  };
}

/** By the name of the built-in middleware: the server behind the one that was written by hand. */
export function createBareHandlers(server) {
  return new Map(Object.entries(MIDDLEWARE).map(([name, middleware]) => [name, inFrontOf(middleware, server)]));
}
