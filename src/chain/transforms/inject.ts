// Adds arguments to calls of tools, and HTTP headers to requests, so that a caller neither knows nor chooses them: an API
// key, a tenant, a folder. The parameters are removed from the schemas in lists, and a caller's own value is replaced.
// The values may be secret, so they are removed from errors, which often quote what they are about.

import { copyContext } from "../../core/cancel.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Context, Handler, Middleware, Request, Result } from "../../core/handler.ts";
import { mapOf, record, refine, stringMap, type Field, type OptionsOf } from "../../core/fields.ts";
import { hiderOf } from "../../core/text.ts";
import { isObject } from "../../core/values.ts";
import { McpError, redactConnectionError } from "../../protocol/errors.ts";
import { define, type DefinedMiddleware, type DefinitionPlace } from "../define.ts";
import type { Item } from "../catalogue.ts";
import { kindsOf, type Layer } from "../layer.ts";
import { isSettable } from "../upstream/options.ts";
import { matchesGlob } from "../../core/text.ts";

type Fields = { readonly [key: string]: unknown };
type Headers = Readonly<Record<string, string>>;

/** HTTP headers that may be set. The error does not quote a value, which may be secret. */
function settableHeaders<const Description extends string>(description: Description): Field<Description, Headers> {
  return refine(stringMap(description), (headers, place) => {
    for (const [name, value] of Object.entries(headers)) {
      if (!isSettable(name)) throw place.at(name).error("is not a header that can be set");
      if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) throw place.at(name).error("has a character that HTTP forbids");
    }
  });
}

const INJECTION = {
  arguments: record("Arguments by name."),
  headers: settableHeaders("HTTP headers, for servers over HTTP."),
};

/** What to add to the calls of a tool. */
export type ToolInjection = OptionsOf<typeof INJECTION>;

const OPTIONS = {
  tools: mapOf("What to add to the calls of tools, by their names; `*` matches any characters.", INJECTION),
  headers: settableHeaders("HTTP headers to add to all requests to servers over HTTP."),
};

/** Options of `inject()`. If several names of tools match, later ones win. */
export type InjectOptions = OptionsOf<typeof OPTIONS>;

interface Rule {
  readonly glob: string;
  readonly arguments: Fields;
  readonly headers: Headers;
}

/**
 * Adds arguments to calls of tools, and HTTP headers to requests. Callers neither see nor set them.
 *
 * @example
 * inject({ tools: { "search*": { arguments: { apiKey: process.env.SEARCH_KEY } } } })
 */
export const inject: DefinedMiddleware<[options: InjectOptions]> = define({
  name: "inject",
  summary: "Adds arguments to calls of tools, and HTTP headers to requests. Callers do not see them.",
  options: OPTIONS,
  layer: createInject,
});

function createInject({ tools = {}, headers }: InjectOptions, { error }: DefinitionPlace): Layer {
  const forAll = byLowerCase(headers);
  const rules: readonly Rule[] = Object.entries(tools).map(([glob, entry]) => ({
    glob,
    arguments: entry.arguments ?? {},
    headers: byLowerCase(entry.headers),
  }));
  if (rules.length === 0 && Object.keys(forAll).length === 0) {
    throw error("", "must have entries for `tools`, or `headers`");
  }
  const hide = createHider([forAll, ...rules.map((rule) => [rule.arguments, rule.headers])]);
  // The error of a call that became a task.
  const task = async (request: Request, context: Context, next: Handler): Promise<Result> => {
    const found = await next(request, context).catch(rethrow(hide));
    const hasFailed = isObject(found["error"]) || (isObject(found["result"]) && found["result"]["isError"] === true);
    return hasFailed ? (mapStrings(found, hide) as Result) : found;
  };
  const hasHeadersForAll = Object.keys(forAll).length > 0;
  const middleware: Middleware = (request, context, next) => {
    const { method, params } = request;
    const own = method === "tools/call" ? matching(rules, params["name"] as string) : [];
    if (method === "tasks/get" && rules.length > 0) return task(request, withHeaders(context, forAll), next);
    if (own.length === 0 && !hasHeadersForAll) return next(request, context);
    const added = own.reduce<Headers>((all, { headers }) => ({ ...all, ...headers }), forAll);
    const hasHeaders = Object.keys(added).length > 0;
    const passed = withHeaders(context, added);
    if (own.length === 0) {
      return hasHeaders ? next(request, passed).catch(rethrow(hide)) : next(request, context);
    }
    const given = isObject(params["arguments"]) ? params["arguments"] : {};
    const all = own.reduce<Fields>((sum, rule) => ({ ...sum, ...rule.arguments }), given);
    return next({ ...request, params: { ...params, arguments: all } }, passed).then(
      (result) => (result["isError"] === true ? (mapStrings(result, hide) as Result) : result),
      rethrow(hide),
    );
  };
  return { transform: { kinds: kindsOf(["tools"]), item: (item) => withoutInjected(item, rules) }, middleware };
}

/** The tool without the parameters that are injected. */
function withoutInjected(item: Item, rules: readonly Rule[]): Item {
  const hidden = new Set(matching(rules, item.name).flatMap((rule) => Object.keys(rule.arguments)));
  const inputSchema = item.definition?.["inputSchema"];
  if (hidden.size === 0 || !isObject(inputSchema)) return item;
  return item.change({ definition: { ...item.definition, inputSchema: withoutParameters(inputSchema, hidden) } });
}

function withHeaders(context: Context, added: Headers): Context {
  if (Object.keys(added).length === 0) return context;
  return copyContext(context, { headers: { ...context.headers, ...added } });
}

function matching(rules: readonly Rule[], name: string): readonly Rule[] {
  return rules.filter(({ glob }) => matchesGlob(glob, name));
}

function byLowerCase(headers: Headers = {}): Headers {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

/** Also looks into alternatives, since each may list the parameters that it requires. */
function withoutParameters(schema: Fields, hidden: ReadonlySet<string>): Fields {
  const { properties, required, ...rest } = schema;
  const alternatives = ["allOf", "anyOf", "oneOf"].flatMap((key) => {
    const all = schema[key];
    if (!Array.isArray(all)) return [];
    return [[key, (all as readonly unknown[]).map((one) => (isObject(one) ? withoutParameters(one, hidden) : one))]];
  });
  const left = Array.isArray(required) ? (required as readonly string[]).filter((name) => !hidden.has(name)) : [];
  return {
    ...rest,
    ...(Object.fromEntries(alternatives) as Fields),
    ...(isObject(properties) && {
      properties: Object.fromEntries(Object.entries(properties).filter(([name]) => !hidden.has(name))),
    }),
    ...(left.length > 0 && { required: left }),
  };
}

type Hide = (text: string) => string;

function createHider(values: unknown): Hide {
  const found: string[] = [];
  mapStrings(values, (text) => {
    found.push(text);
    return text;
  });
  return hiderOf(found);
}

function mapStrings(value: unknown, change: Hide): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => mapStrings(item, change));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, mapStrings(inner, change)]));
}

/** An error with a value in it is replaced by a copy without it. */
function rethrow(hide: Hide): (error: unknown) => never {
  return (error) => {
    if (error instanceof McpError) {
      const [message, data] = [hide(error.message), mapStrings(error.data, hide)];
      if (message === error.message && JSON.stringify(data) === JSON.stringify(error.data)) throw error;
      throw new McpError(error.code, message, data);
    }
    if (error instanceof ConnectionError && hide(error.message) !== error.message) {
      throw redactConnectionError(error, hide);
    }
    throw error;
  };
}
