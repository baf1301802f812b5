// The one memory of what `tools/list` said about tools: which arguments headers repeat, whether a call may be sent
// twice, and whether a tool can run as a task. For a tool that was in no list so far, the list is read. The owner of the
// facts calls `forget` when the tools have changed or the server may have been replaced.

import { abortable } from "../core/async.ts";
import type { CalledItem, Context, Handler, Notification, Result } from "../core/handler.ts";
import { asError, isObject } from "../core/values.ts";
import { headerParams, mirrorHeaders, type HeaderParam } from "./header-params.ts";
import { toolPages } from "../protocol/walk-pages.ts";
import type { TaskSupport } from "../protocol/tasks.ts";

export interface ToolFact extends NonNullable<CalledItem["facts"]> {
  /** The arguments that headers repeat. Empty if headers are not read. */
  readonly headers: readonly HeaderParam[];
  readonly headerProblem: string | undefined;
  readonly taskSupport: TaskSupport;
  /** The schemas as listed, unchecked. */
  readonly inputSchema: unknown;
  readonly outputSchema: unknown;
}

/** If there are more tools than this, the oldest one is forgotten. */
const MAX_TOOLS = 10_000;
/** How soon the list may be read again for an unknown tool. Otherwise each call of an invented name would read it. */
const REREAD_MS = 10_000;
/** How many times in a row the list is read if it keeps changing. */
const MAX_READS = 5;
const NO_HEADERS: Readonly<Record<string, string>> = {};

export class ToolFacts {
  /** Whether schemas are searched for arguments that headers repeat. Only stateless HTTP has such headers. */
  readsHeaders: boolean;
  readonly #tools = new Map<unknown, ToolFact>();
  /** Why the list could not be read the last time; undefined if it was read, or never requested. */
  failure: Error | undefined;
  /** When the whole list was last read. */
  #readAt = -Infinity;
  #reading: Promise<void> | undefined;
  #version = 0;

  constructor(readsHeaders = false) {
    this.readsHeaders = readsHeaders;
  }

  get(name: unknown): ToolFact | undefined {
    return this.#tools.get(name);
  }

  /** The headers that repeat arguments of a call. */
  headersFor({ method, params }: Notification): Readonly<Record<string, string>> {
    const headers = method === "tools/call" ? this.get(params?.["name"])?.headers : undefined;
    return headers === undefined || headers.length === 0 ? NO_HEADERS : mirrorHeaders(headers, params?.["arguments"]);
  }

  learn({ tools }: Result): void {
    const listed: readonly unknown[] = Array.isArray(tools) ? tools : [];
    for (const tool of listed) {
      if (!isObject(tool) || typeof tool["name"] !== "string") continue;
      this.#tools.delete(tool["name"]);
      this.#tools.set(tool["name"], factOf(tool, this.readsHeaders));
    }
    for (const oldest of this.#tools.keys()) {
      if (this.#tools.size <= MAX_TOOLS) return;
      this.#tools.delete(oldest);
    }
  }

  forget(): void {
    this.#version += 1;
    this.#tools.clear();
    this.#readAt = -Infinity;
    this.#reading = undefined;
  }

  /** Reads the list if the tool is unknown. Undefined if the tool is not listed, or the list cannot be read. */
  async find(name: unknown, handler: Handler, context: Context): Promise<ToolFact | undefined> {
    for (let attempts = 0; attempts < MAX_READS; attempts += 1) {
      if (this.#tools.has(name) || performance.now() - this.#readAt <= REREAD_MS) break;
      const version = this.#version;
      await this.refresh(handler, context);
      // If the list changed while it was read, it is read again: a call without these facts could mean something else.
      if (version === this.#version) break;
    }
    return this.get(name);
  }

  /** Reads the whole list, once for all who wait, so the caller's signal ends only its own wait. Ignores failures. */
  refresh(handler: Handler, context: Context): Promise<void> {
    this.#reading ??= this.#read(handler, context);
    return abortable(context.signal, this.#reading);
  }

  #read(handler: Handler, context: Context): Promise<void> {
    const silent: Context = { ...context, signal: new AbortController().signal, notify: () => undefined };
    const readAll = async (): Promise<void> => {
      for await (const page of toolPages(handler, silent)) {
        // Forgotten in the meantime: the list may be outdated.
        if (this.#reading !== reading) return;
        this.learn(page);
      }
      if (this.#reading === reading) this.#readAt = performance.now();
    };
    const end = (failure?: unknown): void => {
      if (this.#reading !== reading) return;
      this.#reading = undefined;
      this.failure = failure === undefined ? undefined : asError(failure);
    };
    const reading: Promise<void> = readAll().then(() => end(), end);
    return reading;
  }
}

/** What the definition of a tool says about calls of it. `readsHeaders`: whether headers may repeat arguments. */
export function factOf(
  { inputSchema, outputSchema, annotations, execution }: { readonly [field: string]: unknown },
  readsHeaders: boolean,
): ToolFact {
  const { params, problem } =
    readsHeaders && isObject(inputSchema) ? headerParams(inputSchema) : { params: [], problem: undefined };
  const hints = isObject(annotations) ? annotations : {};
  const isDestructive = hints["destructiveHint"] === true;
  const isReadOnly = hints["readOnlyHint"] === true && !isDestructive;
  const support = isObject(execution) ? execution["taskSupport"] : undefined;
  return {
    headers: params,
    headerProblem: problem,
    isIdempotent: hints["readOnlyHint"] === true || hints["idempotentHint"] === true,
    isDestructive,
    isReadOnly,
    // Specification: `destructiveHint` is true by default, and means nothing if the tool is read-only.
    mayDestroy: !isReadOnly && hints["destructiveHint"] !== false,
    // A tool that declares nothing about tasks cannot run as one.
    taskSupport: support === "required" || support === "optional" ? support : "forbidden",
    inputSchema,
    outputSchema,
  };
}
