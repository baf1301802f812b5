// Tools: registration, list and calls. Arguments that do not fit the tool's schema, and errors that the tool throws,
// become results that the model can read (specification, server/tools, error handling). Only an McpError becomes a
// protocol error.

import { demandScopes } from "../protocol/scopes.ts";
import type { Context, Request } from "../core/handler.ts";
import { kindOf, type OptionNames, optionNames } from "../core/options.ts";
import { defined, isObject } from "../core/values.ts";
import { invalidArguments, invalidArgumentsError, McpError } from "../protocol/errors.ts";
import { checkHeaderParams, type HeaderParam, headerParams } from "../tools/header-params.ts";
import type {
  CallToolResult,
  JsonSchema,
  ListToolsResult,
  Tool as ListedTool,
  ToolAnnotations,
} from "../protocol/model/index.ts";
import type { AnswerOf, RequestOf } from "../protocol/methods.ts";
import { META } from "../protocol/model/base.ts";
import { cannotBeTask, hasTasks, type TaskSupport, type ToolExecution } from "../protocol/tasks.ts";
import { CallContext, type ToolContext } from "./call-context.ts";
import { InputRequired, NO_INPUT } from "./input-required.ts";
import {
  alreadyRegistered,
  checkName,
  checkRegistration,
  readTaskOptions,
  type TaskOptions,
  type RegistrationOptions,
} from "./options.ts";
import { type Registered, Registrations } from "./registrations.ts";
import type { ResultBuilder } from "./result-builder.ts";
import type { CheckedHandler, ToolReturn } from "./returned-types.ts";
import type { SchemaCheck } from "../tools/schema-kind.ts";
import {
  type ArgumentsMistake,
  createSchemaCheck,
  type Schema,
  type SchemaInput,
  type SchemaMistake,
  type SchemaOutput,
  toJsonSchema,
} from "./schema.ts";
import type { RetryInput } from "./sealed-states.ts";
import type { Tasks } from "./tasks.ts";
import { errorResult, toolResult } from "./tool-result.ts";

/** Options of `server.tool()`. */
export interface ToolOptions<Input = Schema | undefined, Output = Schema | undefined> extends RegistrationOptions {
  /** The name to show to people. Models use the tool's name. */
  readonly title?: string | undefined;
  /** For the model: what the tool does and when to call it. */
  readonly description?: string | undefined;
  /**
   * The schema of the arguments: an object schema, as any Standard Schema (zod, arktype, ...) or a plain JSON Schema.
   * Each call is checked, and the handler gets the value that the schema returns. Default: any arguments are accepted.
   *
   * @example
   * input: z.object({ text: z.string() })
   * @example
   * input: { type: "object", properties: { text: { type: "string" } }, required: ["text"] }
   */
  readonly input?: Input | undefined;
  /**
   * The JSON Schema that clients see, if the library of `input` cannot produce one. Without `input`, the arguments are
   * also checked against it.
   */
  readonly inputSchema?: JsonSchema | undefined;
  /** The schema of the structured content that the tool returns. A result that does not fit is an error. */
  readonly output?: Output | undefined;
  /** Like `inputSchema`, for `output`. */
  readonly outputSchema?: JsonSchema | undefined;
  /**
   * Hints about the effects of a call, for clients that ask their user before a call.
   *
   * @example
   * annotations: { readOnlyHint: true, openWorldHint: false }
   */
  readonly annotations?: ToolAnnotations | undefined;
  /**
   * Whether a call can run as a task: the client gets a task and fetches the result later. Default: "forbidden".
   *
   * @example
   * task: "optional"
   * @example
   * task: { support: "optional", when: "when-detached", ttlMs: 600_000 }
   */
  readonly task?: TaskSupport | TaskOptions | undefined;
}

const OPTION_NAMES: OptionNames<ToolOptions> = optionNames(
  "title description input inputSchema output outputSchema annotations icons scopes visible task _meta",
);

/** Makes it a compile error to pass a wrong schema: bare fields, a misspelt keyword, arguments that are not an object. */
export type CheckedSchemas<Input, Output = undefined> = Refused<"input", ArgumentsMistake<Input>> &
  Refused<"output", SchemaMistake<Output>>;

/** The compiler prints the mistake as the type that it expected. */
export type Refused<Option extends string, Mistake> = [Mistake] extends [never]
  ? unknown
  : { readonly [Name in Option]?: Mistake };

/** The type of the arguments that the handler of a tool gets. */
export type ToolArguments<Input> = undefined extends Input
  ? Record<string, unknown>
  : SchemaOutput<Input> extends infer Value extends object
    ? Value
    : Record<string, unknown>;

/** The types of a tool for its clients: arguments before the check, structured content after it. */
export type ToolTypeOf<Input, Output> = {
  readonly input: undefined extends Input ? Record<string, unknown> : SchemaInput<Input>;
  readonly output: undefined extends Output ? unknown : SchemaOutput<Output>;
};

/** The function of a tool. */
export type ToolHandler<Input, Output, Env = unknown> = (
  args: ToolArguments<Input>,
  context: ToolContext<Env>,
) => ToolReturn<Output> | Promise<ToolReturn<Output>>;

/** A tool as a value: its name, its options and its handler. `defineTool` creates it, and `server.tools` registers it. */
export interface ToolDefinition<
  Name extends string = string,
  Input = Schema | undefined,
  Output = Schema | undefined,
  Env = unknown,
> extends ToolOptions<Input, Output> {
  /** The name by which models call the tool. */
  readonly name: Name;
  /** The function of the tool. */
  readonly handler: ToolHandler<Input, Output, Env>;
}

/** Any tool that a server with this environment can register. */
export interface AnyTool<Env = unknown> extends ToolOptions<unknown, unknown> {
  readonly name: string;
  readonly handler: (args: never, context: ToolContext<Env>) => unknown;
}

/** The types of defined tools for clients, by name. */
export type ToolTypesOf<Defined extends readonly AnyTool<never>[]> = {
  readonly [Tool in Defined[number] as Tool["name"]]: Tool extends ToolDefinition<
    string,
    infer Input,
    infer Output,
    never
  >
    ? ToolTypeOf<Input, Output>
    : never;
};

/**
 * Defines a tool, so that it can be exported from a file of its own. Register it with `server.tools([...])`.
 *
 * @example
 * export const echo = defineTool({
 *   name: "echo",
 *   input: z.object({ text: z.string() }),
 *   handler: ({ text }) => text,
 * });
 */
export function defineTool<
  const Name extends string,
  const Input extends Schema | undefined = undefined,
  const Output extends Schema | undefined = undefined,
  Env = unknown,
  Run = unknown,
>(
  definition: ToolDefinition<Name, Input, Output, Env> &
    CheckedSchemas<Input, Output> & { readonly handler: Run & CheckedHandler<Run, Output> },
): ToolDefinition<Name, Input, Output, Env> {
  if (!isObject(definition)) throw new TypeError(`defineTool() takes an object, not ${kindOf(definition)}`);
  const { name, handler, ...options } = definition;
  checkRegistration("tool", name, options, handler, OPTION_NAMES);
  return definition;
}

interface Tool extends Registered {
  readonly name: string;
  /** Arguments that stateless clients repeat in HTTP headers; undefined if there are none. */
  readonly headerParams: readonly HeaderParam[] | undefined;
  readonly input: SchemaCheck | undefined;
  readonly output: SchemaCheck | undefined;
  /** Undefined if the tool never runs as a task. */
  readonly task: TaskOptions | undefined;
  run(args: unknown, context: ToolContext): unknown;
}

interface Created {
  readonly tool: Tool;
  readonly listItem: ListedTool;
}

const NO_ARGUMENTS: object = Object.freeze({});

export class Tools {
  readonly entries: Registrations<Tool, ListedTool>;
  /** Whether there ever was a tool that can run as a task. */
  hasTaskTools = false;
  readonly #results: ResultBuilder;
  readonly #loadTasks: () => Promise<Tasks>;
  /** By cursor, until the list changes. A cursor of a kept page is there before its own page is. */
  readonly #pages = new Map<unknown, ListToolsResult | undefined>([[undefined, undefined]]);

  constructor(results: ResultBuilder, loadTasks: () => Promise<Tasks>, onChange: () => void) {
    this.#results = results;
    this.#loadTasks = loadTasks;
    this.entries = new Registrations(() => {
      this.#pages.clear();
      this.#pages.set(undefined, undefined);
      onChange();
    });
  }

  add(name: string, options: ToolOptions, run: Tool["run"]): void {
    this.#set(this.#create(name, options, run));
  }

  /** Adds all of them, or none if one is wrong. */
  addAll(definitions: readonly AnyTool<never>[]): void {
    const created = new Map<string, Created>();
    for (const [index, definition] of definitions.entries()) {
      if (!isObject(definition)) {
        throw new TypeError(`tools(): item ${index} must be defineTool({ ... }), not ${kindOf(definition)}`);
      }
      const { name, handler, ...options }: ToolDefinition = definition as never;
      if (created.has(name)) throw alreadyRegistered(`Tool ${name}`);
      created.set(name, this.#create(name, options, handler));
    }
    for (const tool of created.values()) this.#set(tool);
  }

  #create(name: string, options: ToolOptions, run: Tool["run"]): Created {
    const owner = checkRegistration("tool", name, options, run, OPTION_NAMES);
    checkName("tool", owner, name);
    if (this.entries.get(name) !== undefined) throw alreadyRegistered(owner, `removeTool(${JSON.stringify(name)})`);
    const { title, description, input, output, annotations, icons, scopes, visible, _meta } = options;
    const inputSchema = toJsonSchema(owner, "input", input, options.inputSchema) ?? {};
    if (inputSchema["type"] !== undefined && inputSchema["type"] !== "object") {
      throw new TypeError(`${owner}: \`input\` must be an object schema, because arguments have names`);
    }
    const outputSchema = toJsonSchema(owner, "output", output, options.outputSchema);
    const inputCheck = input ?? options.inputSchema;
    const outputCheck = output ?? options.outputSchema;
    const { params, problem } = headerParams(inputSchema);
    if (problem !== undefined) throw new TypeError(`${owner}: ${problem}`);
    const tool: Tool = {
      name,
      run,
      scopes,
      visible,
      headerParams: params.length === 0 ? undefined : params,
      input: inputCheck && createSchemaCheck(inputCheck, `${owner}: \`input\``),
      output: outputCheck && createSchemaCheck(outputCheck, `${owner}: \`output\``),
      task: readTaskOptions(owner, options.task),
    };
    const listed = isObjectSchema(inputSchema) ? inputSchema : { type: "object" as const, ...inputSchema };
    const fields = { name, title, description, icons, inputSchema: listed, outputSchema, annotations, _meta };
    return { tool, listItem: defined(fields) };
  }

  #set({ tool, listItem }: Created): void {
    this.hasTaskTools ||= tool.task !== undefined;
    this.entries.set(tool.name, tool, listItem);
  }

  list(request: RequestOf<"tools/list">, context: Context): ListToolsResult {
    const listed = this.entries.hasHidden ? this.#list(request, context) : this.#kept(request, context);
    return this.hasTaskTools && context.caller.style === "session" ? this.#withTaskSupport(listed) : listed;
  }

  /** A page is kept only for a cursor of ours: callers could invent others without end. */
  #kept(request: RequestOf<"tools/list">, context: Context): ListToolsResult {
    const { cursor } = request.params;
    const known = this.#pages.get(cursor);
    if (known !== undefined) return known;
    const page = this.#list(request, context);
    if (!this.#pages.has(cursor)) return page;
    this.#pages.set(cursor, Object.freeze(page));
    const { nextCursor: next } = page;
    if (next !== undefined && !this.#pages.has(next)) this.#pages.set(next, undefined);
    return page;
  }

  #list(request: RequestOf<"tools/list">, context: Context): ListToolsResult {
    const { items: tools, nextCursor } = this.#results.page(request, this.entries.seenBy(context));
    return this.#results.cacheable(defined({ tools, nextCursor }));
  }

  async call(request: RequestOf<"tools/call">, context: Context): Promise<AnswerOf<"tools/call">> {
    const { params } = request;
    const { name } = params;
    const tool = this.entries.find(name, context);
    if (tool === undefined) throw McpError.of("tool_not_found", `Tool not found: ${name}`, { toolName: name });
    if (tool.scopes !== undefined) demandScopes(tool.scopes, context.caller, `The tool ${name}`);
    if (tool.headerParams !== undefined) checkHeaders(tool.headerParams, request, context);
    if (tool.task === undefined && context.task?.mode === "required") throw cannotBeTask(name);
    // Every call comes through here, and an await costs time even for a plain value, so only a promise is awaited.
    const isFirst = params.requestState === undefined && params.inputResponses === undefined;
    const retry = isFirst ? NO_INPUT : await this.#results.inputs.decode(request, context);
    try {
      let args: unknown = params.arguments ?? NO_ARGUMENTS;
      if (tool.input !== undefined) {
        const pending = tool.input(args);
        const checked = pending instanceof Promise ? await pending : pending;
        if (checked.issues !== undefined) return await this.#refuse(name, checked.issues, context);
        args = checked.value;
      }
      // A client without tasks gets a plain call, unless the tool always runs as a task.
      if (tool.task?.support === "required" || (tool.task !== undefined && hasTasks(context.caller.capabilities))) {
        return await this.#callTask(tool, tool.task, args, request, context, retry);
      }
      const value = await tool.run(args, new CallContext(context, request, this.#results, retry));
      if (value instanceof InputRequired) return await this.#results.inputs.encode(value, request, context, retry);
      const result = toolResult(name, value, tool.output, this.#results.meta);
      return result instanceof Promise ? await result : result;
    } catch (error) {
      return this.#failed(error, request, context);
    }
  }

  #failed(error: unknown, request: Request, context: Context): CallToolResult {
    return errorResult(this.#results.errors.describe(error, request, context), this.#results.meta);
  }

  /** In older revisions, invalid arguments are a protocol error. */
  async #refuse(name: string, issues: readonly string[], context: Context): Promise<CallToolResult> {
    const { revisionNamed } = await import("../protocol/revisions/index.ts");
    if (revisionNamed(context.revision)?.argumentErrors === true) throw invalidArgumentsError(name, issues);
    return this.#results.complete(invalidArguments(name, issues));
  }

  /** Adds the field `execution`, which session-style revisions have. It is empty for tools without tasks. */
  #withTaskSupport(listed: ListToolsResult): ListToolsResult {
    const tools = listed.tools.map((tool) => {
      const taskSupport = this.entries.get(tool.name)?.task?.support;
      const execution: ToolExecution = taskSupport === undefined ? {} : { taskSupport };
      return { ...tool, execution };
    });
    return { ...listed, tools };
  }

  async #callTask(
    tool: Tool,
    options: TaskOptions,
    args: unknown,
    request: Request,
    context: Context,
    retry: RetryInput,
  ): Promise<AnswerOf<"tools/call">> {
    const { name, scopes, output } = tool;
    const run = async (
      callContext: Context,
      input: RetryInput,
      detach: () => void,
    ): Promise<CallToolResult | InputRequired> => {
      try {
        const value = await tool.run(args, new CallContext(callContext, request, this.#results, input, detach));
        return value instanceof InputRequired ? value : await toolResult(name, value, output, this.#results.meta);
      } catch (error) {
        return this.#failed(error, request, callContext);
      }
    };
    return (await this.#loadTasks()).call({ name, scopes, options, request, context, retry, run });
  }
}

function isObjectSchema(schema: JsonSchema): schema is ListedTool["inputSchema"] {
  return schema["type"] === "object";
}

/** Throws if the headers of a stateless call contradict its arguments. */
function checkHeaders(
  expected: readonly HeaderParam[],
  { params }: Request,
  { caller: { headers }, headersChecked }: Context,
): void {
  if (headers === undefined || headersChecked === true || params._meta?.[META.revision] === undefined) return;
  const mismatch = checkHeaderParams(expected, params["arguments"], headers);
  if (mismatch !== undefined) throw McpError.of("header_mismatch", mismatch);
}
