// What an end asks of us in mid-call (a form, an address to visit, a message of a model, our roots), given
// to the handlers that the program brought. The capabilities that we declare are what has a handler, no
// more. An accepted form is completed with its defaults and looked over, so that no end gets what it did
// not ask for. Which call a question belongs to is not known here.

import type { Request, Result } from "../core/handler.ts";
import { errorMessage } from "../core/text.ts";
import { checkAsk } from "../protocol/asks.ts";
import { checkParams } from "../protocol/check.ts";
import { isObject } from "../core/objects.ts";
import { invalidParams, McpError } from "../protocol/errors.ts";
import type {
  ClientCapabilities,
  CreateMessageParams,
  CreateMessageResult,
  ElicitFormParams,
  ElicitResult,
  ElicitUrlParams,
  Root,
} from "../protocol/model/index.ts";
import { nameOf } from "../protocol/visits.ts";

export interface Asked {
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

type Answer<P, R> = (params: P, asked: Asked) => R | Promise<R>;

export type FormHandler = Answer<ElicitFormParams, ElicitResult>;
export type UrlHandler = Answer<ElicitUrlParams, ElicitResult>;
export type SampleHandler = Answer<CreateMessageParams, CreateMessageResult>;

export interface AskHandlers {
  /** Asks our model. A person's refusal is said by throwing `rejected()`. */
  readonly sample?: SampleHandler;
  /** Asks the person: a function for forms, or one for each mode. */
  readonly elicit?: FormHandler | { readonly form?: FormHandler; readonly url?: UrlHandler };
  readonly roots?: readonly Root[] | ((asked: Asked) => readonly Root[] | Promise<readonly Root[]>);
  /** Declared beside what the handlers amount to; of a capability that both name, both parts count. */
  readonly capabilities?: ClientCapabilities;
}

/** The one refusal that an end can tell from a failure: a person said no. */
export function rejected(message = "The user rejected the request"): McpError {
  return McpError.of("user_rejected", message);
}

export class Asks {
  /** In the shape of the newest revision. */
  readonly capabilities: ClientCapabilities;
  readonly #handlers: AskHandlers;
  readonly #form: FormHandler | undefined;
  readonly #url: UrlHandler | undefined;

  constructor(handlers: AskHandlers) {
    const { elicit } = handlers;
    this.#handlers = handlers;
    this.#form = typeof elicit === "function" ? elicit : elicit?.form;
    this.#url = typeof elicit === "function" ? undefined : elicit?.url;
    this.capabilities = merge(this.#derived(), handlers.capabilities ?? {});
  }

  #derived(): ClientCapabilities {
    const form = this.#form && { form: {} };
    const url = this.#url && { url: {} };
    return {
      ...(form || url ? { elicitation: { ...form, ...url } } : undefined),
      ...(this.#handlers.sample === undefined ? undefined : { sampling: {} }),
      ...(this.#handlers.roots === undefined ? undefined : { roots: {} }),
    };
  }

  /** The answer to a question. Throws McpError: there is nobody to answer it, or whoever there is failed. */
  async answer(question: Request, signal: AbortSignal): Promise<Result> {
    checkAsk(question, this.capabilities);
    checkParams(question.method, question.params);
    const { method, params } = question;
    const asked: Asked = { signal };
    try {
      if (method === "roots/list") return await this.#roots(asked);
      if (method === "sampling/createMessage")
        return await this.#sample(params as unknown as CreateMessageParams, asked);
      if (params["mode"] === "url") return await this.#visit(params as unknown as ElicitUrlParams, asked);
      return await this.#fill(params as unknown as ElicitFormParams, asked);
    } catch (error) {
      if (error instanceof McpError) throw error;
      throw McpError.of(
        "internal_error",
        `The client's handler of ${method} failed: ${errorMessage(error)}`,
        { method },
        { cause: error },
      );
    }
  }

  async #roots(asked: Asked): Promise<Result> {
    const { roots } = this.#handlers;
    if (roots === undefined) throw nobody("roots/list", "roots");
    const found = typeof roots === "function" ? await roots(asked) : roots;
    if (!Array.isArray(found)) throw bad("roots/list", "an array of roots");
    return { roots: found };
  }

  async #sample(params: CreateMessageParams, asked: Asked): Promise<Result> {
    const { sample } = this.#handlers;
    if (sample === undefined) throw nobody("sampling/createMessage", "sample");
    const result: unknown = await sample(params, asked);
    if (!isObject(result) || (!isObject(result["content"]) && !Array.isArray(result["content"]))) {
      throw bad("sampling/createMessage", "an object with `role`, `content` and `model`");
    }
    return result;
  }

  async #visit(params: ElicitUrlParams, asked: Asked): Promise<Result> {
    if (this.#url === undefined) throw nobody("elicitation/create", "elicit.url");
    // A handler is likely to open it: nothing but the web may come through.
    if (!/^https?:\/\//i.test(params.url))
      throw invalidParams("Only http and https addresses can be visited", { url: params.url });
    // An end of a session says by this name, later, that the visit is over.
    const elicitationId = nameOf(params);
    const named = elicitationId === undefined ? params : { ...params, elicitationId };
    return { action: actionOf(await this.#url(named, asked)) };
  }

  async #fill(params: ElicitFormParams, asked: Asked): Promise<Result> {
    if (this.#form === undefined) throw nobody("elicitation/create", "elicit");
    const given = await this.#form(params, asked);
    const action = actionOf(given);
    if (action !== "accept") return { action };
    const content =
      isObject(given.content) || given.content === undefined ? withDefaults(params, given.content ?? {}) : undefined;
    const problem = content === undefined ? "it must be an object" : formProblem(params, content);
    if (problem !== undefined) throw bad("elicitation/create", `content that fits the form: ${problem}`);
    return { action, content };
  }
}

function merge(ours: ClientCapabilities, extra: ClientCapabilities): ClientCapabilities {
  const merged = Object.entries(extra).map(([name, more]): [string, unknown] => {
    const own = ours[name];
    return [name, isObject(own) && isObject(more) ? { ...own, ...more } : more];
  });
  return { ...ours, ...Object.fromEntries(merged) };
}

function nobody(method: string, option: string): McpError {
  const message = `The client has nobody to answer ${method}: connect with \`${option}\``;
  return McpError.of("missing_capability", message, { method, requiredCapabilities: {} });
}

function bad(method: string, wanted: string): McpError {
  return McpError.of("internal_error", `The client's handler of ${method} must return ${wanted}`, { method });
}

function actionOf(result: unknown): ElicitResult["action"] {
  const action = isObject(result) ? result["action"] : undefined;
  if (action === "accept" || action === "decline" || action === "cancel") return action;
  throw bad("elicitation/create", "an `action` of accept, decline or cancel");
}

type Content = { readonly [name: string]: unknown };

/** Names are chosen by the end, and may be those of an object's own machinery. */
function has(content: Content, name: string): boolean {
  return Object.hasOwn(content, name) && content[name] !== undefined;
}

/** The form's fields; an end may write anything where they should be. */
function fieldsOf({ requestedSchema }: ElicitFormParams): readonly (readonly [string, Content])[] {
  const properties: unknown = isObject(requestedSchema) ? requestedSchema.properties : undefined;
  if (!isObject(properties)) return [];
  return Object.entries(properties).flatMap(([name, field]) => (isObject(field) ? [[name, field] as const] : []));
}

function withDefaults(params: ElicitFormParams, content: Content): Content {
  const missing = fieldsOf(params).flatMap(([name, field]): [string, unknown][] =>
    field["default"] === undefined || has(content, name) ? [] : [[name, field["default"]]],
  );
  return missing.length === 0 ? content : { ...content, ...Object.fromEntries(missing) };
}

const FITS: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number" && Number.isFinite(value),
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === "boolean",
  array: (value) => Array.isArray(value) && value.every((item) => typeof item === "string"),
};

/** The kinds of the fields and what must be there; whether a text is an email address is for the end to say. */
function formProblem(params: ElicitFormParams, content: Content): string | undefined {
  const required: unknown = isObject(params.requestedSchema) ? params.requestedSchema.required : undefined;
  const absent = Array.isArray(required) ? required.map(String).find((name) => !has(content, name)) : undefined;
  if (absent !== undefined) return `\`${absent}\` is missing`;
  for (const [name, field] of fieldsOf(params)) {
    const kind = String(field["type"]);
    const fits = Object.hasOwn(FITS, kind) ? FITS[kind] : undefined;
    if (has(content, name) && fits?.(content[name]) === false) return `\`${name}\` must be of type ${kind}`;
  }
  return undefined;
}
