// Prompts: their list, and the messages that one gives. A string is one user message; an array is messages; an
// object with `messages` is the result itself. Arguments are strings, and a required one that is missing is
// named in the error.

import type { Caller, Context, Meta, Request, Result } from "../core/handler.ts";
import { isObject } from "../core/objects.ts";
import { invalidParams, McpError } from "../protocol/errors.ts";
import type { Icon, PromptMessage } from "../protocol/model/index.ts";
import { CallContext, type ToolContext } from "./call-context.ts";
import type { Completer, Completers } from "./completion.ts";
import { type Frame } from "./result-builder.ts";
import { defined } from "../core/objects.ts";
import { InputRequired, type Rounds } from "./input-required.ts";
import { checkRegistration } from "./options.ts";
import { isStandard, vendorOf } from "./schema-kind.ts";
import type { Flat } from "./schema.ts";
import { demandScopes } from "../auth/bearer/scopes.ts";
import { counter, Shelf } from "./ordered-map.ts";
import { orError } from "./tool-errors.ts";

export interface PromptArgumentOptions<Required = unknown> {
  /** For people: how a program labels the field. */
  readonly title?: string;
  /** For people: what to write there. */
  readonly description?: string;
  /** Whether the prompt cannot do without it; false where it is left out. */
  readonly required?: Required;
  /** What could stand there, given what was typed so far. */
  readonly complete?: Completer;
}

/**
 * What is said of a prompt when it is registered. `Required` says of each argument whether it is; a mapped type, so
 * that completers inside it know their types.
 */
export interface PromptOptions<Required = Readonly<Record<string, unknown>>> {
  /** For people: how a program shows the prompt. */
  readonly title?: string;
  /** For people who choose, and what `prompts/get` says where the handler says nothing of its own. */
  readonly description?: string;
  /**
   * The arguments, by their names. All of them are strings.
   *
   * @example
   * arguments: { className: { description: "Which class", required: true }, depth: {} }
   */
  readonly arguments?: {
    readonly [Name in keyof Required]: PromptArgumentOptions<Required[Name]> & { readonly required?: boolean };
  };
  /** Pictures for programs that show the prompt. */
  readonly icons?: readonly Icon[];
  /**
   * What a caller over HTTP must have proved that it may do; see `bearer`. It stays in the list for everybody, and a
   * caller that lacks a scope is told which.
   *
   * @example
   * scopes: ["notes:write"]
   */
  readonly scopes?: readonly string[];
  /** Passed to callers as it is, for what the specification has no field for. */
  readonly _meta?: Meta;
}

export type PromptArguments<Required> = Flat<
  { -readonly [Name in keyof Required as Required[Name] extends true ? Name : never]: string } & {
    -readonly [Name in keyof Required as Required[Name] extends true ? never : Name]?: string;
  }
>;

export type PromptReturn =
  | string
  | readonly PromptMessage[]
  | { readonly description?: string; readonly messages: readonly PromptMessage[]; readonly _meta?: Meta }
  | InputRequired;

export type PromptHandler<Required> = (
  args: PromptArguments<Required>,
  context: ToolContext,
) => PromptReturn | Promise<PromptReturn>;

interface Prompt {
  readonly description: string | undefined;
  readonly scopes: readonly string[] | undefined;
  readonly required: readonly string[];
  readonly completers: Completers;
  get(args: Record<string, string>, context: ToolContext): PromptReturn | Promise<PromptReturn>;
}

export class Prompts {
  readonly #shelf: Shelf<Prompt>;
  readonly #frame: Frame;
  readonly #rounds: Rounds;

  constructor(frame: Frame, rounds: Rounds, changed: () => void) {
    this.#frame = frame;
    this.#rounds = rounds;
    this.#shelf = new Shelf(counter(), changed);
  }

  get used(): boolean {
    return this.#shelf.used;
  }

  add(name: string, options: PromptOptions, get: Prompt["get"]): void {
    const owner = checkRegistration("prompt", name, options, get);
    const { title, description, icons, scopes, _meta } = options;
    const declared = declaredOf(owner, options.arguments);
    const prompt: Prompt = {
      description,
      scopes,
      get,
      required: declared.filter(([, { required }]) => required === true).map(([argument]) => argument),
      completers: new Map(declared.map(([argument, { complete }]) => [argument, complete])),
    };
    const shown = declared.map(([argument, { title, description, required }]) =>
      defined({ name: argument, title, description, required }),
    );
    const list = options.arguments === undefined ? undefined : shown;
    this.#shelf.put(name, prompt, defined({ name, title, description, icons, arguments: list, _meta }));
  }

  remove(name: string): boolean {
    return this.#shelf.remove(name);
  }

  completers(name: string, caller: Caller): Completers | undefined {
    const prompt = this.#shelf.get(name);
    demandScopes(prompt?.scopes, caller, `The prompt ${name}`);
    return prompt?.completers;
  }

  list({ method, params }: Request): Result {
    return this.#frame.list(method, "prompts", this.#shelf.items(), params["cursor"]);
  }

  async get(request: Request, context: Context): Promise<Result> {
    const { name, arguments: given = {} } = request.params as { name: string; arguments?: Record<string, unknown> };
    const prompt = this.#shelf.get(name);
    if (prompt === undefined) throw McpError.of("prompt_not_found", `Prompt not found: ${name}`, { promptName: name });
    demandScopes(prompt.scopes, context.caller, `The prompt ${name}`);
    const args = checkArguments(name, prompt, given);
    const call = new CallContext(context, request, this.#frame, await this.#rounds.brought(request, context));
    const value = await orError(context, () => prompt.get(args, call));
    if (value instanceof InputRequired) return this.#rounds.result(value, request, context);
    const whole = wholeOf(name, value);
    const { messages, _meta, description = prompt.description, ...rest } = whole;
    return this.#frame.complete(defined({ ...rest, description, messages }), _meta);
  }
}

/** Programs without types may give anything; schemas and lists are what other libraries take here. */
function declaredOf(owner: string, declared: unknown = {}): readonly [string, PromptArgumentOptions][] {
  const form = 'the form is { className: { description: "...", required: true } }';
  if (!isObject(declared) || isStandard(declared)) {
    throw new TypeError(
      `${owner}: its arguments must be an object that says of each, by its name, what it is; ${form}`,
    );
  }
  return Object.entries(declared).map(([argument, said]) => {
    if (isObject(said) && !isStandard(said)) return [argument, said];
    const what = isStandard(said) ? `is a schema of ${vendorOf(said)}, but` : "must be an object;";
    throw new TypeError(`${owner}: its argument ${argument} ${what} ${form}`);
  });
}

function checkArguments(name: string, { required }: Prompt, given: Record<string, unknown>): Record<string, string> {
  const missing = required.filter((argument) => !Object.hasOwn(given, argument));
  if (missing.length > 0) {
    const what = missing.length === 1 ? "argument" : "arguments";
    throw invalidParams(`The prompt ${name} needs the ${what} ${missing.join(", ")}`, { promptName: name, missing });
  }
  for (const [argument, value] of Object.entries(given)) {
    if (typeof value === "string") continue;
    throw invalidParams(`The argument ${argument} of the prompt ${name} must be a string`, {
      promptName: name,
      argument,
    });
  }
  return given as Record<string, string>;
}

type Whole = Exclude<PromptReturn, string | readonly unknown[] | InputRequired>;

function wholeOf(name: string, value: Exclude<PromptReturn, InputRequired>): Whole {
  if (typeof value === "string") return { messages: [{ role: "user", content: { type: "text", text: value } }] };
  if (Array.isArray(value)) return { messages: value as readonly PromptMessage[] };
  // Programs without types may return anything.
  if (isObject(value) && Array.isArray(value["messages"])) return value;
  throw McpError.of("internal_error", `The prompt ${name} gave neither a text nor messages`, { promptName: name });
}
