// What a server is made of: its tools, resources and prompts, who listens to their changes, and what it can say
// of itself. Which methods there are follows from what was registered. Registering is for server.ts.

import type { Context } from "../core/context.ts";
import type { Request, Result } from "../core/handler.ts";
import type { CompleteParams, ServerCapabilities } from "../protocol/model/index.ts";
import type { Completers } from "./completions.ts";
import { Frame, type ServerInfo } from "./frame.ts";
import { Rounds } from "./input-required.ts";
import { Prompts } from "./prompts.ts";
import { Resources } from "./resources.ts";
import { type ListName, Subscriptions } from "./subscriptions.ts";
import { Tools } from "./tools.ts";

export type Answer = (request: Request, context: Context) => Result | Promise<Result>;

export class Parts {
  readonly subscriptions: Subscriptions = new Subscriptions();
  readonly tools: Tools;
  readonly resources: Resources;
  readonly prompts: Prompts;
  readonly #info: ServerInfo;
  readonly #frame: Frame;
  #completes = false;

  constructor(info: ServerInfo) {
    this.#info = info;
    this.#frame = new Frame(info);
    const rounds = new Rounds(this.#frame, info.sealKey);
    const changed = (list: ListName) => () => this.subscriptions.changed(list);
    this.tools = new Tools(this.#frame, rounds, changed("tools"));
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
        const { complete } = await import("./completions.ts");
        return complete(request, context, this.#frame, (ref) => this.#completers(ref));
      },
      "subscriptions/listen": (request, context) => this.#listen(request, context),
    };
  }

  /** A family of methods is there from its first registration on. */
  serves(method: string): boolean {
    const family = method.slice(0, method.indexOf("/"));
    if (family === "completion") return this.#completes;
    return this.#isList(family) ? this[family].used : true;
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
    };
  }

  /** Which revisions there are is for the dialogue to add. */
  #discover(): Result {
    const { instructions } = this.#info;
    const capabilities = this.#capabilities();
    return this.#frame.cacheable(instructions === undefined ? { capabilities } : { capabilities, instructions });
  }

  #completers(ref: CompleteParams["ref"]): Completers | undefined {
    return ref.type === "ref/prompt" ? this.prompts.completers(ref.name) : this.resources.completers(ref.uri);
  }

  async #listen(request: Request, context: Context): Promise<Result> {
    const { listChanged = true, subscribe = true } = this.#info;
    await this.subscriptions.listen(request, context, {
      listChanged: (list) => listChanged && this[list].used,
      updates: (uri) => subscribe && this.resources.knows(uri),
    });
    return this.#frame.complete({});
  }
}
