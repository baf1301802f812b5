// Remembers facts from tool lists for later calls: which arguments are mirrored in headers, and whether a call may be
// retried. Tools with invalid header declarations are removed from lists, as the specification requires of HTTP clients
// (basic/transports/streamable-http, schema extension).

import { ConnectionError } from "../../core/errors.ts";
import type { Context, Handler, Request, Result } from "../../core/handler.ts";
import type { RequestMessage } from "../../jsonrpc/message.ts";
import { isObject } from "../../core/values.ts";
import { codeOf, McpError } from "../../protocol/errors.ts";
import { mirrorHeaders, headerParams, type HeaderParam } from "../../protocol/headers.ts";
import { toolPages } from "../../protocol/pages.ts";
import type { Revision } from "../../protocol/revision.ts";

interface ToolFact {
  readonly headers: readonly HeaderParam[];
  readonly isIdempotent: boolean;
}

/** If there are more tools than this, the oldest entry is dropped. */
const MAX_TOOLS = 10_000;

export class ToolFacts {
  readonly #entries = new Map<string, ToolFact>();
  readonly #warn: (text: string) => void;
  /** Whether arguments are mirrored in headers, which only stateless servers read. */
  mirrorsHeaders = false;
  /** The listing that a call of an unknown tool has started. It is kept, so that the tools are listed only once. */
  #listing: Promise<void> | undefined;

  constructor(warn: (text: string) => void) {
    this.#warn = warn;
  }

  /** Whether the tool declares itself read-only or idempotent. */
  isIdempotent(tool: unknown): boolean {
    return typeof tool === "string" && this.#entries.get(tool)?.isIdempotent === true;
  }

  headersFor({ method, params }: RequestMessage): Readonly<Record<string, string>> {
    const name = method === "tools/call" ? params?.["name"] : undefined;
    const entry = typeof name === "string" ? this.#entries.get(name) : undefined;
    return entry === undefined || entry.headers.length === 0
      ? NO_HEADERS
      : mirrorHeaders(entry.headers, params?.["arguments"]);
  }

  /** Forgets everything. Call this when the tools have changed or the server may have been replaced. */
  forget(): void {
    this.#entries.clear();
    this.#listing = undefined;
  }

  /** Wraps a handler: reads facts from its tool lists, and lists the tools if a call needs facts of an unknown tool. */
  wrap(handler: Handler, revision: Revision): Handler {
    return async (request, context) => {
      if (request.method === "tools/list") return this.#learn(await handler(request, context));
      if (request.method !== "tools/call" || !this.mirrorsHeaders) return handler(request, context);
      // The schema of a tool determines the headers of a call, so it must be known first.
      if (!this.#entries.has(String(request.params["name"])))
        await (this.#listing ??= this.#readUntilFound(handler, request, context).catch(() => {
          this.#listing = undefined;
        }));
      try {
        return await handler(request, context);
      } catch (error) {
        const cause: unknown = error instanceof ConnectionError ? error.cause : error;
        const isMismatch = cause instanceof McpError && cause.code === codeOf("header_mismatch", revision);
        if (!isMismatch || !(await this.#refresh(handler, request, context))) throw error;
        return handler(request, context);
      }
    };
  }

  #learn(result: Result): Result {
    const { tools } = result;
    if (!Array.isArray(tools)) return result;
    const kept = tools.filter((tool: unknown) => this.#addTool(tool));
    return kept.length === tools.length ? result : { ...result, tools: kept };
  }

  /** Returns whether the tool stays in the list. */
  #addTool(tool: unknown): boolean {
    if (!isObject(tool) || typeof tool["name"] !== "string") return true;
    const { name, annotations } = tool;
    const { inputSchema } = tool;
    const mirrors = this.mirrorsHeaders && isObject(inputSchema);
    const { params, problem } = mirrors ? headerParams(inputSchema) : { params: [], problem: undefined };
    this.#entries.delete(name);
    if (problem !== undefined) {
      this.#warn(`The tool ${JSON.stringify(name)} is omitted because it cannot be called over HTTP: ${problem}`);
      return false;
    }
    const hints = isObject(annotations) ? annotations : {};
    const isIdempotent = hints["readOnlyHint"] === true || hints["idempotentHint"] === true;
    this.#entries.set(name, { headers: params, isIdempotent });
    if (this.#entries.size > MAX_TOOLS) for (const oldest of this.#entries.keys()) return this.#entries.delete(oldest);
    return true;
  }

  /** Reads the list again up to the tool; returns whether its headers have changed. */
  async #refresh(handler: Handler, call: Request, context: Context): Promise<boolean> {
    const name = call.params["name"] as string;
    const before = JSON.stringify(this.#entries.get(name)?.headers);
    this.#entries.delete(name);
    await this.#readUntilFound(handler, call, context);
    const after = this.#entries.get(name);
    return after !== undefined && JSON.stringify(after.headers) !== before;
  }

  async #readUntilFound(handler: Handler, call: Request, context: Context): Promise<void> {
    const silent: Context = { ...context, notify: () => undefined };
    for await (const page of toolPages(handler, silent)) {
      this.#learn(page);
      if (this.#entries.has(call.params["name"] as string)) break;
    }
  }
}

const NO_HEADERS: Readonly<Record<string, string>> = {};
