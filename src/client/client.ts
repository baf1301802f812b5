// A client: typed methods for everything that can be requested from a server. `handler` is the same server as a plain
// handler, for use in a chain: it has no cache, and passes requests from the server to the caller's context.

import { ConnectionError, refused } from "../core/errors.ts";
import { type Handler, levelRank, LOG_LEVELS, type LogLevel, type Params, type Result } from "../core/handler.ts";
import { defined, isObject } from "../core/values.ts";
import type { ServerConnection } from "../dialogue/connect.ts";
import { checkNotification } from "../tools/content.ts";
import { LISTS, type List } from "../protocol/lists.ts";
import { NO_LIMITS, walkPages } from "../protocol/walk-pages.ts";
import { META } from "../protocol/model/base.ts";
import type {
  CompleteParams,
  CompleteResult,
  GetPromptResult,
  Implementation,
  ListPromptsResult,
  ListResourcesResult,
  ListResourceTemplatesResult,
  ListToolsResult,
  MethodName,
  Methods,
  Prompt,
  ReadResourceResult,
  Resource,
  ResourceTemplate,
  ServerCapabilities,
  SubscriptionFilter,
  Tool,
} from "../protocol/model/index.ts";
import { isVendorMethod } from "../protocol/revisions/index.ts";
import { isStandardSchema } from "../tools/schema-kind.ts";
import { hasTasks, TASKS_EXTENSION } from "../protocol/tasks.ts";
import type { Schema, SchemaOutput } from "../server/schema.ts";
import { Calls, type CallOptions } from "./calls.ts";
import type { Program } from "./command.ts";
import type { Contexts } from "./contexts.ts";
import { Subscriptions, type ChangeEvent, type ListenOptions, type Subscription } from "./subscriptions.ts";
import type { TaskHandle, Tasks } from "./tasks.ts";
import type { ToolCall, ToolName, ToolResult, ToolTypes } from "./tool-types.ts";

/** With a cursor: one page, as the server returned it. Without: all pages. */
export interface ListOptions extends CallOptions {
  /** The cursor of the page, from the page before. */
  readonly cursor?: string | undefined;
}

export interface ClientOptions {
  readonly opened: ServerConnection;
  readonly program?: Program | undefined;
  readonly contexts: Contexts;
  readonly timeouts: { readonly idleMs?: number; readonly totalMs?: number };
}

/** A connection to a server, with a method for each request. `connect` creates it. */
export class Client<Tools extends object = ToolTypes> {
  /** The server as a plain handler. */
  readonly handler: Handler;
  /** The process of the server, if `connect` started it. */
  readonly program: Program | undefined;
  /** Resolves when the connection has ended: with the error, or with undefined if we closed it. */
  readonly closed: Promise<ConnectionError | undefined>;
  readonly #connection: ServerConnection;
  readonly #contexts: Contexts;
  readonly #calls: Calls;
  readonly #subscriptions: Subscriptions;
  #tasks: Promise<Tasks> | undefined;
  #closing: Promise<void> | undefined;

  /** Use `connect()`. */
  constructor({ opened, program, contexts, timeouts }: ClientOptions) {
    const { handler } = opened;
    this.handler = handler;
    this.program = program;
    this.#connection = opened;
    this.#contexts = contexts;
    this.#calls = new Calls(handler, contexts, timeouts.totalMs);
    this.#subscriptions = new Subscriptions(handler, contexts, timeouts.idleMs);
    this.closed = this.#watchConnection();
  }

  /** The negotiated revision, by its date. */
  get revision(): string {
    return this.#connection.revision.name;
  }

  /** The name and version that the server claims. They are not verified. */
  get server(): Implementation | undefined {
    const { discovered } = this.#connection;
    // Some servers of the newest revision still send `serverInfo` in the body, as in older revisions.
    return (discovered._meta?.[META.serverInfo] ?? discovered["serverInfo"]) as Implementation | undefined;
  }

  /** The capabilities that the server declared, in the shape of the newest revision. */
  get capabilities(): ServerCapabilities {
    return (this.#connection.discovered["capabilities"] as ServerCapabilities | undefined) ?? {};
  }

  /** How to use the server, for the model. */
  get instructions(): string | undefined {
    const { instructions } = this.#connection.discovered;
    return typeof instructions === "string" ? instructions : undefined;
  }

  /**
   * Sends any request, in the shape of the newest revision. A schema checks the result, without its `resultType` and
   * `_meta`, and gives it its type.
   *
   * @example
   * const { found } = await client.request("acme/search", { text: "milk" }, z.object({ found: z.number() }));
   */
  request<M extends MethodName>(
    method: M,
    params?: Methods[M]["params"],
    options?: CallOptions,
  ): Promise<Methods[M]["result"]>;
  request(method: string, params?: Params, options?: CallOptions): Promise<Result>;
  request<const Of extends Schema>(
    method: string,
    params: Params | undefined,
    schema: Of,
    options?: CallOptions,
  ): Promise<SchemaOutput<Of>>;
  request(
    method: string,
    params: Params = {},
    schemaOrOptions?: Schema | CallOptions,
    more?: CallOptions,
  ): Promise<unknown> {
    if (!isSchema(schemaOrOptions)) return this.#calls.cached(method, params, schemaOrOptions);
    return this.#checked(method, schemaOrOptions, () => this.#calls.cached(method, params, more));
  }

  async #checked(method: string, schema: Schema, send: () => Promise<Result>): Promise<unknown> {
    const owner = `The schema for the result of ${method}`;
    const { checkUsable, createSchemaCheck } = await import("../server/schema.ts");
    checkUsable(owner, "schema", schema);
    const check = createSchemaCheck(schema, owner);
    const { resultType: _type, _meta, ...result } = await send();
    const { value, issues } = { value: undefined, issues: undefined, ...(await check(result)) };
    if (issues === undefined) return value;
    const message = `The server's answer to ${method} does not fit the schema: ${issues.join("; ")}`;
    throw new ConnectionError("protocol", message);
  }

  /** Sends a notification that the specification does not define, such as `notifications/acme/opened`. */
  async notify(method: string, params: Params = {}): Promise<void> {
    checkNotification({ method, params });
    if (!isVendorMethod(method)) throw new TypeError(`${method} is a method of the protocol, which connect() sends`);
    await this.handler({ method, params }, { ...this.#contexts.defaultContext, isNotification: true });
  }

  /**
   * Calls a tool. If the server runs it as a task, waits for it and answers its input requests. Aborting cancels the
   * task. A client of `connect<typeof server>()` knows the names, arguments and structured content of the tools.
   */
  async callTool<const Name extends ToolName<Tools>>(
    name: Name,
    ...rest: ToolCall<Tools[Name], CallOptions>
  ): Promise<ToolResult<Tools[Name]>> {
    const [args = {}, options] = rest as [args?: object, options?: CallOptions];
    this.#requireCapability("tools/call");
    return (await this.#calls.callTool({ name, arguments: args }, options)) as ToolResult<Tools[Name]>;
  }

  /** Calls a tool as a task. If the server answers without a task, the handle already has the result. */
  async callToolAsTask(
    name: ToolName<Tools>,
    args: { readonly [name: string]: unknown } = {},
    options?: CallOptions,
  ): Promise<TaskHandle> {
    this.#requireCapability("tools/call");
    return (await this.#loadTasks()).start(name, args, options);
  }

  /** Returns a handle of an existing task. Throws if the server does not know the id. */
  async task(id: string, options?: CallOptions): Promise<TaskHandle> {
    if (this.#connection.discovered["capabilities"] !== undefined && !hasTasks(this.capabilities)) {
      throw new ConnectionError("refused", `The server has not declared the extension ${TASKS_EXTENSION}`);
    }
    return (await this.#loadTasks()).find(id, options);
  }

  /** Reads a resource. */
  readResource(uri: string, options?: CallOptions): Promise<ReadResourceResult> {
    return this.#requestDeclared("resources/read", { uri }, options);
  }

  /** Gets the messages of a prompt. */
  getPrompt(name: string, args?: { readonly [name: string]: string }, options?: CallOptions): Promise<GetPromptResult> {
    return this.#requestDeclared("prompts/get", args === undefined ? { name } : { name, arguments: args }, options);
  }

  /** Asks for completions of an argument of a prompt, or of a variable of a template. */
  complete(
    ref: CompleteParams["ref"],
    argument: CompleteParams["argument"],
    context?: CompleteParams["context"],
    options?: CallOptions,
  ): Promise<CompleteResult> {
    const params: CompleteParams = context === undefined ? { ref, argument } : { ref, argument, context };
    return this.#requestDeclared("completion/complete", params, options);
  }

  /** All tools; with `cursor`, one page of them. */
  listTools(options?: ListOptions): Promise<ListToolsResult> {
    return this.#list(LISTS.tools, options);
  }

  /** All resources; with `cursor`, one page of them. */
  listResources(options?: ListOptions): Promise<ListResourcesResult> {
    return this.#list(LISTS.resources, options);
  }

  /** All resource templates; with `cursor`, one page of them. */
  listResourceTemplates(options?: ListOptions): Promise<ListResourceTemplatesResult> {
    return this.#list(LISTS.templates, options);
  }

  /** All prompts; with `cursor`, one page of them. */
  listPrompts(options?: ListOptions): Promise<ListPromptsResult> {
    return this.#list(LISTS.prompts, options);
  }

  /** Yields each tool. Pages are fetched as they are needed. */
  tools(options?: CallOptions): AsyncGenerator<Tool, void, undefined> {
    return this.#items(LISTS.tools, options);
  }

  /** Yields each resource. Pages are fetched as they are needed. */
  resources(options?: CallOptions): AsyncGenerator<Resource, void, undefined> {
    return this.#items(LISTS.resources, options);
  }

  /** Yields each resource template. Pages are fetched as they are needed. */
  resourceTemplates(options?: CallOptions): AsyncGenerator<ResourceTemplate, void, undefined> {
    return this.#items(LISTS.templates, options);
  }

  /** Yields each prompt. Pages are fetched as they are needed. */
  prompts(options?: CallOptions): AsyncGenerator<Prompt, void, undefined> {
    return this.#items(LISTS.prompts, options);
  }

  /** Resolves if the server answers. Sends `ping` in a session, and `server/discover` to a stateless server. */
  async ping(options?: CallOptions): Promise<void> {
    await this.#calls.uncached(this.#isSession ? "ping" : "server/discover", {}, options);
  }

  /** Sets the least urgent log level to receive, for later calls that have no `logLevel` of their own. */
  async setLogLevel(level: LogLevel, options?: CallOptions): Promise<void> {
    if (levelRank(level) < 0) {
      throw new TypeError(`Unknown log level ${level}; the levels are ${LOG_LEVELS.join(", ")}`);
    }
    this.#requireCapability("logging/setLevel");
    if (this.#isSession) await this.#calls.uncached("logging/setLevel", { level }, options);
    this.#contexts.logLevel = level;
  }

  /** Subscribes to changes, until the subscription is closed. Resolves when the server has acknowledged it. */
  listen(
    filter: SubscriptionFilter,
    onEvent?: (event: ChangeEvent) => void,
    options?: ListenOptions,
  ): Promise<Subscription> {
    return this.#subscriptions.listen(filter, onEvent, options);
  }

  /** Ends all calls, subscriptions and the connection. Resolves when the child process is gone, or after `budgetMs`. */
  close(budgetMs?: number): Promise<void> {
    return (this.#closing ??= this.#close(new ConnectionError("closed", "The client was closed"), undefined, budgetMs));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Sends a request. Throws if the server has not declared the capability for it. */
  async #requestDeclared<M extends MethodName>(
    method: M,
    params: Methods[M]["params"],
    options?: CallOptions,
  ): Promise<Methods[M]["result"]> {
    this.#requireCapability(method);
    return this.request(method, params, options);
  }

  #loadTasks(): Promise<Tasks> {
    return (this.#tasks ??= import("./tasks.ts").then(
      ({ Tasks }) =>
        new Tasks({
          handler: this.handler,
          calls: this.#calls,
          defaultContext: this.#contexts.defaultContext,
          onError: this.#contexts.onError,
        }),
    ));
  }

  #missingCapability(method: string): string | undefined {
    const declared = this.#connection.discovered["capabilities"];
    // A server that sends no capabilities at all may still support everything.
    if (!isObject(declared)) return undefined;
    const group = method.slice(0, method.indexOf("/"));
    const name = group === "completion" ? "completions" : group;
    if (declared[name] !== undefined) return undefined;
    // A capability that the revision does not define cannot be declared, so the server may still support the method.
    return name in this.#connection.revision.lower.serverCapabilities({ [name]: {} }) ? name : undefined;
  }

  #requireCapability(method: string): void {
    const name = this.#missingCapability(method);
    if (name === undefined) return;
    const advice = "use request() to send it anyway";
    throw refused(`The server has not declared the capability ${name}, which ${method} needs; ${advice}`);
  }

  get #isSession(): boolean {
    return this.#connection.revision.style === "session";
  }

  async #close(reason: ConnectionError, failure?: ConnectionError, budgetMs?: number): Promise<void> {
    this.#subscriptions.endAll(failure);
    this.#calls.endAll(reason);
    this.#contexts.end(reason);
    this.#contexts.cache?.clear();
    await this.#connection.close(budgetMs);
  }

  async #watchConnection(): Promise<ConnectionError | undefined> {
    let failure: ConnectionError | undefined;
    try {
      await this.#connection.ended(this.#contexts.defaultContext.signal);
    } catch (error) {
      if (this.#closing === undefined) failure = error as ConnectionError;
    }
    // A broken connection still holds resources, which only closing it releases.
    if (failure !== undefined) this.#closing ??= this.#close(failure, failure);
    await this.close().catch(() => undefined);
    return failure;
  }

  async #list<L extends List>(list: L, options: ListOptions = {}): Promise<Methods[L["method"]]["result"]> {
    const { cursor, ...callOptions } = options;
    if (cursor !== undefined) return this.#requestDeclared<MethodName>(list.method, { cursor }, callOptions) as never;
    const items: unknown[] = [];
    let _meta: Result["_meta"];
    const mergeMeta = (page: Result): void => {
      // The first page wins: its metadata applies to the whole list.
      if (isObject(page._meta)) _meta = { ...page._meta, ..._meta };
    };
    for await (const page of this.#pages(list, callOptions, mergeMeta)) {
      for (const item of page) items.push(item);
    }
    return defined({ [list.field]: items, _meta }) as unknown as Methods[L["method"]]["result"];
  }

  async *#items<T>(list: List, options?: CallOptions): AsyncGenerator<T, void, undefined> {
    for await (const page of this.#pages<T>(list, options)) yield* page;
  }

  /** If the server has not declared the capability, the list is empty and no request is sent. */
  #pages<T>(
    { method, field }: List,
    options?: CallOptions,
    onPage?: (page: Result) => void,
  ): AsyncGenerator<readonly T[], void, undefined> {
    const { _meta } = this.#connection.discovered;
    const empty: Result | undefined =
      this.#missingCapability(method) === undefined ? undefined : defined({ [field]: [], _meta });
    return itemPages<T>(method, field, async (cursor) => {
      const page = empty ?? (await this.#calls.cached(method, defined({ cursor }), options));
      onPage?.(page);
      return page;
    });
  }
}

/** The keywords of which a JSON Schema has at least one. Options of a call have other names. */
const SCHEMA_KEYWORDS = "type properties $ref $schema allOf anyOf oneOf enum const required".split(" ");

/** Also true for the bare fields of an object schema, for which `checkUsable` has the advice. */
function isSchema(value: Schema | CallOptions | undefined): value is Schema {
  if (isStandardSchema(value)) return true;
  if (!isObject(value)) return false;
  return SCHEMA_KEYWORDS.some((keyword) => keyword in value) || Object.values(value).some(isStandardSchema);
}

/** Yields the items of each page as they are needed. */
export async function* itemPages<T>(
  method: string,
  field: string,
  fetchPage: (cursor: string | undefined) => Promise<Result>,
): AsyncGenerator<readonly T[], void, undefined> {
  for await (const { page, problem } of walkPages(field, fetchPage, NO_LIMITS)) {
    const items = page[field];
    if (!Array.isArray(items)) throw brokenList(method, `a result has no array \`${field}\``);
    yield items as readonly T[];
    if (problem !== undefined) throw brokenList(method, problem);
  }
}

function brokenList(method: string, problem: string): ConnectionError {
  const hint = { text: "use `cursor` to request single pages", flags: "" };
  return new ConnectionError("protocol", `The pages of ${method} cannot be read: ${problem}`, { hint });
}
