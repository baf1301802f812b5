// Methods and notifications that the specification does not define, such as `acme/search`. Params are checked only if
// there is a schema, and the result is sent as it is.

import { demandScopes } from "../protocol/scopes.ts";
import type { Context, Params, Request, Result } from "../core/handler.ts";
import { type OptionNames, optionNames } from "../core/options.ts";
import { isObject } from "../core/values.ts";
import { invalidParams, McpError } from "../protocol/errors.ts";
import { isVendorMethod } from "../protocol/revisions/standard-methods.ts";
import { CallContext, type ToolContext } from "./call-context.ts";
import { alreadyRegistered, checkRegistration } from "./options.ts";
import type { ResultBuilder } from "./result-builder.ts";
import { checkUsable, createSchemaCheck, type Schema } from "./schema.ts";
import type { ToolArguments } from "./tools.ts";

/** Options of `server.method()`. */
export interface MethodOptions<Input = Schema | undefined> {
  /** The schema of the params, without `_meta`. The handler gets the value that the schema returns. */
  readonly input?: Input | undefined;
  /** The scopes that a client over HTTP needs; see `bearer`. */
  readonly scopes?: readonly string[] | undefined;
}

const OPTION_NAMES: OptionNames<MethodOptions> = optionNames("input scopes");

/** Returns the result; undefined is an empty one. */
export type VendorMethodHandler<Input, Env = unknown> = (
  params: ToolArguments<Input>,
  context: ToolContext<Env>,
) => object | undefined | void | Promise<object | undefined | void>;

/** Gets the params of a notification, without `_meta`. */
export type NotificationHandler<Env = unknown> = (
  params: Record<string, unknown>,
  context: ToolContext<Env>,
) => unknown;

type Run = (params: Params, request: Request, context: Context) => Promise<Result>;

export class VendorMethods {
  readonly #methods = new Map<string, Run>();
  readonly #notifications = new Map<string, Run>();
  readonly #results: ResultBuilder;
  /** The scopes that the methods need. */
  readonly scopes: string[] = [];

  constructor(results: ResultBuilder) {
    this.#results = results;
  }

  add(name: string, options: MethodOptions, handler: VendorMethodHandler<Schema | undefined>): void {
    const owner = checkRegistration("method", name, options, handler, OPTION_NAMES);
    checkName(owner, name);
    if (this.#methods.has(name)) throw alreadyRegistered(owner);
    const { input, scopes } = options;
    if (input !== undefined) checkUsable(owner, "input", input);
    this.scopes.push(...(scopes ?? []));
    const check = input && createSchemaCheck(input, `${owner}: \`input\``);
    this.#methods.set(name, async (params, request, context) => {
      demandScopes(scopes, context.caller, owner);
      const checked = (await check?.(params)) ?? { value: params };
      if (checked.issues !== undefined) {
        const { issues } = checked;
        throw invalidParams(`Invalid params for ${name}: ${issues.join("; ")}`, { method: name, issues });
      }
      const args = checked.value as never;
      const result = await this.#results.errors.run(request, context, () =>
        handler(args, this.#context(request, context)),
      );
      if (result === undefined) return {};
      if (!isObject(result)) throw McpError.of("internal_error", `The result of ${name} must be an object`);
      return result;
    });
  }

  addNotification(name: string, handler: NotificationHandler): void {
    const owner = checkRegistration("notification", name, {}, handler, {});
    checkName(owner, name);
    if (this.#notifications.has(name)) throw alreadyRegistered(owner);
    this.#notifications.set(name, async (params, request, context) => {
      await this.#results.errors.run(request, context, () => handler(params, this.#context(request, context)));
      return {};
    });
  }

  /** Undefined if there is no such method. An unknown notification is ignored. */
  handle(request: Request, context: Context): Promise<Result> | undefined {
    const isNotification = context.isNotification === true;
    const run = (isNotification ? this.#notifications : this.#methods).get(request.method);
    if (run === undefined) return isNotification ? Promise.resolve({}) : undefined;
    const { _meta, ...params } = request.params;
    return run(params, request, context);
  }

  #context(request: Request, context: Context): ToolContext {
    return new CallContext(context, request, this.#results);
  }
}

function checkName(owner: string, name: string): void {
  if (!isVendorMethod(name)) throw new TypeError(`${owner}: the name is a method of the protocol; choose another`);
}
