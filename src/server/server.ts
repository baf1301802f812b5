// A server: a handler made of registrations. It speaks only the newest shape, whatever its callers speak, and
// knows nothing of wires. Its capabilities are what was registered, no more. Registrations may come and go
// while it runs.

import type { Context } from "../core/context.ts";
import type { Handler, Request, Result } from "../core/handler.ts";
import { checkParams } from "../protocol/check.ts";
import { methodNotFound } from "../protocol/errors.ts";
import type { CompleteParams, ServerCapabilities } from "../protocol/model/index.ts";
import { complete, type Completers } from "./completions.ts";
import { Frame, type ServerInfo } from "./frame.ts";
import { Rounds } from "./input-required.ts";
import { type PromptHandler, type PromptOptions, Prompts } from "./prompts.ts";
import {
  type ResourceHandler,
  type ResourceOptions,
  Resources,
  type TemplateHandler,
  type TemplateOptions,
} from "./resources.ts";
import type { Schema } from "./schema.ts";
import { type ListName, Subscriptions } from "./subscriptions.ts";
import type { TemplateVariables } from "./template-variables.ts";
import { type ToolHandler, type ToolOptions, Tools } from "./tools.ts";

/** A handler that can be told what it serves. What is registered under a known name replaces what was there. */
export interface Server extends Handler {
  tool<const Input extends Schema | undefined = undefined, const Output extends Schema | undefined = undefined>(
    name: string,
    options: ToolOptions<Input, Output>,
    handler: ToolHandler<Input, Output>,
  ): Server;
  resource(uri: string, options: ResourceOptions, read: ResourceHandler): Server;
  template<const Text extends string>(
    uriTemplate: Text,
    options: TemplateOptions,
    read: TemplateHandler<TemplateVariables<Text>>,
  ): Server;
  prompt<const Required extends Readonly<Record<string, unknown>> = Readonly<Record<string, unknown>>>(
    name: string,
    options: PromptOptions<Required>,
    get: PromptHandler<Required>,
  ): Server;
  /** Each says whether there was such a thing. */
  removeTool(name: string): boolean;
  removeResource(uri: string): boolean;
  removeTemplate(uriTemplate: string): boolean;
  removePrompt(name: string): boolean;
  /** Tells those who asked that the resource at this address has changed. */
  updated(uri: string): void;
  /** Ends what is held open for callers. */
  close(): Promise<void>;
}

type Methods = { [Name in keyof Server]: Server[Name] };
type Answer = (request: Request, context: Context) => Result | Promise<Result>;

export function createServer(info: ServerInfo): Server {
  const parts = new Parts(info);
  const answers: Readonly<Record<string, Answer>> = parts.answers();
  const handler: Handler = async (request, context) => {
    const answer = Object.hasOwn(answers, request.method) ? answers[request.method] : undefined;
    if (answer === undefined || !parts.serves(request.method)) throw methodNotFound(request.method);
    checkParams(request.method, request.params);
    return answer(request, context);
  };
  const { tools, resources, prompts, subscriptions } = parts;
  const methods: Methods = {
    tool(name, options, run) {
      tools.add(name, options, run);
      parts.noteHandler(run);
      return server;
    },
    resource(uri, options, read) {
      resources.add(uri, options, read);
      parts.noteHandler(read);
      return server;
    },
    template(uriTemplate, options, read) {
      resources.addTemplate(uriTemplate, options, read);
      parts.noteHandler(read);
      if (options.list !== undefined) parts.noteHandler(options.list, 1);
      parts.noteCompleters(Object.values(options.complete ?? {}));
      return server;
    },
    prompt(name, options, get) {
      prompts.add(name, options, get);
      parts.noteHandler(get);
      const declared: NonNullable<PromptOptions["arguments"]> = options.arguments ?? {};
      parts.noteCompleters(Object.values(declared).map(({ complete }) => complete));
      return server;
    },
    removeTool: (name) => tools.remove(name),
    removeResource: (uri) => resources.remove(uri),
    removeTemplate: (uriTemplate) => resources.removeTemplate(uriTemplate),
    removePrompt: (name) => prompts.remove(name),
    updated: (uri) => subscriptions.updated(uri),
    close: async () => subscriptions.close(),
  };
  const server: Server = Object.assign(handler, methods);
  return server;
}

/** What a server is made of, and what it can say of itself. */
class Parts {
  readonly subscriptions = new Subscriptions();
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
      "completion/complete": (request, context) =>
        complete(request, context, this.#frame, (ref) => this.#completers(ref)),
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
