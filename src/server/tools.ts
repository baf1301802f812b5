// Tools: their list and their calls. Arguments are checked by the tool's own schema; what does not fit, and
// what a tool throws, comes back as a result that the model can read (specification, server/tools, error
// handling). Only McpError crosses as an error of the protocol.

import type { Context, Meta, Request, Result } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import { type HeaderParam, headerParams } from "../protocol/header-params.ts";
import type { CallToolResult, ContentBlock, Icon, JsonSchema, ToolAnnotations } from "../protocol/model/index.ts";
import {
  hasTasks,
  type Supporting,
  TASK_SUPPORT,
  TASK_WANTED,
  type TaskSupport,
  type Wanting,
} from "../protocol/tasks.ts";
import { type Brought, CallContext, type ToolContext } from "./call-context.ts";
import { type Frame } from "./result-builder.ts";
import { defined } from "../core/objects.ts";
import { InputRequired, type Rounds } from "./input-required.ts";
import type { Check } from "./schema-kind.ts";
import { checkRegistration } from "./options.ts";
import { type BareFields, checkOf, jsonSchemaOf, type Schema, type SchemaInput, type SchemaOutput } from "./schema.ts";
import { demandScopes } from "../auth/bearer/scopes.ts";
import { counter, Shelf } from "./ordered-map.ts";
import { type TaskOptions, taskOptions } from "./options.ts";
import type { Tasks } from "./tasks.ts";
import { messageOf, passesOn } from "./tool-errors.ts";
import { declaredResult, failure, MadeResult, refusal, toolResult } from "./tool-result.ts";

/** What is said of a tool when it is registered. */
export interface ToolOptions<Input = Schema | undefined, Output = Schema | undefined> {
  /** For people: how a program shows the tool. Models call it by its name. */
  readonly title?: string;
  /** For the model: what the tool does, and when to call it. */
  readonly description?: string;
  /**
   * What the arguments must be: any Standard Schema (zod, arktype, ...) or a plain JSON Schema, of an object. It checks
   * each call, and the handler gets what it leaves. Without one, any arguments pass.
   *
   * @example
   * input: z.object({ text: z.string() })
   * @example
   * input: { type: "object", properties: { text: { type: "string" } }, required: ["text"] }
   */
  readonly input?: Input;
  /** The JSON Schema that callers see, beside an `input` that cannot say itself in one; alone, it also checks. */
  readonly inputSchema?: JsonSchema;
  /** What the tool returns, as structured content: a schema of either kind. What does not fit is not sent. */
  readonly output?: Output;
  /** As `inputSchema`, for `output`. */
  readonly outputSchema?: JsonSchema;
  /**
   * Hints on what a call does, for programs that ask a person first.
   *
   * @example
   * annotations: { readOnlyHint: true, openWorldHint: false }
   */
  readonly annotations?: ToolAnnotations;
  /** Pictures for programs that show the tool. */
  readonly icons?: readonly Icon[];
  /**
   * What a caller over HTTP must have proved that it may do; see `bearer`. It stays in the list for everybody, and a
   * caller that lacks a scope is told which.
   *
   * @example
   * scopes: ["notes:write"]
   */
  readonly scopes?: readonly string[];
  /**
   * Whether a call may, must or must not be run as a task: the caller gets a handle at once and comes back for the
   * result. "forbidden" where it is left out.
   *
   * @example
   * task: "optional"
   * @example
   * task: { support: "optional", when: "when-detached", ttlMs: 600_000 }
   */
  readonly task?: TaskSupport | TaskOptions;
  /** Passed to callers as it is, for what the specification has no field for. */
  readonly _meta?: Meta;
}

/** Refuses the bare fields of an object schema, `{ a: z.string() }`, which would otherwise pass as a JSON Schema. */
export type Wrapped<Input> = [BareFields<Input>] extends [never]
  ? unknown
  : { readonly input: "its values are schemas; wrap them: z.object({ ... })" };

export type ToolArguments<Input> = undefined extends Input
  ? Record<string, unknown>
  : SchemaOutput<Input> extends infer Value extends object
    ? Value
    : Record<string, unknown>;

/** A whole result, where a tool wants to say more than its value. */
export type ToolAnswer = Partial<CallToolResult> & { readonly content: readonly ContentBlock[] };

export type ToolReturn<Output> = undefined extends Output ? unknown : SchemaInput<Output> | ToolAnswer | InputRequired;

export type ToolHandler<Input, Output> = (
  args: ToolArguments<Input>,
  context: ToolContext,
) => ToolReturn<Output> | Promise<ToolReturn<Output>>;

interface Tool {
  readonly name: string;
  readonly scopes: readonly string[] | undefined;
  /** The arguments that stand in headers too; undefined where there are none. */
  readonly mirrored: readonly HeaderParam[] | undefined;
  readonly input: Check | undefined;
  readonly output: Check | undefined;
  /** Undefined where it is never a task. */
  readonly task: TaskOptions | undefined;
  run(args: unknown, context: ToolContext): unknown;
}

const NO_ARGUMENTS: object = Object.freeze({});

export class Tools {
  readonly #shelf: Shelf<Tool>;
  readonly #frame: Frame;
  readonly #rounds: Rounds;
  readonly #tasks: () => Promise<Tasks>;
  #whole: Result | undefined;
  #canBeTasks = false;

  constructor(frame: Frame, rounds: Rounds, tasks: () => Promise<Tasks>, changed: () => void) {
    this.#frame = frame;
    this.#rounds = rounds;
    this.#tasks = tasks;
    this.#shelf = new Shelf(counter(), () => {
      this.#whole = undefined;
      changed();
    });
  }

  get used(): boolean {
    return this.#shelf.used;
  }

  /** Whether there ever was one that can be a task. */
  get canBeTasks(): boolean {
    return this.#canBeTasks;
  }

  add(name: string, options: ToolOptions, run: Tool["run"]): void {
    const owner = checkRegistration("tool", name, options, run);
    const { title, description, input, output, annotations, icons, scopes, _meta } = options;
    const inputSchema = jsonSchemaOf(owner, "input", input, options.inputSchema) ?? {};
    if (inputSchema["type"] !== undefined && inputSchema["type"] !== "object") {
      throw new TypeError(`${owner}: its input must be an object, because arguments have names`);
    }
    const outputSchema = jsonSchemaOf(owner, "output", output, options.outputSchema);
    const asked = input ?? options.inputSchema;
    const promised = output ?? options.outputSchema;
    const { params, problem } = headerParams(inputSchema);
    if (problem !== undefined) throw new TypeError(`${owner}: ${problem}`);
    const tool: Tool = {
      name,
      run,
      scopes,
      mirrored: params.length === 0 ? undefined : params,
      input: asked && checkOf(asked, `${owner}: its input`),
      output: promised && checkOf(promised, `${owner}: its output`),
      task: taskOptions(owner, options.task),
    };
    this.#canBeTasks ||= tool.task !== undefined;
    const shown = inputSchema["type"] === "object" ? inputSchema : { type: "object", ...inputSchema };
    const fields = { name, title, description, icons, inputSchema: shown, outputSchema, annotations, _meta };
    this.#shelf.put(name, tool, defined(fields));
  }

  remove(name: string): boolean {
    return this.#shelf.remove(name);
  }

  list({ method, params }: Request): Result {
    const { cursor } = params;
    if (cursor === undefined && this.#whole !== undefined) return this.#whole;
    const listed = this.#frame.list(method, "tools", this.#shelf.items(), cursor);
    const result = this.#canBeTasks ? this.#withSupport(listed) : listed;
    if (cursor === undefined) this.#whole = Object.freeze(result);
    return result;
  }

  async call(request: Request, context: Context): Promise<Result> {
    const { name, arguments: given = NO_ARGUMENTS } = request.params as { name: string; arguments?: object };
    const tool = this.#shelf.get(name);
    if (tool === undefined) throw McpError.of("tool_not_found", `Tool not found: ${name}`, { toolName: name });
    if (tool.scopes !== undefined) demandScopes(tool.scopes, context.caller, `The tool ${name}`);
    const { headers } = context.caller;
    if (tool.mirrored !== undefined && headers !== undefined) {
      (await import("./tool-headers.ts")).checkMirrored(tool.mirrored, request, headers);
    }
    if (tool.task === undefined && (request.params as Wanting)[TASK_WANTED] === true) throw neverTask(name);
    const brought = this.#rounds.brought(request, context);
    // Awaited only where there is something to wait for: this is the path of every call.
    const had = brought instanceof Promise ? await brought : brought;
    try {
      const pending = tool.input?.(given) ?? { value: given };
      const checked = pending instanceof Promise ? await pending : pending;
      if (checked.issues !== undefined) return this.#frame.complete(refusal(name, checked.issues));
      // Who knows no tasks gets none: nothing of them is made for such a call.
      const task = tool.task?.support === "required" || hasTasks(context.caller.capabilities) ? tool.task : undefined;
      if (task !== undefined) return await this.#callTask(tool, task, checked.value, request, context, had);
      const value = await tool.run(checked.value, new CallContext(context, request, this.#frame, had));
      if (value instanceof InputRequired) return await this.#rounds.result(value, request, context);
      const result = this.#made(tool, value);
      return result instanceof Promise ? await result : result;
    } catch (error) {
      if (passesOn(error, context)) throw error;
      return this.#frame.complete(failure(messageOf(error)));
    }
  }

  #withSupport(listed: Result): Result {
    const tools = (listed["tools"] as readonly { readonly name: string }[]).map((tool): object & Supporting => {
      return { ...tool, [TASK_SUPPORT]: this.#shelf.get(tool.name)?.task?.support ?? "forbidden" };
    });
    return { ...listed, tools };
  }

  async #callTask(
    tool: Tool,
    options: TaskOptions,
    args: unknown,
    request: Request,
    context: Context,
    brought: Brought,
  ): Promise<Result> {
    const run = async (own: Context, had: Brought, detach: () => void): Promise<Result | InputRequired> => {
      try {
        const value = await tool.run(args, new CallContext(own, request, this.#frame, had, detach));
        return value instanceof InputRequired ? value : await this.#made(tool, value);
      } catch (error) {
        if (passesOn(error, own)) throw error;
        return this.#frame.complete(failure(messageOf(error)));
      }
    };
    return (await this.#tasks()).call({
      name: tool.name,
      scopes: tool.scopes,
      options,
      request,
      context,
      brought,
      run,
    });
  }

  #made({ name, output }: Tool, value: unknown): Result | Promise<Result> {
    if (value instanceof MadeResult) return this.#frame.made(value);
    const complete = (fields: ReturnType<typeof toolResult>): Result => this.#frame.complete(fields, fields._meta);
    if (output === undefined) return complete(toolResult(name, value));
    const made = declaredResult(name, value, output);
    return made instanceof Promise ? made.then(complete) : complete(made);
  }
}

function neverTask(toolName: string): McpError {
  return McpError.of("method_not_found", `Tool ${toolName} cannot be run as a task`, { toolName });
}
