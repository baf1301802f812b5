// `createServer`: a handler built from tools, resources and prompts, which can be registered and removed while it runs.
// It only speaks the newest revision; connections translate for clients of older revisions.

import type { Handler, Notification } from "../core/handler.ts";
import { methodNotFound } from "../protocol/errors.ts";
import { checkServer, type ServerOptions } from "./options.ts";
import type { MethodOptions, NotificationHandler, VendorMethodHandler } from "./methods.ts";
import type { PromptHandler, PromptOptions } from "./prompts.ts";
import { type MethodHandler, Registry } from "./registry.ts";
import type {
  ResourceHandler,
  ResourceOptions,
  TemplateHandler,
  TemplateOptions,
  TemplateVariables,
} from "./resources.ts";
import type { Schema } from "./schema.ts";
import type { ToolHandler, ToolOptions, WrappedInput } from "./tools.ts";

/** A handler with methods that register tools, resources and prompts. Registering a name again replaces it. */
export interface Server extends Handler {
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
  tool<const Input extends Schema | undefined = undefined, const Output extends Schema | undefined = undefined>(
    name: string,
    options: ToolOptions<Input, Output> & WrappedInput<Input>,
    handler: ToolHandler<Input, Output>,
  ): Server;
  /**
   * Registers a resource: something to read at a URI. A returned string is text, a `Uint8Array` is a blob, an object
   * with resource `contents` is the whole result, undefined is "not found", and anything else is JSON.
   *
   * @example
   * server.resource("notes://today", { name: "Today", mimeType: "text/plain" }, () => "Water the plants.");
   */
  resource(uri: string, options: ResourceOptions, read: ResourceHandler): Server;
  /**
   * Registers resources whose URIs match a URI template (RFC 6570). The handler gets the template's variables and
   * returns what the handler of a resource returns.
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
   * Registers a prompt: messages that a user can start from. A returned string is one user message, an
   * array is the messages, and an object with `messages` is the whole result.
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
   * Registers a method that the specification does not define. The params, without `_meta`, are checked only if there
   * is a schema. The returned object is the result.
   *
   * @example
   * server.method("acme/search", { input: z.object({ text: z.string() }) }, ({ text }) => ({ found: search(text) }));
   */
  method<const Input extends Schema | undefined = undefined>(
    name: string,
    options: MethodOptions<Input> & WrappedInput<Input>,
    handler: VendorMethodHandler<Input>,
  ): Server;
  method(name: string, handler: VendorMethodHandler<undefined>): Server;
  /**
   * Registers a handler for a notification of clients that the specification does not define.
   *
   * @example
   * server.notification("notifications/acme/opened", ({ file }) => open(file));
   */
  notification(name: string, handler: NotificationHandler): Server;
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
   * Notifies the clients that subscribed to this URI that the resource has changed.
   *
   * @example
   * server.resourceUpdated("notes://today");
   */
  resourceUpdated(uri: string): void;
  /**
   * Sends a notification that the specification does not define to all clients with a session, and to those that listen
   * for changes.
   *
   * @example
   * server.notify({ method: "notifications/acme/tick", params: { count: 1 } });
   */
  notify(notification: Notification): void;
  /**
   * Ends all subscriptions and tasks. Connections stay open; close them with the object that `serve` returned.
   *
   * @example
   * await server.close();
   */
  close(): Promise<void>;
}

type RunMethod = VendorMethodHandler<Schema | undefined>;
type ServerMethods = { [Name in keyof Server]: Server[Name] };

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
 */
export function createServer(options: ServerOptions, ...more: never[]): Server {
  checkServer(options, more.length > 0);
  const registry = new Registry(options);
  const methodHandlers: Readonly<Record<string, MethodHandler>> = registry.methods();
  const handler: Handler = async (request, context) => {
    const handle = Object.hasOwn(methodHandlers, request.method) ? methodHandlers[request.method] : undefined;
    if (handle === undefined || !registry.hasMethod(request.method)) {
      const answer = registry.vendorMethods.handle(request, context);
      if (answer === undefined) throw methodNotFound(request.method);
      return answer;
    }
    return handle(request, context);
  };
  const { tools, resources, prompts, vendorMethods, subscriptions } = registry;
  const methods: ServerMethods = {
    tool(name, options, run) {
      tools.add(name, options, run);
      registry.noteHandler(run);
      return server;
    },
    resource(uri, options, read) {
      resources.add(uri, options, read);
      registry.noteHandler(read);
      return server;
    },
    template(uriTemplate, options, read) {
      resources.addTemplate(uriTemplate, options, read);
      registry.noteHandler(read);
      if (options.list !== undefined) registry.noteHandler(options.list, 1);
      registry.noteCompleters(Object.values(options.complete ?? {}));
      return server;
    },
    prompt(name, options, get) {
      prompts.add(name, options, get);
      registry.noteHandler(get);
      const declared: NonNullable<PromptOptions["arguments"]> = options.arguments ?? {};
      registry.noteCompleters(Object.values(declared).map(({ complete }) => complete));
      return server;
    },
    method(name: string, ...given: unknown[]) {
      const [options, run] = (typeof given[0] === "function" ? [{}, given[0]] : given) as [MethodOptions, RunMethod];
      vendorMethods.add(name, options, run);
      registry.noteHandler(run);
      return server;
    },
    notification(name, run) {
      vendorMethods.addNotification(name, run);
      registry.noteHandler(run);
      return server;
    },
    removeTool: (name) => tools.remove(name),
    removeResource: (uri) => resources.remove(uri),
    removeTemplate: (uriTemplate) => resources.removeTemplate(uriTemplate),
    removePrompt: (name) => prompts.remove(name),
    resourceUpdated: (uri) => subscriptions.resourceUpdated(uri),
    notify: (notification) => subscriptions.notifyAll(notification),
    close: async () => registry.close(),
  };
  const server: Server = Object.assign(handler, methods);
  return server;
}
