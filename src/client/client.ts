// A connected end with a typed verb for everything that can be asked of it. The verbs add nothing to a request
// but its shape; how it travels is the business of calls.ts, and of whoever opened the connection. `handler` is
// the same end as the bare arrow that a chain takes: no cache, no rounds, the caller's own context.

import { LOG_LEVELS, type LogLevel } from "../core/handler.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Handler, Params, Result } from "../core/handler.ts";
import type { Opened } from "../dialogue/connect.ts";
import { isObject } from "../core/objects.ts";
import type { MethodName, Methods } from "../protocol/methods.ts";
import { META, type CallToolResult, type CompleteParams, type CompleteResult, type GetPromptResult, type Implementation, type ListPromptsResult, type ListResourcesResult, type ListResourceTemplatesResult, type ListToolsResult, type Prompt, type ReadResourceResult, type Resource, type ResourceTemplate, type ServerCapabilities, type SubscriptionFilter, type Tool } from "../protocol/model/index.ts";
import { hasTasks, TASKS } from "../protocol/tasks.ts";
import { Calls, type CallOptions } from "./calls.ts";
import type { Program } from "./command.ts";
import type { Contexts } from "./contexts.ts";
import { Listens, type ChangeEvent, type ListenOptions, type Subscription } from "./subscriptions.ts";
import type { TaskHandle, Tasks } from "./tasks.ts";

/** With a cursor: that one page, as the end gave it. Without: all pages. */
export interface ListOptions extends CallOptions {
  readonly cursor?: string;
}

export interface ClientOptions {
  readonly opened: Opened;
  readonly program?: Program;
  readonly contexts: Contexts;
  readonly timeouts: { readonly idleMs?: number; readonly totalMs?: number };
}

type Arguments = { readonly [name: string]: unknown };

export class Client {
  /** The connected end as the bare arrow. */
  readonly handler: Handler;
  /** The program behind the connection, where there is one: its noise and the last of its stderr. */
  readonly program: Program | undefined;
  /** Resolves when the connection is over: with the reason, where it was not our own wish. */
  readonly closed: Promise<ConnectionError | undefined>;
  readonly #opened: Opened;
  readonly #contexts: Contexts;
  readonly #calls: Calls;
  readonly #listens: Listens;
  #tasks: Promise<Tasks> | undefined;
  #closing: Promise<void> | undefined;

  /** `connect` makes clients. */
  constructor({ opened, program, contexts, timeouts }: ClientOptions) {
    const { handler } = opened;
    this.handler = handler;
    this.program = program;
    this.#opened = opened;
    this.#contexts = contexts;
    this.#calls = new Calls(handler, contexts, timeouts.totalMs);
    this.#listens = new Listens(handler, contexts, timeouts.idleMs);
    this.closed = this.#untilOver();
  }

  /** The revision that is spoken with the end, by its date. */
  get revision(): string {
    return this.#opened.revision.name;
  }

  /** What the end says it is; never proof of anything. */
  get server(): Implementation | undefined {
    const { discovered } = this.#opened;
    // Some ends of the newest revision still write it into the body.
    return (discovered._meta?.[META.serverInfo] ?? discovered["serverInfo"]) as Implementation | undefined;
  }

  get capabilities(): ServerCapabilities {
    return (this.#opened.discovered["capabilities"] as ServerCapabilities | undefined) ?? {};
  }

  get instructions(): string | undefined {
    return this.#opened.discovered["instructions"] as string | undefined;
  }

  /** Anything else that can be asked, and anything that has a verb, in the newest shape. */
  request<M extends MethodName>(
    method: M,
    params?: Methods[M]["params"],
    options?: CallOptions,
  ): Promise<Methods[M]["result"]>;
  request(method: string, params?: Params, options?: CallOptions): Promise<Result>;
  request(method: string, params: Params = {}, options?: CallOptions): Promise<Result> {
    return this.#calls.cached(method, params, options);
  }

  /** What the end runs as a task is waited for, and answered while it asks; aborting the call cancels the task. */
  async callTool(name: string, args: Arguments = {}, options?: CallOptions): Promise<CallToolResult> {
    this.#check("tools/call");
    return (await this.#calls.tool({ name, arguments: args }, options)) as CallToolResult;
  }

  /** As a task, where the end can run it as one; otherwise the handle is over when there is one. */
  async startTool(name: string, args: Arguments = {}, options?: CallOptions): Promise<TaskHandle> {
    this.#check("tools/call");
    return (await this.#taskDesk()).start(name, args, options);
  }

  /** The handle of a task whose id was kept from elsewhere. Throws where the end does not know it. */
  async task(id: string, options?: CallOptions): Promise<TaskHandle> {
    if (this.#opened.discovered["capabilities"] !== undefined && !hasTasks(this.capabilities)) {
      throw new ConnectionError("refused", `The end has not declared the extension ${TASKS}: it knows no tasks`);
    }
    return (await this.#taskDesk()).find(id, options);
  }

  readResource(uri: string, options?: CallOptions): Promise<ReadResourceResult> {
    return this.#verb("resources/read", { uri }, options);
  }

  getPrompt(name: string, args?: { readonly [name: string]: string }, options?: CallOptions): Promise<GetPromptResult> {
    return this.#verb("prompts/get", args === undefined ? { name } : { name, arguments: args }, options);
  }

  complete(
    ref: CompleteParams["ref"],
    argument: CompleteParams["argument"],
    context?: CompleteParams["context"],
    options?: CallOptions,
  ): Promise<CompleteResult> {
    const params: CompleteParams = context === undefined ? { ref, argument } : { ref, argument, context };
    return this.#verb("completion/complete", params, options);
  }

  async listTools(options?: ListOptions): Promise<ListToolsResult> {
    return (await this.#list("tools/list", "tools", options)) as unknown as ListToolsResult;
  }

  async listResources(options?: ListOptions): Promise<ListResourcesResult> {
    return (await this.#list("resources/list", "resources", options)) as unknown as ListResourcesResult;
  }

  async listResourceTemplates(options?: ListOptions): Promise<ListResourceTemplatesResult> {
    return (await this.#list(
      "resources/templates/list",
      "resourceTemplates",
      options,
    )) as unknown as ListResourceTemplatesResult;
  }

  async listPrompts(options?: ListOptions): Promise<ListPromptsResult> {
    return (await this.#list("prompts/list", "prompts", options)) as unknown as ListPromptsResult;
  }

  /** Each tool, with its page fetched when its turn comes. */
  tools(options?: CallOptions): AsyncGenerator<Tool, void, undefined> {
    return this.#items("tools/list", "tools", options);
  }

  resources(options?: CallOptions): AsyncGenerator<Resource, void, undefined> {
    return this.#items("resources/list", "resources", options);
  }

  resourceTemplates(options?: CallOptions): AsyncGenerator<ResourceTemplate, void, undefined> {
    return this.#items("resources/templates/list", "resourceTemplates", options);
  }

  prompts(options?: CallOptions): AsyncGenerator<Prompt, void, undefined> {
    return this.#items("prompts/list", "prompts", options);
  }

  /** Whether the end is there at all, by the cheapest question of its style. */
  async ping(options?: CallOptions): Promise<void> {
    await this.#calls.fresh(this.#isSession ? "ping" : "server/discover", {}, options);
  }

  /** The least urgent log message that calls from now on want, where they do not say it themselves. */
  async setLogLevel(level: LogLevel, options?: CallOptions): Promise<void> {
    if (!LOG_LEVELS.includes(level))
      throw new TypeError(`Unknown log level ${level}; there are ${LOG_LEVELS.join(", ")}`);
    this.#check("logging/setLevel");
    if (this.#isSession) await this.#calls.fresh("logging/setLevel", { level }, options);
    this.#contexts.level = level;
  }

  /** Hears of changes until it is closed; resolves when the end has acknowledged it. */
  listen(
    filter: SubscriptionFilter,
    onEvent?: (event: ChangeEvent) => void,
    options?: ListenOptions,
  ): Promise<Subscription> {
    return this.#listens.listen(filter, onEvent, options);
  }

  /** Ends all calls and listens, and the connection; a child process is gone when it resolves, within the budget if any. */
  close(budgetMs?: number): Promise<void> {
    return (this.#closing ??= this.#close(new ConnectionError("closed", "The client was closed"), undefined, budgetMs));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** A request that the end has declared itself able to answer. */
  #verb<M extends MethodName>(
    method: M,
    params: Methods[M]["params"],
    options?: CallOptions,
  ): Promise<Methods[M]["result"]>;
  #verb(method: string, params: Params, options?: CallOptions): Promise<Result>;
  async #verb(method: string, params: Params, options?: CallOptions): Promise<Result> {
    this.#check(method);
    return this.request(method, params, options);
  }

  #taskDesk(): Promise<Tasks> {
    return (this.#tasks ??= import("./tasks.ts").then(
      ({ Tasks }) => new Tasks({ handler: this.handler, calls: this.#calls, home: this.#contexts.home }),
    ));
  }

  #lacks(method: string): string | undefined {
    const family = method.slice(0, method.indexOf("/"));
    const name = family === "completion" ? "completions" : family;
    // An end that says nothing at all of itself is taken at its word only when it is asked.
    if (this.#opened.discovered["capabilities"] === undefined || this.capabilities[name] !== undefined)
      return undefined;
    return name;
  }

  #check(method: string): void {
    const name = this.#lacks(method);
    if (name === undefined) return;
    throw new ConnectionError(
      "refused",
      `The end has not declared the capability ${name}, which ${method} needs; request() sends it all the same`,
      { mayHaveRun: false },
    );
  }

  get #isSession(): boolean {
    return this.#opened.revision.style === "session";
  }

  async #close(reason: ConnectionError, failure?: ConnectionError, budgetMs?: number): Promise<void> {
    this.#listens.endAll(failure);
    this.#calls.endAll(reason);
    this.#contexts.end(reason);
    this.#contexts.cache?.clear();
    await this.#opened.close(budgetMs);
  }

  async #untilOver(): Promise<ConnectionError | undefined> {
    let failure: ConnectionError | undefined;
    try {
      await this.#opened.ended(this.#contexts.home.signal);
    } catch (error) {
      if (this.#closing === undefined) failure = error as ConnectionError;
    }
    // A connection that broke still holds something, and nobody else will let go of it.
    if (failure !== undefined) this.#closing ??= this.#close(failure, failure);
    await this.close().catch(() => undefined);
    return failure;
  }

  async #list(method: string, field: string, options: ListOptions = {}): Promise<Result> {
    const { cursor, ...call } = options;
    if (cursor !== undefined) return this.#verb(method, { cursor }, call);
    const items: unknown[] = [];
    let _meta: Result["_meta"];
    const hear = (page: Result): void => {
      // The first page is the one that was made with all of it in view.
      if (isObject(page._meta)) _meta = { ...page._meta, ..._meta };
    };
    for await (const page of this.#pages(method, field, call, hear)) for (const item of page) items.push(item);
    return { [field]: items, ...(_meta === undefined ? undefined : { _meta }) };
  }

  async *#items<T>(method: string, field: string, options?: CallOptions): AsyncGenerator<T, void, undefined> {
    for await (const page of this.#pages<T>(method, field, options)) yield* page;
  }

  /** An end that has declared nothing of the kind has none of it, and is not asked. */
  #pages<T>(
    method: string,
    field: string,
    options?: CallOptions,
    hear?: (page: Result) => void,
  ): AsyncGenerator<readonly T[], void, undefined> {
    const { _meta } = this.#opened.discovered;
    const none: Result | undefined =
      this.#lacks(method) === undefined ? undefined : { [field]: [], ...(_meta === undefined ? undefined : { _meta }) };
    return pagesOf<T>(method, field, async (cursor) => {
      const page = none ?? (await this.request(method, cursor === undefined ? {} : { cursor }, options));
      hear?.(page);
      return page;
    });
  }
}

// Lists that come in pages, walked to their ends. A cursor is the end's own affair: it is given back as it
// came, and the empty text is a cursor like any other. An end whose pages never finish is stopped here.


const MOST_PAGES = 1_000;

/** The items of a list, a page at a time, each page fetched when its turn comes. */
export async function* pagesOf<T>(
  method: string,
  field: string,
  fetch: (cursor: string | undefined) => Promise<Result>,
): AsyncGenerator<readonly T[], void, undefined> {
  let cursor: string | undefined;
  for (let count = 1; ; count += 1) {
    const page = await fetch(cursor);
    const items = page[field];
    if (!Array.isArray(items)) throw broken(method, `its answer has no array \`${field}\``);
    yield items as readonly T[];
    const next = page["nextCursor"];
    // Some ends write null for "no more".
    if (next === undefined || next === null) return;
    if (typeof next !== "string") throw broken(method, "its `nextCursor` is no string");
    if (count === MOST_PAGES) throw broken(method, `it has more than ${MOST_PAGES} pages`);
    cursor = next;
  }
}

function broken(method: string, why: string): ConnectionError {
  return new ConnectionError(
    "protocol",
    `The end cannot be walked through ${method}: ${why}; ask for single pages with \`cursor\``,
  );
}
