// Compares the headers of a tool call with its arguments, before middleware can change the arguments. A tool's schema
// may require that a header repeats an argument (specification, basic/transports/streamable-http, server behavior for
// custom headers). A server checks this for its own tools. A gateway checks it for its upstreams, which may not get the
// headers. The schemas come from the tool lists that callers request. For a tool that was in none of them, the gateway
// requests the list itself.

import { abortable } from "../core/async.ts";
import type { Context, Handler, Request, Result } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { McpError } from "../protocol/errors.ts";
import { checkHeaderParams, headerParams, type HeaderParam } from "../protocol/headers.ts";
import { toolPages } from "../protocol/pages.ts";

const MAX_TOOLS = 10_000;
/** How soon the list may be read again for an unknown tool. Otherwise each call of an invented name would read it. */
const REREAD_MS = 10_000;

/**
 * Checks only calls over HTTP of a stateless revision (one without sessions), since in older revisions no header
 * repeats an argument.
 */
export function headerGate(handler: Handler): Handler {
  const gate = new HeaderGate(handler);
  return (request, context) => {
    if (context.caller.headers === undefined || context.caller.style !== "stateless") return handler(request, context);
    if (request.method === "tools/list") return gate.list(request, context);
    return request.method === "tools/call" ? gate.call(request, context) : handler(request, context);
  };
}

type Headers = NonNullable<Context["caller"]["headers"]>;

class HeaderGate {
  readonly #handler: Handler;
  /** By tool, the arguments that headers repeat. */
  readonly #tools = new Map<string, readonly HeaderParam[]>();
  #reading: Promise<void> | undefined;
  /** When the whole list was last read. */
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(handler: Handler) {
    this.#handler = handler;
  }

  async list(request: Request, context: Context): Promise<Result> {
    const result = await this.#handler(request, context);
    this.#learn(result);
    return result;
  }

  call(request: Request, context: Context): Promise<Result> {
    const known = this.#tools.get(String(request.params["name"]));
    // The usual case: no header repeats an argument.
    return known?.length === 0 ? this.#handler(request, context) : this.#check(request, context, known);
  }

  async #check(request: Request, context: Context, known: readonly HeaderParam[] | undefined): Promise<Result> {
    const headers = context.caller.headers as Headers;
    if (context.headersChecked === true) return this.#handler(request, context);
    if (known === undefined) {
      if (performance.now() - this.#readAt > REREAD_MS) await this.#read(context);
      // The schema may be outdated, so it is read again before the call is refused.
    } else if (this.#mismatch(request, headers) !== undefined) await this.#read(context);
    const mismatch = this.#mismatch(request, headers);
    if (mismatch !== undefined) throw McpError.of("header_mismatch", mismatch);
    const isChecked = this.#tools.has(String(request.params["name"]));
    return this.#handler(request, isChecked ? { ...context, headersChecked: true } : context);
  }

  #mismatch({ params }: Request, headers: Headers): string | undefined {
    const known = this.#tools.get(String(params["name"])) ?? [];
    return checkHeaderParams(known, params["arguments"], headers);
  }

  /** Reads the list, once for all calls that wait. If that fails, calls of unknown tools are not checked. */
  #read(context: Context): Promise<void> {
    this.#reading ??= this.#readAll({ ...context, signal: new AbortController().signal, notify: () => undefined })
      .then(
        () => void (this.#readAt = performance.now()),
        () => undefined,
      )
      .finally(() => (this.#reading = undefined));
    return abortable(context.signal, this.#reading);
  }

  async #readAll(context: Context): Promise<void> {
    for await (const page of toolPages(this.#handler, context)) this.#learn(page);
  }

  #learn({ tools }: Result): void {
    if (!Array.isArray(tools)) return;
    for (const tool of tools as unknown[]) {
      if (!isObject(tool) || typeof tool["name"] !== "string") continue;
      const { name, inputSchema } = tool;
      this.#tools.delete(name);
      this.#tools.set(name, isObject(inputSchema) ? headerParams(inputSchema).params : []);
    }
    for (const oldest of this.#tools.keys()) {
      if (this.#tools.size <= MAX_TOOLS) return;
      this.#tools.delete(oldest);
    }
  }
}
