// Tools: registration, list and calls. Arguments that do not fit the tool's schema, and errors that the tool throws,
// become results that the model can read (specification, server/tools, error handling). Only an McpError becomes a
// protocol error.

import { demandScopes } from "../protocol/caller.ts";
import type { Caller, Context, Meta, Request, Result } from "../core/handler.ts";
import { kindOf, type OptionNames, optionNames } from "../core/options.ts";
import { defined, isObject } from "../core/values.ts";
import { invalidArguments, invalidArgumentsError, McpError } from "../protocol/errors.ts";
import { checkHeaderParams, type HeaderParam, headerParams } from "../tools/header-params.ts";
import type { Icon, JsonSchema, ToolAnnotations } from "../protocol/model/index.ts";
import { META } from "../protocol/model/base.ts";
import { hasTasks, type TaskSupport, type ToolExecution } from "../protocol/tasks.ts";
import { CallContext, type RetryInput, type ToolContext } from "./call-context.ts";
import { InputRequired, type InputRequiredCodec } from "./input-required.ts";
import {
  alreadyRegistered,
  checkName,
  checkRegistration,
  isVisible,
  readTaskOptions,
  type TaskOptions,
  type Visible,
} from "./options.ts";
import {
  checkedToolResult,
  errorResult,
  OrderedMap,
  toolResult,
  TrustedResult,
  type ResultBuilder,
} from "./result-builder.ts";
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
import type { Tasks } from "./tasks.ts";

/** Options of `server.tool()`. */
export interface ToolOptions<Input = Schema | undefined, Output = Schema | undefined> {
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
  /** Icons for user interfaces. */
  readonly icons?: readonly Icon[] | undefined;
  /**
   * The scopes that a client over HTTP needs; see `bearer`. All clients see the tool in the list. The error for a
   * missing scope names it.
   *
   * @example
   * scopes: ["notes:write"]
   */
  readonly scopes?: readonly string[] | undefined;
  /**
   * Whether a caller sees the tool in the list and can use it; for others it does not exist. Default: everybody does.
   *
   * @example
   * visible: ({ scopes }) => scopes?.includes("admin") === true
   */
  readonly visible?: Visible | undefined;
  /**
   * Whether a call can run as a task: the client gets a task and fetches the result later. Default: "forbidden".
   *
   * @example
   * task: "optional"
   * @example
   * task: { support: "optional", when: "when-detached", ttlMs: 600_000 }
   */
  readonly task?: TaskSupport | TaskOptions | undefined;
  /** Extra data for clients, sent as it is. */
  readonly _meta?: Meta | undefined;
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
  const { name, handler, ...options } = definition as object as ToolDefinition;
  checkRegistration("tool", name, options, handler, OPTION_NAMES);
  return definition;
}

interface Tool {
  readonly name: string;
  readonly scopes: readonly string[] | undefined;
  readonly visible: Visible | undefined;
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
  readonly listItem: object;
}

const NO_ARGUMENTS: object = Object.freeze({});

export class Tools {
  readonly entries: OrderedMap<Tool>;
  /** Whether there ever was a tool that can run as a task. */
  hasTaskTools = false;
  readonly #results: ResultBuilder;
  readonly #inputs: InputRequiredCodec;
  readonly #loadTasks: () => Promise<Tasks>;
  /** By cursor, until the list changes. A cursor of a kept page is there before its own page is. */
  readonly #pages = new Map<unknown, Result | undefined>([[undefined, undefined]]);
  /** Whether there ever was a tool that not everybody sees. */
  #hasHidden = false;

  constructor(
    results: ResultBuilder,
    inputs: InputRequiredCodec,
    loadTasks: () => Promise<Tasks>,
    onChange: () => void,
  ) {
    this.#results = results;
    this.#inputs = inputs;
    this.#loadTasks = loadTasks;
    this.entries = new OrderedMap(() => {
      this.#pages.clear();
      this.#pages.set(undefined, undefined);
      onChange();
    });
  }

  get wasUsed(): boolean {
    return this.entries.wasUsed;
  }

  add(name: string, options: ToolOptions, run: Tool["run"]): void {
    this.#set(this.#create(name, options, run));
  }

  /** Adds all of them, or none if one is wrong. */
  addAll(definitions: readonly unknown[]): void {
    const created = new Map<string, Created>();
    for (const [index, definition] of definitions.entries()) {
      if (!isObject(definition)) {
        throw new TypeError(`tools(): item ${index} must be defineTool({ ... }), not ${kindOf(definition)}`);
      }
      const { name, handler, ...options } = definition as object as ToolDefinition;
      if (created.has(name)) throw alreadyRegistered(`Tool ${name}`);
      created.set(name, this.#create(name, options, handler));
    }
    for (const each of created.values()) this.#set(each);
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
    const listed = inputSchema["type"] === "object" ? inputSchema : { type: "object", ...inputSchema };
    const fields = { name, title, description, icons, inputSchema: listed, outputSchema, annotations, _meta };
    return { tool, listItem: defined(fields) };
  }

  #set({ tool, listItem }: Created): void {
    this.hasTaskTools ||= tool.task !== undefined;
    this.#hasHidden ||= tool.visible !== undefined;
    this.entries.set(tool.name, tool, listItem);
  }

  list(request: Request, context: Context): Result {
    const listed = this.#hasHidden ? this.#list(request, context) : this.#kept(request, context);
    return this.hasTaskTools && context.caller.style === "session" ? this.#withTaskSupport(listed) : listed;
  }

  /** A page is kept only for a cursor of ours: callers could invent others without end. */
  #kept(request: Request, context: Context): Result {
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

  #list(request: Request, context: Context): Result {
    const all = this.entries.entries();
    const seen = this.#hasHidden ? all.filter(({ value }) => isVisible(value.visible, context)) : all;
    return this.#results.list(request, "tools", seen);
  }

  async call(request: Request, context: Context): Promise<Result> {
    const { name, arguments: given = NO_ARGUMENTS } = request.params as { name: string; arguments?: object };
    const tool = this.entries.get(name);
    if (tool === undefined || !isVisible(tool.visible, context)) {
      throw McpError.of("tool_not_found", `Tool not found: ${name}`, { toolName: name });
    }
    if (tool.scopes !== undefined) demandScopes(tool.scopes, context.caller, `The tool ${name}`);
    const { headers } = context.caller;
    if (tool.headerParams !== undefined && headers !== undefined && context.headersChecked !== true) {
      checkHeaders(tool.headerParams, request, headers);
    }
    if (tool.task === undefined && context.task?.mode === "required") throw cannotBeTask(name);
    const decoded = this.#inputs.decode(request, context);
    // Every call comes through here, and an await costs time even for a plain value, so only a promise is awaited.
    const retry = decoded instanceof Promise ? await decoded : decoded;
    try {
      const pending = tool.input?.(given) ?? { value: given };
      const checked = pending instanceof Promise ? await pending : pending;
      if (checked.issues !== undefined) {
        // In older revisions, invalid arguments are a protocol error.
        const { revisionNamed } = await import("../protocol/revisions/index.ts");
        if (revisionNamed(context.revision)?.argumentErrors === true) throw invalidArgumentsError(name, checked.issues);
        return this.#results.complete(invalidArguments(name, checked.issues));
      }
      // A client without tasks gets a plain call, unless the tool always runs as a task.
      const task = tool.task?.support === "required" || hasTasks(context.caller.capabilities) ? tool.task : undefined;
      if (task !== undefined) return await this.#callTask(tool, task, checked.value, request, context, retry);
      const value = await tool.run(checked.value, new CallContext(context, request, this.#results, retry));
      if (value instanceof InputRequired) return await this.#inputs.encode(value, request, context, retry);
      const result = this.#toResult(tool, value);
      return result instanceof Promise ? await result : result;
    } catch (error) {
      return this.#results.complete(errorResult(this.#results.errors.describe(error, request, context)));
    }
  }

  /** Adds the field `execution`, which session-style revisions have. It is empty for tools without tasks. */
  #withTaskSupport(listed: Result): Result {
    const tools = (listed["tools"] as readonly { readonly name: string }[]).map((tool) => {
      const task = this.entries.get(tool.name)?.task;
      const execution: ToolExecution = task === undefined ? {} : { taskSupport: task.support };
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
  ): Promise<Result> {
    const run = async (own: Context, input: RetryInput, detach: () => void): Promise<Result | InputRequired> => {
      try {
        const value = await tool.run(args, new CallContext(own, request, this.#results, input, detach));
        return value instanceof InputRequired ? value : await this.#toResult(tool, value);
      } catch (error) {
        return this.#results.complete(errorResult(this.#results.errors.describe(error, request, own)));
      }
    };
    return (await this.#loadTasks()).call({
      name: tool.name,
      scopes: tool.scopes,
      options,
      request,
      context,
      retry,
      run,
    });
  }

  #toResult({ name, output }: Tool, value: unknown): Result | Promise<Result> {
    if (value instanceof TrustedResult) return this.#results.trusted(value);
    const complete = (fields: ReturnType<typeof toolResult>): Result => this.#results.complete(fields, fields._meta);
    if (output === undefined) return complete(toolResult(name, value));
    const result = checkedToolResult(name, value, output);
    return result instanceof Promise ? result.then(complete) : complete(result);
  }
}

function cannotBeTask(toolName: string): McpError {
  return McpError.of("method_not_found", `Tool ${toolName} cannot be run as a task`, { toolName });
}

/** Throws if the headers of a stateless call contradict its arguments. */
function checkHeaders(
  expected: readonly HeaderParam[],
  { params }: Request,
  headers: NonNullable<Caller["headers"]>,
): void {
  if (params._meta?.[META.revision] === undefined) return;
  const mismatch = checkHeaderParams(expected, params["arguments"], headers);
  if (mismatch !== undefined) throw McpError.of("header_mismatch", mismatch);
}
