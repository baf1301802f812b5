// `define`: makes a middleware from one declaration. The fields of its options give the types, the checks with the
// nearest name, and what editors show in a config.

import type { Middleware } from "../core/handler.ts";
import {
  checkFields,
  objectSchema,
  OptionPlace,
  quoted,
  type Fields,
  type OptionsOf,
  type OptionSchema,
  type ValuesOf,
} from "../core/options.ts";
import { defined, isObject } from "../core/values.ts";
import { layered } from "./driver.ts";
import type { Layer, LayeredMiddleware, Transform } from "./layer.ts";

/** Where a middleware is created. */
export interface Place {
  /** Where relative paths in the options begin. Default: the current folder. */
  readonly folder?: string | undefined;
  /** The name of the upstream, if the middleware is for only one. */
  readonly upstream?: string | undefined;
  /** Whether it is for one upstream because the gateway has no other. */
  readonly isShared?: boolean | undefined;
}

/** What a definition gets beside the options. */
export interface DefinitionPlace extends Place {
  readonly folder: string;
  /** An error about an option, for a check that fields cannot make. */
  readonly error: (option: string, problem: string) => TypeError;
}

/** What `define` takes. */
export interface Definition<Of extends Fields = Fields> {
  /** The name in a config and in a chain. */
  readonly name: string;
  /** One sentence about what it does. */
  readonly summary: string;
  readonly options: Of;
  /** Whether it depends on the name of the upstream. Then a gateway with another only upstream creates it anew. */
  readonly usesUpstream?: boolean | undefined;
  /** An option that may be given alone, in place of an object. `what` is for errors, such as "a number of calls". */
  readonly alternative?:
    | { readonly option: keyof Of & string; readonly what: string; readonly description: string }
    | undefined;
  /** Creates the middleware, which acts around requests. */
  readonly middleware?: ((options: ValuesOf<Of>, place: DefinitionPlace) => ActingMiddleware) | undefined;
  /** Creates the transform, which changes or hides what callers see. */
  readonly transform?: ((options: ValuesOf<Of>, place: DefinitionPlace) => Transform) | undefined;
  /** Creates both, if they share something. */
  readonly layer?: ((options: ValuesOf<Of>, place: DefinitionPlace) => Layer) | undefined;
  /**
   * Whether the middleware leaves lists and the names in requests as they are, so that names can be followed through it.
   * Default: false, but for middleware with `needs` or a transform, which must do so.
   */
  readonly keepsLists?: boolean | undefined;
}

/** Middleware that decides by definitions says which it needs (layer.ts). */
export type ActingMiddleware = Middleware & { needs?: Layer["needs"] };

/** Creates a middleware. Throws an error that names the option if one is wrong. */
export interface DefinedMiddleware<Arguments extends readonly unknown[] = [options?: unknown]> {
  (...args: [...Arguments, place?: Place]): Middleware;
  readonly definition: Definition;
}

/**
 * Defines a middleware and its options.
 *
 * @example
 * export const upper = define({
 *   name: "upper",
 *   summary: "Writes the results of tools in capitals.",
 *   options: { tools: strings("The names of the tools. Default: all.") },
 *   middleware: ({ tools }) => async (request, context, next) => { ... },
 * });
 */
export function define<const Of extends Fields, Arguments extends readonly unknown[] = [options?: OptionsOf<Of>]>(
  definition: Definition<Of>,
): DefinedMiddleware<Arguments> {
  const { name, options: fields, alternative, usesUpstream: usesIt } = definition;
  const whole = new OptionPlace(name);
  const create = (input: unknown = {}, where: Place = {}): Middleware => {
    const isAlone = alternative !== undefined && typeof input === "number";
    if (!isAlone && !isObject(input)) {
      const what = alternative === undefined ? "" : `${alternative.what}, or `;
      throw whole.error(`must be ${what}an object with ${quoted(Object.keys(fields))}`);
    }
    const options = checkFields(isAlone ? { [alternative.option]: input } : input, fields, whole);
    const error: DefinitionPlace["error"] = (option, problem) => whole.at(option).error(problem);
    const place = { ...where, folder: where.folder ?? "", error };
    const created = createMiddleware(definition, options, place);
    return Object.defineProperties(created, { name: { value: name }, usesUpstream: { value: usesIt } });
  };
  return Object.defineProperties(create, { name: { value: name }, definition: { value: definition } }) as never;
}

/** Whether the definition of a middleware says so. */
export function usesUpstream(middleware: Middleware): boolean {
  return (middleware as { readonly usesUpstream?: boolean }).usesUpstream === true;
}

function createMiddleware<Of extends Fields>(
  { name, middleware, transform, layer, keepsLists = false }: Definition<Of>,
  options: ValuesOf<Of>,
  place: DefinitionPlace,
): Middleware {
  if (layer !== undefined) return layered(name, layer(options, place));
  const acting = middleware?.(options, place);
  const changing = transform?.(options, place);
  if (acting !== undefined && changing === undefined && acting.needs === undefined) {
    // It is called directly outside of a chain, and so as fast as it can be. A transform says itself what it does.
    const { layer: known, parts } = acting as LayeredMiddleware;
    if (keepsLists && known === undefined && parts === undefined)
      (acting as LayeredMiddleware).layer = { middleware: acting };
    return acting;
  }
  const { needs } = acting ?? {};
  return layered(name, defined({ middleware: acting, transform: changing, needs }));
}

/** What `define` has returned among the exports of a module, by the names of the middleware. */
export function definedIn(exports: object): ReadonlyMap<string, DefinedMiddleware> {
  return new Map(
    Object.values(exports)
      .filter(isDefined)
      .map((create) => [create.definition.name, create]),
  );
}

export function isDefined(value: unknown): value is DefinedMiddleware {
  return typeof value === "function" && "definition" in value && isObject(value.definition);
}

/** The schema of the options in a config. */
export function optionsSchema({ summary, options, alternative }: Definition): OptionSchema {
  const object = objectSchema(options);
  if (alternative === undefined) return { description: summary, ...object };
  const shortForm = { ...options[alternative.option]?.schema, description: alternative.description };
  return { description: summary, anyOf: [shortForm, object] };
}
