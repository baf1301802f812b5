// Tools: their list and their calls. Arguments are checked by the tool's own schema; what does not fit, and
// what a tool throws, comes back as a result that the model can read (specification, server/tools, error
// handling). Only McpError crosses as an error of the protocol.

import type { Context } from "../core/context.ts";
import type { Meta, Request, Result } from "../core/handler.ts";
import { McpError, REFUSED } from "../protocol/errors.ts";
import type { CallToolResult, ContentBlock, Icon, JsonSchema, ToolAnnotations } from "../protocol/model/index.ts";
import { CallContext, type ToolContext } from "./call-context.ts";
import { defined, type Frame } from "./frame.ts";
import { InputRequired, type Rounds } from "./input-required.ts";
import type { Check } from "./issues.ts";
import { checkOf, jsonSchemaOf, type Schema, type SchemaInput, type SchemaOutput } from "./schema.ts";
import { counter, Shelf } from "./shelf.ts";
import { passesOn, textOf } from "./thrown.ts";
import { declaredResult, failure, toolResult } from "./tool-result.ts";

export interface ToolOptions<Input = Schema | undefined, Output = Schema | undefined> {
  readonly title?: string;
  readonly description?: string;
  /** Any Standard Schema, or a plain JSON Schema. Without one, any arguments pass. */
  readonly input?: Input;
  /** Beside an `input` that cannot say itself in JSON Schema, or instead of one. */
  readonly inputSchema?: JsonSchema;
  /** What the tool returns, as structured content. */
  readonly output?: Output;
  readonly outputSchema?: JsonSchema;
  readonly annotations?: ToolAnnotations;
  readonly icons?: readonly Icon[];
  readonly _meta?: Meta;
}

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
  readonly input: Check | undefined;
  readonly output: Check | undefined;
  run(args: unknown, context: ToolContext): unknown;
}

const NO_ARGUMENTS: object = Object.freeze({});

export class Tools {
  readonly #shelf: Shelf<Tool>;
  readonly #frame: Frame;
  readonly #rounds: Rounds;
  #whole: Result | undefined;

  constructor(frame: Frame, rounds: Rounds, changed: () => void) {
    this.#frame = frame;
    this.#rounds = rounds;
    this.#shelf = new Shelf(counter(), () => {
      this.#whole = undefined;
      changed();
    });
  }

  get used(): boolean {
    return this.#shelf.used;
  }

  add(name: string, options: ToolOptions, run: Tool["run"]): void {
    if (typeof name !== "string" || name === "") throw new TypeError("A tool needs a name");
    if (typeof run !== "function") throw new TypeError(`Tool ${name}: its handler must be a function`);
    const { title, description, input, output, annotations, icons, _meta } = options;
    const owner = `Tool ${name}`;
    const inputSchema = jsonSchemaOf(owner, "input", input, options.inputSchema) ?? {};
    if (inputSchema["type"] !== undefined && inputSchema["type"] !== "object") {
      throw new TypeError(`${owner}: its input must be an object, because arguments have names`);
    }
    const outputSchema = jsonSchemaOf(owner, "output", output, options.outputSchema);
    const asked = input ?? options.inputSchema;
    const promised = output ?? options.outputSchema;
    const tool: Tool = {
      name,
      run,
      input: asked && checkOf(asked, `${owner}: its input`),
      output: promised && checkOf(promised, `${owner}: its output`),
    };
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
    const result = this.#frame.list(method, "tools", this.#shelf.items(), cursor);
    if (cursor === undefined) this.#whole = Object.freeze(result);
    return result;
  }

  async call(request: Request, context: Context): Promise<Result> {
    const { name, arguments: given = NO_ARGUMENTS } = request.params as { name: string; arguments?: object };
    const tool = this.#shelf.get(name);
    if (tool === undefined) throw McpError.of("tool_not_found", `Tool not found: ${name}`, { toolName: name });
    const call = new CallContext(context, request, this.#frame, this.#rounds.brought(request, context));
    try {
      const pending = tool.input?.(given) ?? { value: given };
      const checked = pending instanceof Promise ? await pending : pending;
      if (checked.issues !== undefined) return this.#frame.complete(refusal(name, checked.issues));
      const value = await tool.run(checked.value, call);
      if (value instanceof InputRequired) return this.#rounds.result(value, request, context);
      const result = tool.output === undefined ? toolResult(value) : await declaredResult(name, value, tool.output);
      return this.#frame.complete(result, result._meta);
    } catch (error) {
      if (passesOn(error, context)) throw error;
      return this.#frame.complete(failure(textOf(error)));
    }
  }
}

/** A result that the model can read, and in it, for callers whose revision knows no such result, the error. */
function refusal(toolName: string, issues: readonly string[]): object {
  const lines = issues.map((issue) => `\n- ${issue}`).join("");
  return {
    ...failure(`Invalid arguments for the tool ${toolName}:${lines}`),
    [REFUSED]: McpError.of("invalid_params", "Invalid params", {
      toolName,
      details: issues.map((issue) => issue.replace(": ", " ")).join("; "),
    }),
  };
}
