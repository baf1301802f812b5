// Makes an OpenTelemetry span for each request, with the names of OpenTelemetry's conventions for MCP. The parent of a
// span comes from `params._meta`, and the span itself goes there for the upstream (`traceparent`, `tracestate`,
// `baggage`). Where spans go is set up by the program, with an OpenTelemetry SDK; without one, nothing is recorded.

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type {
  Attributes,
  Context as OtelContext,
  Span,
  SpanKind,
  SpanStatusCode,
  TextMapGetter,
  TextMapSetter,
} from "@opentelemetry/api";
import { ignoreRejection, within } from "../../core/async.ts";
import type { Context, Handler, Meta, Middleware, Request, Result } from "../../core/handler.ts";
import { boolean, choice, code, documented, type OptionsOf, type ValuesOf } from "../../core/fields.ts";
import { errorMessage } from "../../core/values.ts";
import { McpError } from "../../protocol/errors.ts";
import { withoutSecrets } from "../../core/redactor.ts";
import { withoutQuery } from "../../core/secrets.ts";
import { define, type DefinedMiddleware } from "../define.ts";
import { jsonOf, ObservedCall, type CallReader } from "../observe.ts";
import { errorType } from "./metrics.ts";

const OPTIONS = {
  kind: choice("The side of the spans: client for the middleware of one upstream.", ["server", "client"]).or("server"),
  content: boolean("Whether spans have arguments, results and error messages, without secrets that are recognized.").or(
    false,
  ),
  api: documented("The module `@opentelemetry/api`. Default: it is imported.", code<object>()),
};

/** Options of `trace()`. */
export type TraceOptions = OptionsOf<typeof OPTIONS>;

type Api = typeof import("@opentelemetry/api");

/** A variable, so that bundlers and compilers do not look for the package, which may be missing. */
const PACKAGE: string = "@opentelemetry/api";
const MAX_CONTENT = 10_000;
const FLUSH_MS = 2_000;

/**
 * Makes an OpenTelemetry span for each request.
 *
 * @example
 * chain(trace()).to({ notes: { command: "npx", args: ["-y", "notes-mcp"] } })
 */
export const trace: DefinedMiddleware<[options?: TraceOptions]> = define({
  name: "trace",
  summary: "Makes an OpenTelemetry span for each request. Needs the package @opentelemetry/api.",
  options: OPTIONS,
  keepsLists: true,
  middleware: createTrace,
});

function createTrace({ kind, content: hasContent, api }: ValuesOf<typeof OPTIONS>): Middleware {
  let tracer = api && new Tracer(api as Api, kind, hasContent);
  let loading: Promise<Tracer> | undefined;
  const load = async (): Promise<Tracer> => (tracer = new Tracer(await loadApi(), kind, hasContent));
  const middleware: Middleware = function trace(request, context, next) {
    // A subscription is open for as long as its caller likes.
    if (request.method === "subscriptions/listen") return next(request, context);
    if (tracer !== undefined) return tracer.run(request, context, next);
    loading ??= ignoreRejection(load());
    return loading.then((loaded) => loaded.run(request, context, next));
  };
  middleware.close = async () => tracer?.flush();
  return middleware;
}

/** Also looks in the folder of the program, since the command may be installed elsewhere. */
async function loadApi(): Promise<Api> {
  try {
    return (await import(/* @vite-ignore */ /* webpackIgnore: true */ PACKAGE)) as Api;
  } catch {
    try {
      // As bundlers do not see it, since they would warn.
      const { createRequire } = process.getBuiltinModule("node:module");
      const path = createRequire(join(process.cwd(), "program.js")).resolve(PACKAGE);
      return (await import(/* @vite-ignore */ /* webpackIgnore: true */ pathToFileURL(path).href)) as Api;
    } catch (cause) {
      const message = `The middleware trace needs the package ${PACKAGE}: npm install ${PACKAGE}`;
      throw McpError.of("internal_error", message, { middlewareName: "trace" }, { cause });
    }
  }
}

const GETTER: TextMapGetter<Meta> = {
  keys: (meta) => Object.keys(meta),
  get: (meta, key) => {
    const value = meta[key];
    return typeof value === "string" ? value : undefined;
  },
};
const SETTER: TextMapSetter<Record<string, unknown>> = {
  set: (meta, key, value) => {
    meta[key] = value;
  },
};

/** What SDKs have beside the API. */
interface Flushable {
  forceFlush?(): Promise<void>;
}

class Tracer {
  // The parts of the API, since it takes long to look them up in a module.
  readonly #contexts: Api["context"];
  readonly #propagation: Api["propagation"];
  readonly #traces: Api["trace"];
  readonly #errorCode: SpanStatusCode;
  readonly #kind: SpanKind;
  readonly #hasContent: boolean;
  readonly #reader: CallReader<Span> = { end: (call) => this.#end(call) };

  constructor(api: Api, kind: "server" | "client", hasContent: boolean) {
    this.#contexts = api.context;
    this.#propagation = api.propagation;
    this.#traces = api.trace;
    this.#errorCode = api.SpanStatusCode.ERROR;
    this.#kind = kind === "server" ? api.SpanKind.SERVER : api.SpanKind.CLIENT;
    this.#hasContent = hasContent;
  }

  run(request: Request, context: Context, next: Handler): Promise<Result> {
    const contexts = this.#contexts;
    const traces = this.#traces;
    const { _meta: meta } = request.params;
    const outer = contexts.active();
    const parent = meta === undefined ? outer : this.#propagation.extract(outer, meta, GETTER);
    const kind = this.#kind;
    const attributes = attributesOf(request, context, this.#hasContent);
    // The provider may be set up after this middleware was created, so the tracer is asked for each time.
    const span = traces.getTracer("catenary").startSpan(spanName(request), { kind, attributes }, parent);
    const active = traces.setSpan(parent, span);
    const call = new ObservedCall(this.#reader, request, context);
    call.state = span;
    const sent = this.#withSpan(request, active);
    return contexts.with(active, () => call.run(next, sent));
  }

  /** Sends spans that the SDK still holds, since the program may end now. The API has no function for that. */
  async flush(): Promise<void> {
    const provider = this.#traces.getTracerProvider() as Flushable & { getDelegate?(): Flushable };
    const sent = async (): Promise<void> => (provider.getDelegate?.() ?? provider).forceFlush?.();
    // What the exporter cannot send is its own concern.
    await within(
      FLUSH_MS,
      sent().catch(() => undefined),
    );
  }

  /** The request with the span in its `_meta`. Unchanged if nothing is propagated. */
  #withSpan(request: Request, active: OtelContext): Request {
    const carrier: Record<string, unknown> = {};
    this.#propagation.inject(active, carrier, SETTER);
    if (isEmpty(carrier)) return request;
    const { params } = request;
    return { ...request, params: { ...params, _meta: { ...params._meta, ...carrier } } };
  }

  #end(call: ObservedCall<Span>): void {
    const { state: span, upstream, result, error, errorCode } = call;
    const type = errorType(call);
    if (upstream !== undefined) span.setAttribute("catenary.upstream", upstream);
    if (this.#hasContent && result?.["content"] !== undefined) {
      span.setAttribute("gen_ai.tool.call.result", shownContent(result["structuredContent"] ?? result["content"]));
    }
    if (type !== "") {
      span.setAttribute("error.type", type);
      if (errorCode !== undefined) span.setAttribute("rpc.response.status_code", String(errorCode));
      const hasMessage = this.#hasContent && error !== undefined;
      span.setStatus({ code: this.#errorCode, ...(hasMessage && { message: withoutSecrets(errorMessage(error)) }) });
    }
    span.end();
  }
}

function isEmpty(fields: object): boolean {
  for (const _key in fields) return false;
  return true;
}

/** Without a URI, of which there are too many. */
function spanName({ method, params }: Request): string {
  const { name } = params;
  return typeof name === "string" && (method === "tools/call" || method === "prompts/get")
    ? `${method} ${name}`
    : method;
}

function attributesOf({ method, params }: Request, { revision }: Context, hasContent: boolean): Attributes {
  const { name, uri, arguments: args } = params;
  if (method === "tools/call") {
    const attributes: Attributes = {
      "mcp.method.name": method,
      "mcp.protocol.version": revision,
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": String(name),
    };
    if (hasContent && args !== undefined) attributes["gen_ai.tool.call.arguments"] = shownContent(args);
    return attributes;
  }
  const attributes: Attributes = { "mcp.method.name": method, "mcp.protocol.version": revision };
  if (method === "prompts/get" && typeof name === "string") attributes["gen_ai.prompt.name"] = name;
  if (typeof uri === "string") attributes["mcp.resource.uri"] = withoutQuery(uri);
  return attributes;
}

function shownContent(value: unknown): string {
  return withoutSecrets(jsonOf(value)).slice(0, MAX_CONTENT);
}
