// The headers of a call held against its arguments, before any link can change those: some tools' schemas say that an
// argument stands in a header too, and whoever reads bodies must see that both say the same (specification,
// basic/transports/streamable-http, server behavior for custom headers). A server does this for its own tools; a
// gateway, whose ends may never see a header, does it for theirs. What the schemas say is read from the lists that
// callers get, and from a list of our own for a tool that nobody has listed.

import type { Context } from "../core/handler.ts";
import type { Handler, Request, Result } from "../core/handler.ts";
import { abortable } from "../core/async.ts";
import { isObject } from "../core/objects.ts";
import { McpError } from "../protocol/errors.ts";
import { checkHeaderParams, setHeld, wereHeld } from "../protocol/header-match.ts";
import { headerParams, type HeaderParam } from "../protocol/header-params.ts";
import { styleOf } from "./upstream/caller-key.ts";

/** Tools that are remembered; those named first go first. */
const MOST_TOOLS = 10_000;
/** Pages of a list that are walked. */
const MOST_PAGES = 100;
/** A tool that was not in the list is not looked for again so soon: anybody may call what there is not. */
const LOOK_AGAIN_MS = 10_000;

/** Only callers of exchange style over HTTP repeat arguments in headers. */
export function headerGate(handler: Handler): Handler {
  const gate = new HeaderGate(handler);
  return (request, context) => {
    if (context.caller.headers === undefined || styleOf(context) !== "stateless") return handler(request, context);
    if (request.method === "tools/list") return gate.list(request, context);
    return request.method === "tools/call" ? gate.call(request, context) : handler(request, context);
  };
}

type Headers = NonNullable<Context["caller"]["headers"]>;

class HeaderGate {
  readonly #handler: Handler;
  /** By tool, the arguments that stand in headers too. */
  readonly #tools = new Map<string, readonly HeaderParam[]>();
  #reading: Promise<void> | undefined;
  /** When the whole list was read the last time. */
  #readAt = Number.NEGATIVE_INFINITY;

  constructor(handler: Handler) {
    this.#handler = handler;
  }

  async list(request: Request, context: Context): Promise<Result> {
    const result = await this.#handler(request, context);
    this.#note(result);
    return result;
  }

  call(request: Request, context: Context): Promise<Result> {
    const known = this.#tools.get(String(request.params["name"]));
    // The path of every call, and nearly always this one.
    return known?.length === 0 ? this.#handler(request, context) : this.#held(request, context, known);
  }

  async #held(request: Request, context: Context, known: readonly HeaderParam[] | undefined): Promise<Result> {
    const headers = context.caller.headers as Headers;
    if (wereHeld(headers)) return this.#handler(request, context);
    if (known === undefined) {
      if (performance.now() - this.#readAt > LOOK_AGAIN_MS) await this.#read(context);
      // What was known may be old: that is no reason to refuse.
    } else if (this.#mismatch(request, headers) !== undefined) await this.#read(context);
    const mismatch = this.#mismatch(request, headers);
    if (mismatch !== undefined) throw McpError.of("header_mismatch", mismatch);
    if (this.#tools.has(String(request.params["name"]))) setHeld(headers);
    return this.#handler(request, context);
  }

  #mismatch({ params }: Request, headers: Headers): string | undefined {
    const known = this.#tools.get(String(params["name"])) ?? [];
    return checkHeaderParams(known, params["arguments"], headers);
  }

  /** For all who wait for it. A call whose tool cannot be listed goes on: the end has the last word. */
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
    let cursor: unknown;
    for (let pages = 0; pages < MOST_PAGES; pages += 1) {
      const params = cursor === undefined ? {} : { cursor };
      const page = await this.#handler({ method: "tools/list", params }, context);
      this.#note(page);
      cursor = page["nextCursor"];
      if (cursor === undefined) return;
    }
  }

  #note({ tools }: Result): void {
    if (!Array.isArray(tools)) return;
    for (const tool of tools as unknown[]) {
      if (!isObject(tool) || typeof tool["name"] !== "string") continue;
      const { name, inputSchema } = tool;
      this.#tools.delete(name);
      this.#tools.set(name, isObject(inputSchema) ? headerParams(inputSchema).params : []);
    }
    for (const oldest of this.#tools.keys()) {
      if (this.#tools.size <= MOST_TOOLS) return;
      this.#tools.delete(oldest);
    }
  }
}
