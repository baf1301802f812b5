// What the lists of an end say of its tools, kept for the calls that follow: which arguments stand in headers too, and
// whether a call may be sent twice. A tool that declares its headers wrongly is taken out of the list, as the
// specification asks of whoever speaks HTTP (basic/transports/streamable-http, schema extension); the others stay.

import type { Context } from "../../core/handler.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Handler, Request, Result } from "../../core/handler.ts";
import type { RequestMessage } from "../../jsonrpc/message.ts";
import { isObject } from "../../core/objects.ts";
import { codeOf, McpError } from "../../protocol/errors.ts";
import { mirrorHeaders } from "../../protocol/header-match.ts";
import { headerParams, type HeaderParam } from "../../protocol/header-params.ts";
import type { Revision } from "../../protocol/revision.ts";

interface Entry {
  readonly headers: readonly HeaderParam[];
  readonly isSafe: boolean;
}

/** Tools that are remembered; those named first go first. */
const MOST_TOOLS = 10_000;
/** Pages of a list that are walked to find one tool. */
const MOST_PAGES = 100;

export class ToolFacts {
  readonly #entries = new Map<string, Entry>();
  readonly #warn: (text: string) => void;
  /** Lists are taken from here on as those of an end that reads headers. */
  mirrors = false;
  /** The list that is being read, or was: for the calls of tools that nobody has listed. */
  #read: Promise<void> | undefined;

  constructor(warn: (text: string) => void) {
    this.#warn = warn;
  }

  /** Whether the tool says that a second call does no more than the first. */
  isSafe(tool: unknown): boolean {
    return typeof tool === "string" && this.#entries.get(tool)?.isSafe === true;
  }

  headersFor({ method, params }: RequestMessage): Readonly<Record<string, string>> {
    const name = method === "tools/call" ? params?.["name"] : undefined;
    const entry = typeof name === "string" ? this.#entries.get(name) : undefined;
    return entry === undefined || entry.headers.length === 0
      ? NONE
      : mirrorHeaders(entry.headers, params?.["arguments"]);
  }

  /** What was known is no longer so: the tools have changed, or another end may have taken the place of this one. */
  forget(): void {
    this.#entries.clear();
    this.#read = undefined;
  }

  /** The same handler, read along. */
  over(handler: Handler, revision: Revision): Handler {
    return async (request, context) => {
      if (request.method === "tools/list") return this.#note(await handler(request, context));
      if (request.method !== "tools/call" || !this.mirrors) return handler(request, context);
      // A call must repeat in its headers what its tool's schema says, so the schema must be known.
      if (!this.#entries.has(String(request.params["name"])))
        await (this.#read ??= this.#find(handler, request, context).catch(() => {
          this.#read = undefined;
        }));
      try {
        return await handler(request, context);
      } catch (error) {
        const said: unknown = error instanceof ConnectionError ? error.cause : error;
        const refused = said instanceof McpError && said.code === codeOf("header_mismatch", revision);
        if (!refused || !(await this.#readAgain(handler, request, context))) throw error;
        return handler(request, context);
      }
    };
  }

  #note(result: Result): Result {
    const { tools } = result;
    if (!Array.isArray(tools)) return result;
    const kept = tools.filter((tool: unknown) => this.#enter(tool));
    return kept.length === tools.length ? result : { ...result, tools: kept };
  }

  /** Whether the tool may stay. */
  #enter(tool: unknown): boolean {
    if (!isObject(tool) || typeof tool["name"] !== "string") return true;
    const { name, annotations } = tool;
    const { inputSchema } = tool;
    const reads = this.mirrors && isObject(inputSchema);
    const { params, problem } = reads ? headerParams(inputSchema) : { params: [], problem: undefined };
    this.#entries.delete(name);
    if (problem !== undefined) {
      this.#warn(`The tool ${JSON.stringify(name)} is left out, because it cannot be called over HTTP: ${problem}`);
      return false;
    }
    const hints = isObject(annotations) ? annotations : {};
    const isSafe = hints["readOnlyHint"] === true || hints["idempotentHint"] === true;
    this.#entries.set(name, { headers: params, isSafe });
    if (this.#entries.size > MOST_TOOLS) for (const oldest of this.#entries.keys()) return this.#entries.delete(oldest);
    return true;
  }

  /** Reads the list again until it comes to the tool; whether what it says differs from what we knew. */
  async #readAgain(handler: Handler, call: Request, context: Context): Promise<boolean> {
    const name = call.params["name"] as string;
    const before = JSON.stringify(this.#entries.get(name)?.headers);
    this.#entries.delete(name);
    await this.#find(handler, call, context);
    const after = this.#entries.get(name);
    return after !== undefined && JSON.stringify(after.headers) !== before;
  }

  async #find(handler: Handler, call: Request, context: Context): Promise<void> {
    const quiet: Context = { ...context, notify: () => undefined };
    let cursor: unknown;
    for (let pages = 0; pages < MOST_PAGES; pages += 1) {
      const params = cursor === undefined ? {} : { cursor };
      const page = this.#note(await handler({ method: "tools/list", params }, quiet));
      cursor = page["nextCursor"];
      if (this.#entries.has(call.params["name"] as string) || cursor === undefined) break;
    }
  }
}

const NONE: Readonly<Record<string, string>> = {};
