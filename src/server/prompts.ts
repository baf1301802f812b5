// Prompts: registration, list and messages. A handler returns a string (one user message), an array of messages, or an
// object with `messages` (the whole result). Arguments are strings.

import type { StandardSchemaV1 } from "@standard-schema/spec";
import { demandScopes } from "../protocol/scopes.ts";
import type { Caller, Context, Meta } from "../core/handler.ts";
import { defined, fieldsOf, isObject } from "../core/values.ts";
import { checkOptions, type OptionNames, optionNames } from "../core/options.ts";
import { blockProblem } from "../tools/content.ts";
import { invalidParams, McpError } from "../protocol/errors.ts";
import type { AnswerOf, RequestOf } from "../protocol/methods.ts";
import type { JsonSchema, ListPromptsResult, Prompt as ListedPrompt, PromptMessage } from "../protocol/model/index.ts";
import { CallContext, type ToolContext } from "./call-context.ts";
import { InputRequired } from "./input-required.ts";
import { InvalidResult } from "./handler-errors.ts";
import { alreadyRegistered, checkName, checkRegistration, type RegistrationOptions } from "./options.ts";
import { type Registered, Registrations } from "./registrations.ts";
import type { ResultBuilder } from "./result-builder.ts";
import { isStandardSchema, objectSchemaOf, type SchemaCheck, vendorOf } from "../tools/schema-kind.ts";
import { createSchemaCheck, type Schema, type SchemaInput, type Simplify, toJsonSchema } from "./schema.ts";
import type { ToolArguments } from "./tools.ts";

/** Returns values that fit what was typed so far, best first. Gets the other arguments, and who asks. */
export type Completer = (
  value: string,
  context: { readonly arguments: Readonly<Record<string, string>>; readonly caller: Caller },
) => readonly string[] | Promise<readonly string[]>;

/** By argument name; undefined for an argument without completion. */
export type Completers = ReadonlyMap<string, Completer | undefined>;

/** Options of one argument of a prompt. */
export interface PromptArgumentOptions<Required = unknown> {
  /** The label to show to people. */
  readonly title?: string | undefined;
  /** For people: what to enter. */
  readonly description?: string | undefined;
  /** Whether the argument must be given. Default: false. */
  readonly required?: Required | undefined;
  /** Suggests values for what was typed so far. */
  readonly complete?: Completer | undefined;
}

/**
 * Options of `server.prompt()`. `Required` maps the name of each argument to its option `required`. The type of
 * `arguments` is a mapped type over `Required`, so that TypeScript infers the types of completers.
 */
export interface PromptOptions<Required = Readonly<Record<string, unknown>>> extends CommonPromptOptions {
  /**
   * The arguments by name. Their values are strings.
   *
   * @example
   * arguments: { className: { description: "Which class", required: true }, depth: {} }
   */
  readonly arguments?:
    | {
        readonly [Name in keyof Required]: PromptArgumentOptions<Required[Name]> & {
          readonly required?: boolean | undefined;
        };
      }
    | undefined;
}

/** A schema of the arguments of a prompt: a Standard Schema, or a JSON Schema of an object. */
export type PromptSchema = StandardSchemaV1 | (JsonSchema & { readonly type: "object" });

/** Options of `server.prompt()` with a schema for the arguments. */
export interface SchemaPromptOptions<Input extends PromptSchema = PromptSchema> extends CommonPromptOptions {
  /**
   * The schema of the arguments: an object schema, as for `input` of a tool. Clients send strings, which the schema checks
   * and may convert. The handler gets the value that the schema returns.
   *
   * @example
   * arguments: z.object({ className: z.string().describe("Which class"), depth: z.coerce.number().optional() })
   */
  readonly arguments: Input;
  /** Completions by argument name. */
  readonly complete?: { readonly [Name in keyof SchemaInput<Input>]?: Completer | undefined } | undefined;
}

/** What all prompts have. */
export interface CommonPromptOptions extends RegistrationOptions {
  /** The name to show to people. */
  readonly title?: string | undefined;
  /** For people who choose a prompt. Also the description of the result, unless the handler returns one. */
  readonly description?: string | undefined;
}

const OPTION_NAMES: OptionNames<PromptOptions & SchemaPromptOptions> = optionNames(
  "title description arguments complete icons scopes visible _meta",
);
const ARGUMENT_NAMES: OptionNames<PromptArgumentOptions> = optionNames("title description required complete");

/** The type of the arguments that the handler of a prompt gets. */
export type PromptArguments<Required> = Simplify<
  { -readonly [Name in keyof Required as Required[Name] extends true ? Name : never]: string } & {
    -readonly [Name in keyof Required as Required[Name] extends true ? never : Name]?: string;
  }
>;

/** The type of the arguments that the handler of a prompt with a schema gets. */
export type SchemaPromptHandler<Input extends PromptSchema, Env = unknown> = (
  args: ToolArguments<Input>,
  context: ToolContext<Env>,
) => PromptReturn | Promise<PromptReturn>;

/** What the handler of a prompt may return. */
export type PromptReturn =
  | string
  | readonly PromptMessage[]
  | { readonly description?: string; readonly messages: readonly PromptMessage[]; readonly _meta?: Meta }
  | InputRequired;

/** The function of a prompt. */
export type PromptHandler<Required, Env = unknown> = (
  args: PromptArguments<Required>,
  context: ToolContext<Env>,
) => PromptReturn | Promise<PromptReturn>;

interface Prompt extends Registered {
  readonly description: string | undefined;
  readonly required: readonly string[];
  readonly completers: Completers;
  /** Checks the arguments, if they have a schema. */
  readonly check: SchemaCheck | undefined;
  get(args: never, context: ToolContext): PromptReturn | Promise<PromptReturn>;
}

export class Prompts {
  readonly entries: Registrations<Prompt, ListedPrompt>;
  /** Whether there ever was an argument with completion. */
  hasCompleters = false;
  readonly #results: ResultBuilder;

  constructor(results: ResultBuilder, onChange: () => void) {
    this.#results = results;
    this.entries = new Registrations(onChange);
  }

  add(name: string, options: PromptOptions | SchemaPromptOptions, get: Prompt["get"]): void {
    // The name in the official SDK.
    if ("argsSchema" in fieldsOf(options)) {
      throw new TypeError(`Prompt ${name} has no option \`argsSchema\`; use \`arguments\``);
    }
    const owner = checkRegistration("prompt", name, options, get, OPTION_NAMES);
    checkName("prompt", owner, name);
    if (this.entries.get(name) !== undefined) throw alreadyRegistered(owner, `removePrompt(${JSON.stringify(name)})`);
    const { title, description, icons, scopes, visible, _meta } = options;
    const schema = argumentSchema(options.arguments);
    const complete = "complete" in options ? options.complete : undefined;
    if (schema === undefined && complete !== undefined) {
      throw new TypeError(`${owner}: \`complete\` belongs to the argument: arguments: { name: { complete } }`);
    }
    const declared =
      schema === undefined
        ? declaredArguments(owner, options.arguments)
        : schemaArguments(owner, schema, complete ?? {});
    const prompt: Prompt = {
      description,
      scopes,
      visible,
      get,
      check: schema && createSchemaCheck(schema, `${owner}: \`arguments\``),
      required: declared.filter(([, { required }]) => required === true).map(([argument]) => argument),
      completers: new Map(declared.map(([argument, { complete }]) => [argument, complete])),
    };
    const listed = declared.map(([argument, { title, description, required }]) =>
      defined({ name: argument, title, description, required: typeof required === "boolean" ? required : undefined }),
    );
    this.hasCompleters ||= declared.some(([, { complete }]) => complete !== undefined);
    const args = options.arguments === undefined ? undefined : listed;
    this.entries.set(name, prompt, defined({ name, title, description, icons, arguments: args, _meta }));
  }

  list(request: RequestOf<"prompts/list">, context: Context): ListPromptsResult {
    const { items: prompts, nextCursor } = this.#results.page(request, this.entries.seenBy(context));
    return this.#results.cacheable(defined({ prompts, nextCursor }));
  }

  completers(name: string, context: Context): Completers | undefined {
    const prompt = this.entries.find(name, context);
    demandScopes(prompt?.scopes, context.caller, `The prompt ${name}`);
    return prompt?.completers;
  }

  async get(request: RequestOf<"prompts/get">, context: Context): Promise<AnswerOf<"prompts/get">> {
    const { name, arguments: strings = {} } = request.params;
    const prompt = this.entries.find(name, context);
    if (prompt === undefined) throw McpError.of("prompt_not_found", `Prompt not found: ${name}`, { promptName: name });
    demandScopes(prompt.scopes, context.caller, `The prompt ${name}`);
    const args = await checkArguments(name, prompt, strings);
    const retry = await this.#results.inputs.decode(request, context);
    const call = new CallContext(context, request, this.#results, retry);
    const value = await this.#results.errors.run(request, context, async () => {
      const returned = await prompt.get(args, call);
      return returned instanceof InputRequired ? returned : toWholeResult(name, returned);
    });
    if (value instanceof InputRequired) return this.#results.inputs.encode(value, request, context, retry);
    const { messages, _meta, description = prompt.description, ...rest } = value;
    return this.#results.complete(defined({ ...rest, description, messages }), _meta);
  }
}

/** The schema, if the arguments have one: a Standard Schema, or a JSON Schema with the type "object". */
function argumentSchema(declared: unknown): Schema | undefined {
  const isSchema = isStandardSchema(declared) || (isObject(declared) && declared["type"] === "object");
  return isSchema ? declared : undefined;
}

/** What clients see of the arguments of a schema. */
function schemaArguments(
  owner: string,
  schema: Schema,
  completers: Readonly<Record<string, Completer | undefined>>,
): readonly [string, PromptArgumentOptions][] {
  const { type, properties, required } = toJsonSchema(owner, "input", schema, undefined, "arguments") ?? {};
  if (type !== "object") {
    throw new TypeError(`${owner}: \`arguments\` must be an object schema, because arguments have names`);
  }
  const named = Object.entries(fieldsOf(properties)).map(([name, property]) => [name, fieldsOf(property)] as const);
  const other = named.find(
    ([name, { type = "string" }]) => ![type].flat().includes("string") && !converts(schema, name),
  );
  if (other !== undefined) {
    const advice = "use a string, or a schema that converts strings, such as z.coerce.number()";
    throw new TypeError(`${owner}: the argument ${other[0]} is not a string, but clients send strings; ${advice}`);
  }
  const unknown = Object.keys(defined(completers)).find((name) => !named.some(([argument]) => argument === name));
  if (unknown !== undefined) throw new TypeError(`${owner}: there is no argument ${unknown} to complete`);
  return named.map(([argument, { title, description }]) => [
    argument,
    defined({
      title: typeof title === "string" ? title : undefined,
      description: typeof description === "string" ? description : undefined,
      required: Array.isArray(required) && required.includes(argument) ? true : undefined,
      complete: Object.hasOwn(completers, argument) ? completers[argument] : undefined,
    }),
  ]);
}

interface ZodSchema {
  readonly _zod?: {
    readonly def: {
      readonly type: string;
      readonly coerce?: boolean;
      readonly innerType?: ZodSchema;
      readonly shape?: Readonly<Record<string, ZodSchema>>;
    };
  };
}

/**
 * Whether an argument that is not a string in the JSON Schema may yet accept strings. In that of zod, z.coerce.number()
 * looks like z.number(). The other known libraries describe the value before the conversion.
 */
function converts(schema: Schema, name: string): boolean {
  if (!isStandardSchema(schema)) return false;
  const vendor = vendorOf(schema);
  if (vendor !== "zod") return !["arktype", "valibot"].includes(vendor);
  let def = (schema as ZodSchema)._zod?.def.shape?.[name]?._zod?.def;
  while (def?.innerType !== undefined && def.type !== "catch") def = def.innerType._zod?.def;
  return def?.coerce === true || !/^(number|boolean|object|array)$/.test(def?.type ?? "");
}

/** Other libraries take an array here, so the error shows the expected form. */
function declaredArguments(owner: string, declared: unknown = {}): readonly [string, PromptArgumentOptions][] {
  const form = 'expected { className: { description: "...", required: true } }';
  if (!isObject(declared)) {
    throw new TypeError(`${owner}: \`arguments\` must be an object with the options of each argument; ${form}`);
  }
  return Object.entries(declared).map(([argument, options]) => {
    const path = `arguments.${argument}`;
    if (!isObject(options) || isStandardSchema(options)) {
      const [what, or] = isStandardSchema(options)
        ? [`is a schema of ${vendorOf(options)}`, `, or wrap them: ${objectSchemaOf(options)}`]
        : ["must be an object", ""];
      throw new TypeError(`${owner}: \`${path}\` ${what}; ${form}${or}`);
    }
    checkOptions(owner, options, ARGUMENT_NAMES, `${path}.`);
    return [argument, options];
  });
}

/** The arguments for the handler. They may come from a schema of the author's, so their type is not known here. */
async function checkArguments(
  name: string,
  { required, check }: Prompt,
  strings: Record<string, unknown>,
): Promise<never> {
  const missing = required.filter((argument) => !Object.hasOwn(strings, argument));
  if (missing.length > 0) {
    const what = missing.length === 1 ? "argument" : "arguments";
    throw invalidParams(`The prompt ${name} needs the ${what} ${missing.join(", ")}`, { promptName: name, missing });
  }
  for (const [argument, value] of Object.entries(strings)) {
    if (typeof value === "string") continue;
    throw invalidParams(`The argument ${argument} of the prompt ${name} must be a string`, {
      promptName: name,
      argument,
    });
  }
  const checked = (await check?.(strings)) ?? { value: strings };
  if (checked.issues === undefined) return checked.value as never;
  const { issues } = checked;
  throw invalidParams(`Invalid arguments for the prompt ${name}: ${issues.join("; ")}`, { promptName: name, issues });
}

type WholeResult = Exclude<PromptReturn, string | readonly unknown[] | InputRequired>;

function toWholeResult(name: string, value: Exclude<PromptReturn, InputRequired>): WholeResult {
  if (typeof value === "string") return { messages: [{ role: "user", content: { type: "text", text: value } }] };
  const whole = Array.isArray(value) ? { messages: value as readonly PromptMessage[] } : value;
  // A handler without type checks may return anything.
  const { messages } = fieldsOf(whole);
  if (!Array.isArray(messages)) throw new InvalidResult(`Prompt ${name} returned neither a string nor messages`);
  for (const [index, message] of messages.entries()) {
    const problem = messageProblem(message, `messages[${index}]`);
    if (problem !== undefined) throw new InvalidResult(`Prompt ${name} returned ${problem}`);
  }
  return whole as WholeResult;
}

function messageProblem(message: unknown, path: string): string | undefined {
  const { role, content } = fieldsOf(message);
  if (role !== "user" && role !== "assistant") return `${path}.role, which must be "user" or "assistant"`;
  return blockProblem(content, `${path}.content`);
}
