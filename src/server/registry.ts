// Everything that was registered with a server, and the methods that serve it. Capabilities and available methods
// follow from what was registered. The public interface is in server.ts.

import { demandScopes } from "../auth/bearer/scopes.ts";
import type { Caller, Context, Request, Result } from "../core/handler.ts";
import type { CompleteParams, ServerCapabilities, SubscriptionFilter } from "../protocol/model/index.ts";
import { TASKS_EXTENSION } from "../protocol/tasks.ts";
import type { Completers } from "./completion.ts";
import { InputRequiredCodec } from "./input-required.ts";
import type { ServerOptions } from "./options.ts";
import { VendorMethods } from "./methods.ts";
import { Prompts } from "./prompts.ts";
import { Resources } from "./resources.ts";
import { ResultBuilder } from "./result-builder.ts";
import { type ListName, type Offer, Subscriptions } from "./subscriptions.ts";
import type { Tasks } from "./tasks.ts";
import { Tools } from "./tools.ts";

export type MethodHandler = (request: Request, context: Context) => Result | Promise<Result>;

export class Registry {
  readonly subscriptions: Subscriptions = new Subscriptions();
  readonly tools: Tools;
  readonly resources: Resources;
  readonly prompts: Prompts;
  readonly vendorMethods: VendorMethods;
  readonly #options: ServerOptions;
  readonly #results: ResultBuilder;
  readonly #inputs: InputRequiredCodec;
  #tasks: Tasks | undefined;
  #hasCompleters = false;

  constructor(server: ServerOptions) {
    this.#options = server;
    const results = new ResultBuilder(server);
    const inputs = new InputRequiredCodec(results.meta, server.sealKey);
    this.#results = results;
    this.#inputs = inputs;
    const changed = (list: ListName) => () => this.subscriptions.listChanged(list);
    this.tools = new Tools(results, inputs, () => this.#loadTasks(), changed("tools"));
    this.resources = new Resources(results, inputs, changed("resources"));
    this.prompts = new Prompts(results, inputs, changed("prompts"));
    this.vendorMethods = new VendorMethods(results);
  }

  methods(): Record<string, MethodHandler> {
    const { tools, resources, prompts } = this;
    return {
      "server/discover": () => this.#discover(),
      "tools/list": (request, context) => tools.list(request, context),
      "tools/call": (request, context) => tools.call(request, context),
      "resources/list": (request, context) => resources.list(request, context),
      "resources/templates/list": (request) => resources.listTemplates(request),
      "resources/read": (request, context) => resources.read(request, context),
      "prompts/list": (request) => prompts.list(request),
      "prompts/get": (request, context) => prompts.get(request, context),
      "completion/complete": async (request, context) => {
        const { complete } = await import("./completion.ts");
        return complete(request, context, this.#results, (ref) => this.#completers(ref, context.caller));
      },
      "subscriptions/listen": (request, context) => this.#listen(request, context),
      "tasks/get": async (request, context) => (await this.#loadTasks()).get(request, context),
      "tasks/update": async (request, context) => (await this.#loadTasks()).update(request, context),
      "tasks/list": async (request, context) => (await this.#loadTasks()).list(request, context),
      "tasks/cancel": async (request, context) => (await this.#loadTasks()).cancel(request, context),
    };
  }

  /** A group of methods is available as soon as something was registered for it. */
  hasMethod(method: string): boolean {
    const group = method.slice(0, method.indexOf("/"));
    if (group === "completion") return this.#hasCompleters;
    if (group === "tasks") return this.tools.hasTaskTools;
    return isListName(group) ? this[group].wasUsed : true;
  }

  close(): void {
    this.#tasks?.close();
    this.subscriptions.close();
  }

  /**
   * Declares logging if the handler has a context parameter, since it may log then. A parameter that `length` does not
   * count (rest, default) is not noticed; `context.log` then throws an error that says what to do.
   */
  noteHandler(handler: { readonly length: number }, contextPosition = 2): void {
    if (handler.length >= contextPosition) this.#results.logging ??= true;
  }

  noteCompleters(completers: readonly unknown[]): void {
    this.#hasCompleters ||= completers.some((completer) => completer !== undefined);
  }

  #capabilities(): ServerCapabilities {
    const { listChanged = true, subscribe = true, capabilities = {} } = this.#options;
    const { experimental, extensions } = capabilities;
    const tasks = this.tools.hasTaskTools ? { [TASKS_EXTENSION]: {} } : undefined;
    return {
      ...(this.#results.logging ? { logging: {} } : undefined),
      ...(this.#hasCompleters ? { completions: {} } : undefined),
      ...(this.prompts.wasUsed ? { prompts: { listChanged } } : undefined),
      ...(this.resources.wasUsed ? { resources: { subscribe, listChanged } } : undefined),
      ...(this.tools.wasUsed ? { tools: { listChanged } } : undefined),
      ...(experimental && { experimental }),
      ...((extensions ?? tasks) && { extensions: { ...extensions, ...tasks } }),
    };
  }

  /** The connection adds the supported revisions. */
  #discover(): Result {
    const { instructions } = this.#options;
    const capabilities = this.#capabilities();
    return this.#results.cacheable(instructions === undefined ? { capabilities } : { capabilities, instructions });
  }

  #completers(ref: CompleteParams["ref"], caller: Caller): Completers | undefined {
    if (ref.type === "ref/prompt") return this.prompts.completers(ref.name, caller);
    return this.resources.completers(ref.uri, caller);
  }

  async #loadTasks(): Promise<Tasks> {
    // import() is slow even if the module is already loaded.
    if (this.#tasks !== undefined) return this.#tasks;
    const { Tasks } = await import("./tasks.ts");
    return (this.#tasks ??= new Tasks(this.#results, this.#inputs, this.#options.tasks ?? {}));
  }

  async #listen(request: Request, context: Context): Promise<Result> {
    const { listChanged = true, subscribe = true } = this.#options;
    const { taskIds = [], resourceSubscriptions = [] } = request.params["notifications"] as SubscriptionFilter;
    const withTasks = this.tools.hasTaskTools && taskIds.length > 0;
    const tasks = withTasks ? (await this.#loadTasks()).watch(taskIds, context) : undefined;
    const resources = new Map<string, readonly string[]>();
    for (const uri of subscribe ? resourceSubscriptions : []) {
      const scopes = this.resources.scopesOf(uri);
      if (scopes !== undefined) resources.set(uri, scopes);
    }
    // Refuse the whole subscription instead of granting less, so that the error names all missing scopes.
    const scopes = new Set([...resources.values(), tasks?.scopes ?? []].flat());
    demandScopes([...scopes], context.caller, "The subscription");
    const offer: Offer = {
      hasList: (list) => listChanged && this[list].wasUsed,
      hasResource: (uri) => resources.has(uri),
    };
    await this.subscriptions.listen(request, context, offer, tasks);
    return this.#results.complete({});
  }
}

function isListName(group: string): group is ListName {
  return group === "tools" || group === "resources" || group === "prompts";
}
