// `createServer`: a handler built from tools, resources and prompts, which can be registered and removed while it runs.
// It only speaks the newest revision; connections translate for clients of older revisions.

import { demandScopes } from "../protocol/scopes.ts";
import type { Context, Handler, LogLevel, Middleware, Notification, Result } from "../core/handler.ts";
import { defined } from "../core/values.ts";
import { compose } from "../protocol/compose.ts";
import { methodNotFound } from "../protocol/errors.ts";
import type { ListCapability } from "../protocol/lists.ts";
import type { AnswerOf, MethodTable, RequestOf } from "../protocol/methods.ts";
import type { CompleteResult, EmptyResult, MethodName, ServerCapabilities } from "../protocol/model/index.ts";
import { filterFor, listsIn } from "../protocol/subscription.ts";
import { TASKS_EXTENSION } from "../protocol/tasks.ts";
import { checkLogLevel } from "./call-context.ts";
import { type MethodOptions, type NotificationHandler, type VendorMethodHandler, VendorMethods } from "./methods.ts";
import { checkServer, type ServerOptions } from "./options.ts";
import {
  type PromptHandler,
  type PromptOptions,
  type PromptSchema,
  Prompts,
  type SchemaPromptHandler,
  type SchemaPromptOptions,
} from "./prompts.ts";
import {
  type ResourceHandler,
  type ResourceOptions,
  Resources,
  type TemplateHandler,
  type TemplateOptions,
  type TemplateVariables,
} from "./resources.ts";
import type { CheckedHandler, CheckedReader } from "./returned-types.ts";
import { ResultBuilder } from "./result-builder.ts";
import type { ArgumentsMistake, Schema } from "./schema.ts";
import { Subscriptions } from "./subscriptions.ts";
import type { Tasks } from "./tasks.ts";
import {
  type AnyTool,
  type CheckedSchemas,
  type Refused,
  type ToolHandler,
  type ToolOptions,
  Tools,
  type ToolTypeOf,
  type ToolTypesOf,
} from "./tools.ts";

/** A handler with methods that register tools, resources and prompts. A name can be registered again after its removal. */
export interface Server<Tools extends object = object, Env = unknown> extends Handler {
  /** The types of the tools, for `connect<typeof server>()`. There is no such value. */
  readonly "~tools"?: Tools;
  /** The type of `context.env`, for `serve` and the like. There is no such value. */
  readonly "~env"?: Env;
  /**
   * Registers a tool: a function that a model can call. A returned string is one text block, content blocks are the
   * content, an object with a `content` array is the whole result, undefined is empty content, and anything else is
   * structured content with its JSON as text. A thrown error becomes a result with `isError`, for the model to read; a
   * thrown `McpError` becomes a protocol error.
   *
   * @example
   * server.tool(
   *   "add",
   *   { description: "Adds two numbers", input: z.object({ a: z.number(), b: z.number() }) },
   *   ({ a, b }) => a + b,
   * );
   */
  tool<
    const Name extends string,
    const Input extends Schema | undefined = undefined,
    const Output extends Schema | undefined = undefined,
    Run = unknown,
  >(
    name: Name,
    options: ToolOptions<Input, Output> & CheckedSchemas<Input, Output>,
    handler: ToolHandler<Input, Output, Env> & Run & CheckedHandler<Run, Output>,
  ): Server<Tools & { readonly [Key in Name]: ToolTypeOf<Input, Output> }, Env>;
  /**
   * Registers tools that were defined with `defineTool`, such as those of other files. The type of the server knows them.
   *
   * @example
   * const server = createServer({ name: "notes", version: "1.0.0" }).tools([addNote, searchNotes]);
   */
  tools<const Defined extends readonly AnyTool<Env>[]>(tools: Defined): Server<Tools & ToolTypesOf<Defined>, Env>;
  /**
   * Registers a resource: something to read at a URI. A returned string is text, a `Uint8Array` is a blob, an object
   * with resource `contents` is the whole result, undefined is "not found", and anything else is JSON.
   *
   * @example
   * server.resource("notes://today", { name: "Today", mimeType: "text/plain" }, () => "Water the plants.");
   */
  resource<Read = unknown>(
    uri: string,
    options: ResourceOptions,
    read: ResourceHandler<Env> & Read & CheckedReader<Read>,
  ): Server<Tools, Env>;
  /**
   * Registers resources whose URIs match a URI template (RFC 6570). The handler gets the template's variables and
   * returns what the handler of a resource returns.
   *
   * @example
   * server.template("notes://day/{date}", { name: "Notes of a day" }, ({ date }) => notes.get(date));
   */
  template<const Text extends string, Read = unknown>(
    uriTemplate: Text,
    options: TemplateOptions<TemplateVariables<Text>, Env>,
    read: TemplateHandler<TemplateVariables<Text>, Env> & Read & CheckedReader<Read>,
  ): Server<Tools, Env>;
  /**
   * Registers a prompt: messages that a user can start from. A returned string is one user message, an
   * array is the messages, and an object with `messages` is the whole result.
   *
   * @example
   * server.prompt(
   *   "review",
   *   { description: "Reviews a class", arguments: { className: { required: true } } },
   *   ({ className }) => `Please review the class ${className}.`,
   * );
   * @example
   * server.prompt(
   *   "review",
   *   { arguments: z.object({ className: z.string(), depth: z.coerce.number().default(1) }) },
   *   ({ className, depth }) => `Please review ${className}, ${depth} levels deep.`,
   * );
   */
  prompt<const Input extends PromptSchema>(
    name: string,
    options: SchemaPromptOptions<Input> & Refused<"arguments", ArgumentsMistake<Input>>,
    get: SchemaPromptHandler<Input, Env>,
  ): Server<Tools, Env>;
  prompt<const Required extends Readonly<Record<string, unknown>> = Readonly<Record<string, unknown>>>(
    name: string,
    options: PromptOptions<Required>,
    get: PromptHandler<Required, Env>,
  ): Server<Tools, Env>;
  /**
   * Registers a method that the specification does not define. The params, without `_meta`, are checked only if there
   * is a schema. The returned object is the result.
   *
   * @example
   * server.method("acme/search", { input: z.object({ text: z.string() }) }, ({ text }) => ({ found: search(text) }));
   */
  method<const Input extends Schema | undefined = undefined>(
    name: string,
    options: MethodOptions<Input> & CheckedSchemas<Input>,
    handler: VendorMethodHandler<Input, Env>,
  ): Server<Tools, Env>;
  method(name: string, handler: VendorMethodHandler<undefined, Env>): Server<Tools, Env>;
  /**
   * Registers a handler for a notification of clients that the specification does not define.
   *
   * @example
   * server.onNotification("notifications/acme/opened", ({ file }) => open(file));
   */
  onNotification(name: string, handler: NotificationHandler<Env>): Server<Tools, Env>;
  /**
   * Puts middleware in front of everything that the server answers. The first is the outermost. It sees the requests,
   * the results, and what `context.notify` and `context.ask` send.
   *
   * @example
   * server.use(async function timing(request, context, next) {
   *   const begin = performance.now();
   *   const result = await next(request, context);
   *   console.error(request.method, performance.now() - begin);
   *   return result;
   * });
   */
  use(...middleware: readonly Middleware[]): Server<Tools, Env>;
  /**
   * Removes a tool and returns whether it was there. Subscribed clients are notified that the list has changed.
   *
   * @example
   * server.removeTool("add"); // true, and false the second time
   */
  removeTool(name: string): boolean;
  /**
   * Removes a resource and returns whether it was there.
   *
   * @example
   * server.removeResource("notes://today");
   */
  removeResource(uri: string): boolean;
  /**
   * Removes a template, named as it was registered, and returns whether it was there.
   *
   * @example
   * server.removeTemplate("notes://day/{date}");
   */
  removeTemplate(uriTemplate: string): boolean;
  /**
   * Removes a prompt and returns whether it was there.
   *
   * @example
   * server.removePrompt("review");
   */
  removePrompt(name: string): boolean;
  /**
   * Notifies the clients that subscribed to this URI that the resource has changed. If it is a part of a resource, as
   * `notes://1/title` is of `notes://1`, those who subscribed to the whole and may read the part are notified too.
   *
   * @example
   * server.resourceUpdated("notes://today");
   */
  resourceUpdated(uri: string): void;
  /**
   * Sends a notification to all clients with a session, and to those that listen for changes: one that the specification
   * does not define, or `notifications/tools/list_changed` and its like, after a change of what `visible` returns.
   *
   * @example
   * server.notify({ method: "notifications/acme/tick", params: { count: 1 } });
   */
  notify(notification: Notification): void;
  /**
   * Sends a log message outside of a call, to all clients with a session, and to those that listen for changes and want
   * this level.
   *
   * @deprecated Logging is deprecated since the newest revision. Use stderr, or OpenTelemetry.
   * @example
   * server.log("warning", "The disk is nearly full");
   */
  log(level: LogLevel, data: unknown, logger?: string): void;
  /** The scopes that the registered tools, resources, prompts and methods need. Callers without `auth` have none. */
  readonly requiredScopes: readonly string[];
  /**
   * Ends all subscriptions and tasks. Connections stay open; close them with the object that `serve` returned.
   *
   * @example
   * await server.close();
   */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Creates an empty server. It is a handler: pass it to `serve`, or to `connect` in the same process. Clients see
 * its name, its version and the other fields of `ServerInfo`.
 *
 * @example
 * const server = createServer({ name: "notes", version: "1.0.0" })
 *   .tool("echo", { input: z.object({ text: z.string() }) }, ({ text }) => text);
 * await serve(server);
 * @example
 * createServer({ name: "notes", version: "1.0.0", instructions: "Search before you add a note.", pageSize: 50 });
 * @example
 * const server = createServer<{ db: Database }>({ name: "notes", version: "1.0.0" })
 *   .tool("count", {}, (_args, { env }) => env.db.count());
 * await serve(server, { env: { db } });
 */
export function createServer<Env = unknown>(options: ServerOptions, ...more: never[]): Server<object, Env> {
  checkServer(options, more.length > 0);
  const registry = new Registry(options);
  const { tools, resources, prompts, vendorMethods, subscriptions } = registry;
  const methods: Omit<{ [Name in keyof Server]: Server[Name] }, "requiredScopes"> = {
    tool(name, options, run) {
      tools.add(name, options, run);
      return server as never;
    },
    tools(defined) {
      if (!Array.isArray(defined)) throw new TypeError("tools() takes an array: .tools([defineTool({ ... })])");
      tools.addAll(defined);
      return server as never;
    },
    resource(uri, options, read) {
      resources.add(uri, options, read);
      return server;
    },
    template(uriTemplate, options, read) {
      resources.addTemplate(uriTemplate, options, read);
      return server;
    },
    prompt(name: string, options: PromptOptions | SchemaPromptOptions, get: unknown) {
      prompts.add(name, options, get as never);
      return server;
    },
    method(name: string, ...rest: unknown[]) {
      const [options, run] = typeof rest[0] === "function" ? [{}, rest[0]] : rest;
      vendorMethods.add(name, options as MethodOptions, run as VendorMethodHandler<Schema | undefined>);
      return server;
    },
    onNotification(name, run) {
      vendorMethods.addNotification(name, run);
      return server;
    },
    use(...middleware) {
      registry.use(middleware);
      return server;
    },
    removeTool: (name) => tools.entries.delete(name),
    removeResource: (uri) => resources.entries.delete(uri),
    removeTemplate: (uriTemplate) => resources.templates.delete(uriTemplate),
    removePrompt: (name) => prompts.entries.delete(name),
    resourceUpdated: (uri) => subscriptions.resourceUpdated(uri, (context) => resources.isReadable(uri, context)),
    notify: (notification) => subscriptions.notifyAll(notification),
    // oxlint-disable-next-line typescript/no-deprecated
    log: (level, data, logger) => registry.log(level, data, logger),
    close: () => registry.close(),
    [Symbol.asyncDispose]: () => registry.close(),
  };
  const described = Object.defineProperty(registry.handler, "requiredScopes", { get: () => registry.requiredScopes });
  const server: Server = Object.assign(described as Handler & Pick<Server, "requiredScopes">, methods);
  return server as Server<object, Env>;
}

let completion: Promise<typeof import("./completion.ts")> | undefined;

/** The methods of the table. Those of tasks are answered by what keeps the tasks. */
type ServerMethod = Exclude<MethodName, `tasks/${string}`>;
const TASK_METHODS = ["tasks/get", "tasks/update", "tasks/list", "tasks/cancel"];

/** Everything that was registered with a server. Capabilities and available methods follow from it. */
class Registry {
  readonly subscriptions: Subscriptions = new Subscriptions();
  readonly tools: Tools;
  readonly resources: Resources;
  readonly prompts: Prompts;
  readonly vendorMethods: VendorMethods;
  readonly #options: ServerOptions;
  readonly #results: ResultBuilder;
  readonly #table: MethodTable<ServerMethod>;
  /** The methods that exist so far: a group of them does as soon as something was registered for it. */
  readonly #methods = new Map<string, (request: never, context: Context) => Result | Promise<Result>>();
  /** Groups of methods, such as "tools". They stay when all that was registered is removed. */
  readonly #groups = new Set<string>();
  #tasks: Tasks | undefined;
  readonly #middleware: Middleware[] = [];
  /** The server behind its middleware, if it has any. */
  #composed: Handler | undefined;

  constructor(options: ServerOptions) {
    this.#options = options;
    const results = new ResultBuilder(options);
    this.#results = results;
    const tools = new Tools(
      results,
      () => this.#loadTasks(),
      () => this.#changed("tools"),
    );
    const resources = new Resources(results, () => this.#changed("resources"));
    const prompts = new Prompts(results, () => this.#changed("prompts"));
    this.tools = tools;
    this.resources = resources;
    this.prompts = prompts;
    this.vendorMethods = new VendorMethods(results);
    this.#table = {
      "server/discover": () => this.#discover(),
      "tools/list": tools.list.bind(tools),
      "tools/call": tools.call.bind(tools),
      "resources/list": resources.list.bind(resources),
      "resources/templates/list": resources.listTemplates.bind(resources),
      "resources/read": resources.read.bind(resources),
      "prompts/list": prompts.list.bind(prompts),
      "prompts/get": prompts.get.bind(prompts),
      "completion/complete": this.#complete.bind(this),
      "subscriptions/listen": this.#listen.bind(this),
    };
    this.#offer("server");
    this.#offer("subscriptions");
  }

  #changed(list: ListCapability): void {
    this.#offer(list);
    if (this.prompts.hasCompleters || this.resources.hasCompleters) this.#offer("completion");
    if (this.tools.hasTaskTools && !this.#groups.has("tasks")) {
      this.#groups.add("tasks");
      const answer: Handler = async (request, context) =>
        this.#results.complete(await (await this.#loadTasks()).store.answer(request, context));
      for (const method of TASK_METHODS) this.#methods.set(method, answer);
    }
    this.subscriptions.listChanged(list);
  }

  #offer(group: string): void {
    if (this.#groups.has(group)) return;
    this.#groups.add(group);
    for (const [method, handle] of Object.entries(this.#table)) {
      if (method.startsWith(`${group}/`)) this.#methods.set(method, handle);
    }
  }

  readonly handler: Handler = (request, context) => (this.#composed ?? this.#answer)(request, context);

  use(middleware: readonly Middleware[]): void {
    for (const layer of middleware) {
      if (typeof layer === "function") continue;
      throw new TypeError("use() takes functions (request, context, next) => result; call a factory first: use(log())");
    }
    this.#middleware.push(...middleware);
    const entries = this.#middleware.map((layer, index) => ({ name: layer.name || `${index + 1}`, middleware: layer }));
    this.#composed = compose(entries, this.#answer);
  }

  // Not an async function: it would wait for the promise of the method once more.
  readonly #answer: Handler = (request, context) => {
    const handle = this.#methods.get(request.method);
    try {
      // The table has handlers of other types; the params were checked when the request was received.
      if (handle !== undefined) return Promise.resolve(handle(request as never, context));
      const answer = this.vendorMethods.handle(request, context);
      return answer === undefined ? Promise.reject(methodNotFound(request.method)) : Promise.resolve(answer);
    } catch (error) {
      return Promise.reject(error);
    }
  };

  log(level: LogLevel, data: unknown, logger?: string): void {
    checkLogLevel(level);
    if (this.#results.logging) this.subscriptions.log(level, defined({ level, logger, data }));
  }

  get requiredScopes(): readonly string[] {
    const registered = [this.tools.entries, this.prompts.entries, this.resources.entries, this.resources.templates];
    const scopes = registered.flatMap(({ all }) => all.flatMap(({ value }) => value.scopes ?? []));
    return [...new Set([...scopes, ...this.vendorMethods.scopes])];
  }

  async close(): Promise<void> {
    this.#tasks?.store.close();
    this.subscriptions.close();
    await Promise.allSettled(this.#middleware.map(async (layer) => layer.close?.()));
  }

  /** The connection adds the supported revisions. */
  #discover(): AnswerOf<"server/discover"> {
    const { instructions, listChanged = true, subscribe = true, capabilities: vendor = {} } = this.#options;
    const has = (group: string): boolean => this.#groups.has(group);
    const tasks = has("tasks") ? { [TASKS_EXTENSION]: {} } : undefined;
    const capabilities: ServerCapabilities = defined({
      logging: this.#results.logging ? {} : undefined,
      completions: has("completion") ? {} : undefined,
      prompts: has("prompts") ? { listChanged } : undefined,
      resources: has("resources") ? { subscribe, listChanged } : undefined,
      tools: has("tools") ? { listChanged } : undefined,
      experimental: vendor.experimental,
      extensions: (vendor.extensions ?? tasks) && { ...vendor.extensions, ...tasks },
    });
    return this.#results.cacheable(defined({ capabilities, instructions }));
  }

  async #complete(request: RequestOf<"completion/complete">, context: Context): Promise<CompleteResult> {
    const { ref } = request.params;
    const completers =
      ref.type === "ref/prompt"
        ? this.prompts.completers(ref.name, context)
        : this.resources.completers(ref.uri, context);
    const { complete } = await (completion ??= import("./completion.ts"));
    return this.#results.complete({ completion: await complete(request, context, completers, this.#results.errors) });
  }

  async #loadTasks(): Promise<Tasks> {
    // import() is slow even if the module is already loaded.
    if (this.#tasks !== undefined) return this.#tasks;
    const { Tasks } = await import("./tasks.ts");
    return (this.#tasks ??= new Tasks(this.#results, this.#options.tasks ?? {}));
  }

  async #listen(request: RequestOf<"subscriptions/listen">, context: Context): Promise<EmptyResult> {
    const { listChanged = true, subscribe = true } = this.#options;
    const filter = request.params.notifications;
    const { taskIds = [], resourceSubscriptions = [] } = filter;
    const withTasks = this.#groups.has("tasks") && taskIds.length > 0;
    const tasks = withTasks ? await (await this.#loadTasks()).store.subscribe(taskIds, context) : undefined;
    const resources = new Map<string, readonly string[]>();
    for (const uri of subscribe ? resourceSubscriptions : []) {
      const scopes = this.resources.scopesOf(uri, context);
      if (scopes !== undefined) resources.set(uri, scopes);
    }
    // Refuse the whole subscription instead of granting less, so that the error names all missing scopes.
    const scopes = new Set([...resources.values(), tasks?.scopes ?? []].flat());
    demandScopes([...scopes], context.caller, "The subscription");
    const lists = listsIn(filter).filter((list) => listChanged && this.#groups.has(list));
    const changes = filterFor(lists, { resourceSubscriptions: [...resources.keys()] });
    await this.subscriptions.listen(filter, context, changes, tasks);
    return this.#results.complete({});
  }
}
