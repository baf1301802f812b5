// Answers requests from the server (a form, a URL to open, sampling, roots) with the handlers passed to `connect`. A
// capability is declared only if there is a handler for it. If the user accepts a form, missing fields get their
// defaults, and the content is checked before it is sent.

import type { Request, Result } from "../core/handler.ts";
import { type ListenerErrors, reportListenerError } from "../core/listeners.ts";
import { defined, errorMessage, isObject, type Optional } from "../core/values.ts";
import { checkClientRequest } from "../protocol/client-requests.ts";
import { errorKind, invalidParams, McpError, methodNotFound } from "../protocol/errors.ts";
import { isRequestOf } from "../protocol/methods.ts";
import type {
  ClientCapabilities,
  CreateMessageParams,
  CreateMessageResult,
  ElicitFormParams,
  ElicitResult,
  ElicitUrlParams,
  Root,
} from "../protocol/model/index.ts";
import { checkParams } from "../protocol/params.ts";
import { isVendorMethod } from "../protocol/revisions/index.ts";

/** The second argument of every handler. */
export interface ClientRequestContext {
  /** Aborted when the answer is no longer needed. */
  readonly signal: AbortSignal;
}

/** Answers one kind of request from the server. */
export type ClientRequestHandler<P, R> = (params: P, context: ClientRequestContext) => R | Promise<R>;

/** Answers a request to fill in a form. */
export type FormHandler = ClientRequestHandler<ElicitFormParams, ElicitResult>;
/** Answers a request to open a URL. */
export type UrlHandler = ClientRequestHandler<ElicitUrlParams, ElicitResult>;
/** Answers a request to ask our model. */
export type SampleHandler = ClientRequestHandler<CreateMessageParams, CreateMessageResult>;

/** Handlers of requests from the server. */
export interface ClientRequestHandlers {
  /** Asks our model. Throw `userRejected()` if the user refuses. */
  readonly sample?: SampleHandler | undefined;
  /** Asks the user: one handler for forms, or one for each mode. */
  readonly elicit?: FormHandler | Optional<{ form: FormHandler; url: UrlHandler }> | undefined;
  /** The folders that we work in, or a function that returns them. */
  readonly roots?:
    | (readonly Root[] | ((context: ClientRequestContext) => readonly Root[] | Promise<readonly Root[]>))
    | undefined;
  /** Answers requests that the specification does not define. Servers can send them only in a session. */
  readonly onRequest?: ((request: Request, context: ClientRequestContext) => Result | Promise<Result>) | undefined;
  /** Merged with the capabilities that follow from the handlers. */
  readonly capabilities?: ClientCapabilities | undefined;
  /**
   * Gets the errors of your own functions: of listeners such as `onProgress` and of `listen`, which are then ignored, and
   * of handlers such as `elicit`, which also fail the call. `option` is the name of the function. Default: prints one
   * line to stderr.
   */
  readonly onError?: ListenerErrors | undefined;
}

/** The error to throw if the user refuses. The server can distinguish it from a failure. */
export function userRejected(message = "The user rejected the request"): McpError {
  return McpError.of("user_rejected", message);
}

export class ClientRequests {
  /** In the shape of the newest revision. */
  readonly capabilities: ClientCapabilities;
  readonly #handlers: ClientRequestHandlers;
  readonly #form: FormHandler | undefined;
  readonly #url: UrlHandler | undefined;

  constructor(handlers: ClientRequestHandlers) {
    const { elicit } = handlers;
    this.#handlers = handlers;
    this.#form = typeof elicit === "function" ? elicit : elicit?.form;
    this.#url = typeof elicit === "function" ? undefined : elicit?.url;
    const form = this.#form && { form: {} };
    const url = this.#url && { url: {} };
    const derived = defined({
      elicitation: (form ?? url) && { ...form, ...url },
      sampling: handlers.sample && {},
      roots: handlers.roots && {},
    });
    this.capabilities = mergeCapabilities(derived, handlers.capabilities ?? {});
  }

  /** Throws an McpError if there is no handler, or if the handler fails. */
  async answer(request: Request, signal: AbortSignal): Promise<Result> {
    const { method, params } = request;
    const { onRequest } = this.#handlers;
    const isVendor = isVendorMethod(method);
    if (isVendor && onRequest === undefined) throw methodNotFound(method);
    if (!isVendor) checkClientRequest(request, this.capabilities);
    checkParams(method, params);
    const context: ClientRequestContext = { signal };
    try {
      if (isVendor && onRequest !== undefined) return await onRequest(request, context);
      if (method === "roots/list") return await this.#roots(context);
      if (isRequestOf(request, "sampling/createMessage")) return await this.#sample(request.params, context);
      if (!isRequestOf(request, "elicitation/create")) throw methodNotFound(method);
      const { params: question } = request;
      return await (question.mode === "url" ? this.#openUrl(question, context) : this.#fillForm(question, context));
    } catch (error) {
      // A mistake in the handler. The server may hide it, so the user of the client learns of it here.
      if (!signal.aborted && (!(error instanceof McpError) || errorKind(error) === "internal_error")) {
        reportListenerError(error, OPTIONS[method] ?? "onRequest", this.#handlers.onError);
      }
      if (error instanceof McpError) throw error;
      throw McpError.of(
        "internal_error",
        `The client's handler for ${method} failed: ${errorMessage(error)}`,
        { method },
        { cause: error },
      );
    }
  }

  async #roots(context: ClientRequestContext): Promise<Result> {
    const { roots } = this.#handlers;
    if (roots === undefined) throw missingHandler("roots/list", "roots");
    const list = typeof roots === "function" ? await roots(context) : roots;
    if (!Array.isArray(list)) throw badAnswer("roots/list", "an array of roots");
    return { roots: list };
  }

  async #sample(params: CreateMessageParams, context: ClientRequestContext): Promise<Result> {
    const { sample } = this.#handlers;
    if (sample === undefined) throw missingHandler("sampling/createMessage", "sample");
    const result: unknown = await sample(params, context);
    if (!isObject(result) || (!isObject(result["content"]) && !Array.isArray(result["content"]))) {
      throw badAnswer("sampling/createMessage", "an object with `role`, `content` and `model`");
    }
    return result;
  }

  async #openUrl(params: ElicitUrlParams, context: ClientRequestContext): Promise<Result> {
    if (this.#url === undefined) throw missingHandler("elicitation/create", "elicit.url");
    // The handler will probably open the URL, so schemes other than http and https are refused.
    if (!/^https?:\/\//i.test(params.url))
      throw invalidParams("Only http and https URLs can be opened", { url: params.url });
    // In revisions with sessions, the server sends this id again when the elicitation is complete.
    const { elicitationId, ...rest } = params;
    const checked = typeof elicitationId === "string" ? params : rest;
    return { action: actionOf(await this.#url(checked, context)) };
  }

  async #fillForm(params: ElicitFormParams, context: ClientRequestContext): Promise<Result> {
    if (this.#form === undefined) throw missingHandler("elicitation/create", "elicit");
    const answer = await this.#form(params, context);
    const action = actionOf(answer);
    if (action !== "accept") return { action };
    const content =
      isObject(answer.content) || answer.content === undefined ? withDefaults(params, answer.content ?? {}) : undefined;
    const problem = content === undefined ? "it must be an object" : formProblem(params, content);
    if (problem !== undefined) throw badAnswer("elicitation/create", `content that fits the form: ${problem}`);
    return { action, content };
  }
}

const OPTIONS: Readonly<Record<string, string>> = {
  "elicitation/create": "elicit",
  "sampling/createMessage": "sample",
  "roots/list": "roots",
};

function mergeCapabilities(ours: ClientCapabilities, extra: ClientCapabilities): ClientCapabilities {
  const merged = Object.entries(extra).map(([name, more]): [string, unknown] => {
    const capability = ours[name];
    return [name, isObject(capability) && isObject(more) ? { ...capability, ...more } : more];
  });
  return { ...ours, ...Object.fromEntries(merged) };
}

function missingHandler(method: string, option: string): McpError {
  const message = `The client has no handler for ${method}: pass \`${option}\` to connect()`;
  return McpError.of("missing_capability", message, { method, requiredCapabilities: {} });
}

function badAnswer(method: string, expected: string): McpError {
  return McpError.of("internal_error", `The client's handler for ${method} must return ${expected}`, { method });
}

function actionOf(result: unknown): ElicitResult["action"] {
  const action = isObject(result) ? result["action"] : undefined;
  if (action === "accept" || action === "decline" || action === "cancel") return action;
  throw badAnswer("elicitation/create", "an `action` of accept, decline or cancel");
}

type Content = { readonly [name: string]: unknown };

/** The server chooses the names, so a name may be that of an inherited property, such as `constructor`. */
function hasField(content: Content, name: string): boolean {
  return Object.hasOwn(content, name) && content[name] !== undefined;
}

/** The fields of the form. Ignores invalid ones, since the server may send anything. */
function fieldsOf({ requestedSchema }: ElicitFormParams): readonly (readonly [string, Content])[] {
  const properties: unknown = isObject(requestedSchema) ? requestedSchema.properties : undefined;
  if (!isObject(properties)) return [];
  return Object.entries(properties).flatMap(([name, field]) => (isObject(field) ? [[name, field] as const] : []));
}

function withDefaults(params: ElicitFormParams, content: Content): Content {
  const missing = fieldsOf(params).flatMap(([name, field]): [string, unknown][] =>
    field["default"] === undefined || hasField(content, name) ? [] : [[name, field["default"]]],
  );
  return missing.length === 0 ? content : { ...content, ...Object.fromEntries(missing) };
}

const TYPE_CHECKS: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === "string",
  number: (value) => typeof value === "number" && Number.isFinite(value),
  integer: (value) => Number.isInteger(value),
  boolean: (value) => typeof value === "boolean",
  array: (value) => Array.isArray(value) && value.every((item) => typeof item === "string"),
};

/** What is wrong with an answer to a form, as it would be sent. Undefined if it fits. */
export function answerProblem(params: ElicitFormParams, content: Content): string | undefined {
  return formProblem(params, withDefaults(params, content));
}

/** Checks types and required fields. Formats, such as an email address, are left to the server. */
function formProblem(params: ElicitFormParams, content: Content): string | undefined {
  const required: unknown = isObject(params.requestedSchema) ? params.requestedSchema.required : undefined;
  const missing = Array.isArray(required) ? required.map(String).find((name) => !hasField(content, name)) : undefined;
  if (missing !== undefined) return `\`${missing}\` is missing`;
  for (const [name, field] of fieldsOf(params)) {
    const type = String(field["type"]);
    const fits = Object.hasOwn(TYPE_CHECKS, type) ? TYPE_CHECKS[type] : undefined;
    if (hasField(content, name) && fits?.(content[name]) === false) return `\`${name}\` must be of type ${type}`;
  }
  return undefined;
}
