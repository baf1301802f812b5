// What a server is made of: its tools, resources and prompts, who listens to their changes, and what it can say
// of itself. Which methods there are follows from what was registered. Registering is for server.ts.

import type { Caller, Context } from "../core/handler.ts";
import type { Request, Result } from "../core/handler.ts";
import type { CompleteParams, ServerCapabilities, SubscriptionFilter } from "../protocol/model/index.ts";
import { TASKS } from "../protocol/tasks.ts";
import type { Completers } from "./completion.ts";
import { Frame, type ServerInfo } from "./result-builder.ts";
import { Rounds } from "./input-required.ts";
import { Prompts } from "./prompts.ts";
import { Resources } from "./resources.ts";
import { demandScopes } from "../auth/bearer/scopes.ts";
import { type ListName, type Offer, Subscriptions } from "./subscriptions.ts";
import { checkedLimits, type TaskLimits } from "./options.ts";
import type { Tasks } from "./tasks.ts";
import { Tools } from "./tools.ts";

export type Answer = (request: Request, context: Context) => Result | Promise<Result>;

export class Parts {
  readonly subscriptions: Subscriptions = new Subscriptions();
  readonly tools: Tools;
  readonly resources: Resources;
  readonly prompts: Prompts;
  readonly #info: ServerInfo;
  readonly #frame: Frame;
  readonly #rounds: Rounds;
  readonly #taskLimits: TaskLimits;
  #tasks: Tasks | undefined;
  #completes = false;

  constructor(info: ServerInfo) {
    this.#info = info;
    this.#frame = new Frame(info);
    this.#taskLimits = checkedLimits(info.tasks);
    const rounds = new Rounds(this.#frame, info.sealKey);
    this.#rounds = rounds;
    const changed = (list: ListName) => () => this.subscriptions.changed(list);
    this.tools = new Tools(this.#frame, rounds, () => this.#loadTasks(), changed("tools"));
    this.resources = new Resources(this.#frame, rounds, changed("resources"));
    this.prompts = new Prompts(this.#frame, rounds, changed("prompts"));
  }

  answers(): Record<string, Answer> {
    const { tools, resources, prompts } = this;
    return {
      "server/discover": () => this.#discover(),
      "tools/list": (request) => tools.list(request),
      "tools/call": (request, context) => tools.call(request, context),
      "resources/list": (request, context) => resources.list(request, context),
      "resources/templates/list": (request) => resources.listTemplates(request),
      "resources/read": (request, context) => resources.read(request, context),
      "prompts/list": (request) => prompts.list(request),
      "prompts/get": (request, context) => prompts.get(request, context),
      "completion/complete": async (request, context) => {
        const { complete } = await import("./completion.ts");
        return complete(request, context, this.#frame, (ref) => this.#completers(ref, context.caller));
      },
      "subscriptions/listen": (request, context) => this.#listen(request, context),
      "tasks/get": async (request, context) => (await this.#loadTasks()).get(request, context),
      "tasks/update": async (request, context) => (await this.#loadTasks()).update(request, context),
      "tasks/list": async (request, context) => (await this.#loadTasks()).list(request, context),
      "tasks/cancel": async (request, context) => (await this.#loadTasks()).cancel(request, context),
    };
  }

  /** A family of methods is there from its first registration on. */
  serves(method: string): boolean {
    const family = method.slice(0, method.indexOf("/"));
    if (family === "completion") return this.#completes;
    if (family === "tasks") return this.tools.canBeTasks;
    return this.#isList(family) ? this[family].used : true;
  }

  close(): void {
    this.#tasks?.close();
    this.subscriptions.close();
  }

  // A handler that takes the context may log. One that hides it, behind a rest or a default, is told so when it does.
  noteHandler(handler: { readonly length: number }, contextAt = 2): void {
    if (handler.length >= contextAt) this.#frame.logging ??= true;
  }

  noteCompleters(completers: readonly unknown[]): void {
    this.#completes ||= completers.some((completer) => completer !== undefined);
  }

  #isList(family: string): family is ListName {
    return family === "tools" || family === "resources" || family === "prompts";
  }

  #capabilities(): ServerCapabilities {
    const { listChanged = true, subscribe = true } = this.#info;
    return {
      ...(this.#frame.logging ? { logging: {} } : undefined),
      ...(this.#completes ? { completions: {} } : undefined),
      ...(this.prompts.used ? { prompts: { listChanged } } : undefined),
      ...(this.resources.used ? { resources: { subscribe, listChanged } } : undefined),
      ...(this.tools.used ? { tools: { listChanged } } : undefined),
      ...(this.tools.canBeTasks ? { extensions: { [TASKS]: {} } } : undefined),
    };
  }

  /** Which revisions there are is for the dialogue to add. */
  #discover(): Result {
    const { instructions } = this.#info;
    const capabilities = this.#capabilities();
    return this.#frame.cacheable(instructions === undefined ? { capabilities } : { capabilities, instructions });
  }

  #completers(ref: CompleteParams["ref"], caller: Caller): Completers | undefined {
    if (ref.type === "ref/prompt") return this.prompts.completers(ref.name, caller);
    return this.resources.completers(ref.uri, caller);
  }

  async #loadTasks(): Promise<Tasks> {
    // Even a module that is there already takes its time to be imported.
    if (this.#tasks !== undefined) return this.#tasks;
    const { Tasks } = await import("./tasks.ts");
    return (this.#tasks ??= new Tasks(this.#frame, this.#rounds, this.#taskLimits));
  }

  async #listen(request: Request, context: Context): Promise<Result> {
    const { listChanged = true, subscribe = true } = this.#info;
    const { taskIds = [], resourceSubscriptions = [] } = request.params["notifications"] as SubscriptionFilter;
    const onTasks = this.tools.canBeTasks && taskIds.length > 0;
    const extra = onTasks ? (await this.#loadTasks()).watch(taskIds, context) : undefined;
    const known = new Map<string, readonly string[]>();
    for (const uri of subscribe ? resourceSubscriptions : []) {
      const scopes = this.resources.scopesOf(uri);
      if (scopes !== undefined) known.set(uri, scopes);
    }
    // Refused rather than left out: so the caller learns what to ask for, and all of it at once.
    const scopes = new Set([...known.values(), extra?.scopes ?? []].flat());
    demandScopes([...scopes], context.caller, "What is listened to");
    const offer: Offer = {
      listChanged: (list) => listChanged && this[list].used,
      updates: (uri) => known.has(uri),
    };
    await this.subscriptions.listen(request, context, offer, extra);
    return this.#frame.complete({});
  }
}
