// Adds arguments to calls of tools, and HTTP headers to requests, so that a caller neither knows nor chooses them: an API
// key, a tenant, a folder. The parameters are removed from the schemas in lists, and a caller's own value is replaced.
// The values may be secret, so they are removed from errors, which often quote what they are about.

import { copyContext } from "../../core/cancel.ts";
import type { Context, Handler, Middleware, Request, Result } from "../../core/handler.ts";
import { ConnectionError } from "../../core/errors.ts";
import { mapOf, ofTools, record, refine, stringMap, type Field, type OptionsOf } from "../../core/fields.ts";
import { Redactor } from "../../core/redactor.ts";
import { withWords } from "../../core/secrets.ts";
import { matchesGlob } from "../../core/text.ts";
import { errorMessage, isObject } from "../../core/values.ts";
import { McpError } from "../../protocol/errors.ts";
import { define, type DefinedMiddleware, type DefinitionPlace } from "../define.ts";
import type { Item } from "../item.ts";
import { kindsOf, type Layer } from "../layer.ts";
import { redactError } from "../middleware/redact.ts";
import { isSettable } from "../upstream/options.ts";

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
  tools: ofTools(mapOf("What to add to the calls of tools, by their names; `*` matches any characters.", INJECTION)),
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
  const values = stringsIn([forAll, ...rules.map((rule) => [rule.arguments, rule.headers])]);
  const redactor = new Redactor([], values.flatMap(withWords), undefined);
  const rethrow = (error: unknown): never => {
    const hidden = redactError(error, redactor);
    const isKnown = hidden === error || hidden instanceof McpError || hidden instanceof ConnectionError;
    // A changed copy of any other error would seem to be one of this middleware.
    throw isKnown ? hidden : McpError.of("internal_error", errorMessage(hidden));
  };
  // The error of a call that became a task.
  const task = async (request: Request, context: Context, next: Handler): Promise<Result> => {
    const result = await next(request, context).catch(rethrow);
    const hasFailed = isObject(result["error"]) || (isObject(result["result"]) && result["result"]["isError"] === true);
    return hasFailed ? (redactor.json(result) as Result) : result;
  };
  const middleware: Middleware = (request, context, next) => {
    const { method, params } = request;
    if (method === "tasks/get" && rules.length > 0) return task(request, withHeaders(context, forAll), next);
    const matched = method === "tools/call" ? matching(rules, params["name"] as string) : [];
    const added = matched.reduce<Headers>((all, { headers }) => ({ ...all, ...headers }), forAll);
    const passed = withHeaders(context, added);
    if (matched.length === 0) return passed === context ? next(request, context) : next(request, passed).catch(rethrow);
    const callArguments = isObject(params["arguments"]) ? params["arguments"] : {};
    const all = matched.reduce<Fields>((sum, rule) => ({ ...sum, ...rule.arguments }), callArguments);
    return next({ ...request, params: { ...params, arguments: all } }, passed).then(
      (result) => (result["isError"] === true ? (redactor.json(result) as Result) : result),
      rethrow,
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
    return [
      [key, (all as readonly unknown[]).map((tool) => (isObject(tool) ? withoutParameters(tool, hidden) : tool))],
    ];
  });
  const stillRequired = Array.isArray(required)
    ? (required as readonly string[]).filter((name) => !hidden.has(name))
    : [];
  return {
    ...rest,
    ...(Object.fromEntries(alternatives) as Fields),
    ...(isObject(properties) && {
      properties: Object.fromEntries(Object.entries(properties).filter(([name]) => !hidden.has(name))),
    }),
    ...(stillRequired.length > 0 && { required: stillRequired }),
  };
}

function stringsIn(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(stringsIn) : [];
}
