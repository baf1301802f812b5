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
import { checkRegistration } from "./registration.ts";
import { type BareFields, checkOf, jsonSchemaOf, type Schema, type SchemaInput, type SchemaOutput } from "./schema.ts";
import { counter, Shelf } from "./shelf.ts";
import { messageOf, passesOn } from "./thrown.ts";
import { declaredResult, failure, toolResult } from "./tool-result.ts";

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
    const owner = checkRegistration("tool", name, options, run);
    const { title, description, input, output, annotations, icons, _meta } = options;
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
    const brought = this.#rounds.brought(request, context);
    // Awaited only where there is something to wait for: this is the path of every call.
    const call = new CallContext(context, request, this.#frame, brought instanceof Promise ? await brought : brought);
    try {
      const pending = tool.input?.(given) ?? { value: given };
      const checked = pending instanceof Promise ? await pending : pending;
      if (checked.issues !== undefined) return this.#frame.complete(refusal(name, checked.issues));
      const value = await tool.run(checked.value, call);
      if (value instanceof InputRequired) return await this.#rounds.result(value, request, context);
      const result =
        tool.output === undefined ? toolResult(name, value) : await declaredResult(name, value, tool.output);
      return this.#frame.complete(result, result._meta);
    } catch (error) {
      if (passesOn(error, context)) throw error;
      return this.#frame.complete(failure(messageOf(error)));
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
