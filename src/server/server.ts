// A server: a handler made of registrations. It speaks only the newest shape, whatever its callers speak, and
// knows nothing of wires. Its capabilities are what was registered, no more. Registrations may come and go
// while it runs.

import type { Handler } from "../core/handler.ts";
import { checkParams } from "../protocol/check.ts";
import { methodNotFound } from "../protocol/errors.ts";
import type { ServerInfo } from "./result-builder.ts";
import { type Answer, Parts } from "./registry.ts";
import type { PromptHandler, PromptOptions } from "./prompts.ts";
import type { ResourceHandler, ResourceOptions, TemplateHandler, TemplateOptions, TemplateVariables } from "./resources.ts";
import type { Schema } from "./schema.ts";
import type { ToolHandler, ToolOptions, Wrapped } from "./tools.ts";

/** A handler that can be told what it serves. What is registered under a known name replaces what was there. */
export interface Server extends Handler {
  /**
   * Registers a tool: a function that a model may call. A string that it returns is one text block, content blocks
   * are content, and anything else is structured content with its JSON as text. What it throws is a result with
   * `isError`, for the model to read; an `McpError` is an error of the protocol.
   *
   * @example
   * server.tool(
   *   "add",
   *   { description: "Adds two numbers", input: z.object({ a: z.number(), b: z.number() }) },
   *   ({ a, b }) => a + b,
   * );
   */
  tool<const Input extends Schema | undefined = undefined, const Output extends Schema | undefined = undefined>(
    name: string,
    options: ToolOptions<Input, Output> & Wrapped<Input>,
    handler: ToolHandler<Input, Output>,
  ): Server;
  /**
   * Registers a resource: something to read at one address. A string is text, a `Uint8Array` is a blob, undefined is
   * "not found", anything else is JSON.
   *
   * @example
   * server.resource("notes://today", { name: "Today", mimeType: "text/plain" }, () => "Water the plants.");
   */
  resource(uri: string, options: ResourceOptions, read: ResourceHandler): Server;
  /**
   * Registers resources whose addresses follow a URI template (RFC 6570). The handler gets the template's variables;
   * it returns what a resource returns.
   *
   * @example
   * server.template("notes://day/{date}", { name: "Notes of a day" }, ({ date }) => notes.get(date));
   */
  template<const Text extends string>(
    uriTemplate: Text,
    options: TemplateOptions,
    read: TemplateHandler<TemplateVariables<Text>>,
  ): Server;
  /**
   * Registers a prompt: messages that a person may start from. A string is one message of the user; an array is the
   * messages themselves.
   *
   * @example
   * server.prompt(
   *   "review",
   *   { description: "Reviews a class", arguments: { className: { required: true } } },
   *   ({ className }) => `Please review the class ${className}.`,
   * );
   */
  prompt<const Required extends Readonly<Record<string, unknown>> = Readonly<Record<string, unknown>>>(
    name: string,
    options: PromptOptions<Required>,
    get: PromptHandler<Required>,
  ): Server;
  /**
   * Takes a tool away and says whether it was there. Callers that listen hear that the list has changed.
   *
   * @example
   * server.removeTool("add"); // true, and false the second time
   */
  removeTool(name: string): boolean;
  /**
   * Takes a resource away and says whether it was there.
   *
   * @example
   * server.removeResource("notes://today");
   */
  removeResource(uri: string): boolean;
  /**
   * Takes a template away, named by its text as it was registered, and says whether it was there.
   *
   * @example
   * server.removeTemplate("notes://day/{date}");
   */
  removeTemplate(uriTemplate: string): boolean;
  /**
   * Takes a prompt away and says whether it was there.
   *
   * @example
   * server.removePrompt("review");
   */
  removePrompt(name: string): boolean;
  /**
   * Tells the callers who asked for it that what is read at this address has changed.
   *
   * @example
   * server.updated("notes://today");
   */
  updated(uri: string): void;
  /**
   * Ends what is held open for callers, and every task. It closes no connection: that is for what `serve` gave.
   *
   * @example
   * await server.close();
   */
  close(): Promise<void>;
}

type Methods = { [Name in keyof Server]: Server[Name] };

/**
 * Makes a server, empty until something is registered. It is a handler: `serve` puts it on a wire, and `connect`
 * takes it as it is.
 *
 * @example
 * const server = createServer({ name: "notes", version: "1.0.0" })
 *   .tool("echo", { input: z.object({ text: z.string() }) }, ({ text }) => text);
 * await serve(server);
 */
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
    close: async () => parts.close(),
  };
  const server: Server = Object.assign(handler, methods);
  return server;
}
