// Resources and resource templates: registration, lists and reads. A URI is looked up among the resources first, then
// matched against the templates in the order of registration. A returned string is text, bytes are a blob, an object
// whose `contents` are resource contents is the whole result, undefined is "not found", and anything else is JSON.

import { Buffer } from "node:buffer";
import { demandScopes, permits } from "../protocol/caller.ts";
import type { Context, Meta, Request, Result } from "../core/handler.ts";
import { type OptionNames, optionNames } from "../core/options.ts";
import { defined } from "../core/values.ts";
import { contentsProblem, findUnsendable } from "../tools/content.ts";
import { McpError } from "../protocol/errors.ts";
import type { Annotations, Icon, Resource, ResourceContents } from "../protocol/model/index.ts";
import { parseTemplate, type TemplateMatch, type UriTemplate } from "../protocol/uri-template.ts";
import { CallContext, type ToolContext } from "./call-context.ts";
import { InputRequired, type InputRequiredCodec } from "./input-required.ts";
import { InvalidResult } from "./handler-errors.ts";
import {
  alreadyRegistered,
  type CacheHint,
  checkCacheHint,
  checkRegistration,
  isVisible,
  type Visible,
} from "./options.ts";
import type { Completer, Completers } from "./prompts.ts";
import { type ListEntry, OrderedMap, type ResultBuilder } from "./result-builder.ts";
import type { ResourceReturn } from "./returned-types.ts";
import type { Simplify } from "./schema.ts";

/** Options that resources and templates share. */
export interface CommonResourceOptions {
  /** The name that programs use. Default: the URI. */
  readonly name?: string | undefined;
  /** The name to show to people, if it differs from `name`. */
  readonly title?: string | undefined;
  /** For the model and for people: what can be read here. */
  readonly description?: string | undefined;
  /** The media type, such as "text/markdown". Also sent with each read. */
  readonly mimeType?: string | undefined;
  /** Icons for user interfaces. */
  readonly icons?: readonly Icon[] | undefined;
  /** Audience, priority and time of the last change. */
  readonly annotations?: Annotations | undefined;
  /** Extra data for clients, sent as it is. */
  readonly _meta?: Meta | undefined;
  /**
   * How long clients may cache what they read. Default: the server's own hint.
   *
   * @example
   * cache: { ttlMs: 60_000, cacheScope: "public" }
   */
  readonly cache?: CacheHint | undefined;
  /**
   * The scopes that a client over HTTP needs; see `bearer`. All clients see the entry in the list. The error for a
   * missing scope names it.
   *
   * @example
   * scopes: ["notes:write"]
   */
  readonly scopes?: readonly string[] | undefined;
  /**
   * Whether a caller sees the entry in the list and can use it; for others it does not exist. Default: everybody does.
   *
   * @example
   * visible: ({ scopes }) => scopes?.includes("admin") === true
   */
  readonly visible?: Visible | undefined;
}

/** Options of `server.resource()`. */
export interface ResourceOptions extends CommonResourceOptions {
  /** In bytes. */
  readonly size?: number | undefined;
}

/** Options of `server.template()`. */
export interface TemplateOptions<Variables = TemplateMatch, Env = unknown> extends CommonResourceOptions {
  /** Returns resources that match the template, for the list of resources. */
  readonly list?: ((context: ToolContext<Env>) => readonly Resource[] | Promise<readonly Resource[]>) | undefined;
  /**
   * Completions by variable name.
   *
   * @example
   * complete: { date: (typed) => days.filter((day) => day.startsWith(typed)) }
   */
  readonly complete?: { readonly [Name in keyof Variables]?: Completer | undefined } | undefined;
}

/** Reads a resource. Returns its text, its bytes, whole contents, or a value to send as JSON. */
export type ResourceHandler<Env = unknown> = (
  uri: string,
  context: ToolContext<Env>,
) => ResourceReturn | Promise<ResourceReturn>;
/** Reads a resource whose URI matches a template. Gets the variables of the template. */
export type TemplateHandler<Variables, Env = unknown> = (
  variables: Variables,
  context: ToolContext<Env>,
  uri: string,
) => ResourceReturn | Promise<ResourceReturn>;

/**
 * The variables of a URI template, read from the literal template by the compiler. `{a}` and `{+a}` are always present,
 * other forms are optional, and `*` makes a list (see protocol/uri-template.ts).
 */
export type TemplateVariables<Text extends string> = string extends Text ? TemplateMatch : Simplify<Expressions<Text>>;

type Expressions<Text extends string> = Text extends `${string}{${infer Body}}${infer Rest}`
  ? Expression<Body> & Expressions<Rest>
  : unknown;

type Expression<Body extends string> = Body extends `+${infer Specs}`
  ? Variables<Specs>
  : Body extends `${"#" | "." | "/" | ";" | "?" | "&"}${infer Specs}`
    ? Partial<Variables<Specs>>
    : Variables<Body>;

type Variables<Specs extends string> = Specs extends `${infer First},${infer Rest}`
  ? Variable<First> & Variables<Rest>
  : Variable<Specs>;

type Variable<Spec extends string> = Spec extends `${infer Name}*`
  ? { [Key in Name]: string[] }
  : Spec extends `${infer Name}:${string}`
    ? { [Key in Name]: string }
    : { [Key in Spec]: string };

const COMMON_NAMES: OptionNames<CommonResourceOptions> = optionNames(
  "name title description mimeType icons annotations _meta cache scopes visible",
);
const RESOURCE_NAMES: OptionNames<ResourceOptions> = { ...COMMON_NAMES, size: true };
const TEMPLATE_NAMES: OptionNames<TemplateOptions> = { ...COMMON_NAMES, list: true, complete: true };

interface Template {
  readonly parsed: UriTemplate;
  readonly options: TemplateOptions;
  readonly completers: Completers;
  read(variables: unknown, context: ToolContext, uri: string): unknown;
}

interface Readable {
  readonly options: CommonResourceOptions;
  read(context: ToolContext): unknown;
}

export class Resources {
  readonly entries: OrderedMap<{ readonly options: ResourceOptions; readonly read: ResourceHandler }>;
  readonly templates: OrderedMap<Template>;
  /** Whether there ever was a variable with completion. */
  hasCompleters = false;
  readonly #results: ResultBuilder;
  readonly #inputs: InputRequiredCodec;

  constructor(results: ResultBuilder, inputs: InputRequiredCodec, onChange: () => void) {
    this.#results = results;
    this.#inputs = inputs;
    // Both share one counter, because resources and the resources of templates are listed together, in this order.
    const counter = { last: 0 };
    this.entries = new OrderedMap(onChange, counter);
    this.templates = new OrderedMap(onChange, counter);
  }

  get wasUsed(): boolean {
    return this.entries.wasUsed || this.templates.wasUsed;
  }

  add(uri: string, options: ResourceOptions, read: ResourceHandler): void {
    const owner = checkRegistration("resource", uri, options, read, RESOURCE_NAMES);
    if (!/^[A-Za-z][A-Za-z0-9+.-]*:/.test(uri)) throw new TypeError(`${owner}: the URI must start with a scheme`);
    if (/\{[^{}]*\}/.test(uri)) {
      throw new TypeError(`${owner}: the URI has a variable; register it with template(${JSON.stringify(uri)}, ...)`);
    }
    if (this.entries.get(uri) !== undefined) throw alreadyRegistered(owner, `removeResource(${JSON.stringify(uri)})`);
    checkCacheHint(owner, options.cache);
    const { name = uri, title, description, mimeType, size, icons, annotations, _meta } = options;
    const listItem = defined({ uri, name, title, description, mimeType, size, icons, annotations, _meta });
    this.entries.set(uri, { options, read }, listItem);
  }

  addTemplate(uriTemplate: string, options: TemplateOptions, read: Template["read"]): void {
    const owner = checkRegistration("template", uriTemplate, options, read, TEMPLATE_NAMES);
    const parsed = parseTemplate(uriTemplate);
    if (this.templates.get(uriTemplate) !== undefined) {
      throw alreadyRegistered(owner, `removeTemplate(${JSON.stringify(uriTemplate)})`);
    }
    checkCacheHint(owner, options.cache);
    const { name = uriTemplate, title, description, mimeType, icons, annotations, _meta, complete = {} } = options;
    const unknown = Object.keys(complete).find((variable) => !parsed.names.includes(variable));
    if (unknown !== undefined) throw new TypeError(`${owner}: there is no variable ${unknown} to complete`);
    this.hasCompleters ||= Object.values(complete).some((completer) => completer !== undefined);
    const completers = new Map(
      parsed.names.map((variable) => [variable, Object.hasOwn(complete, variable) ? complete[variable] : undefined]),
    );
    const listItem = defined({ uriTemplate, name, title, description, mimeType, icons, annotations, _meta });
    this.templates.set(uriTemplate, { parsed, options, completers, read }, listItem);
  }

  /** The scopes needed to read the URI, or undefined if no resource or template matches it. */
  scopesOf(uri: string, context: Context): readonly string[] | undefined {
    const found = this.#find(uri, context);
    return found && (found.options.scopes ?? []);
  }

  isReadable(uri: string, context: Context): boolean {
    const scopes = this.scopesOf(uri, context);
    return scopes !== undefined && permits(scopes, context.caller);
  }

  completers(uri: string, context: Context): Completers | undefined {
    const template = this.templates.get(uri);
    if (template === undefined) return this.entries.get(uri) && new Map();
    if (!this.#isVisible(template, context)) return undefined;
    demandScopes(template.options.scopes, context.caller, `The template ${uri}`);
    return template.completers;
  }

  async list(request: Request, context: Context): Promise<Result> {
    const templates = this.templates
      .entries()
      .filter(({ value }) => value.options.list !== undefined && this.#isVisible(value, context));
    const call = new CallContext(context, request, this.#results);
    const listed = await Promise.all(
      templates.map(async ({ order, value }): Promise<readonly ListEntry[]> => {
        const resources = await this.#results.errors.run(request, context, () => value.options.list?.(call) ?? []);
        return resources.map((resource) => ({
          order,
          key: resource.uri,
          listItem: typeof resource.name === "string" ? resource : { ...resource, name: resource.uri },
        }));
      }),
    );
    const own: readonly ListEntry[] = this.entries.entries().filter(({ value }) => this.#isVisible(value, context));
    const all = templates.length === 0 ? own : [...own, ...listed.flat()].toSorted((a, b) => a.order - b.order);
    return this.#results.list(request, "resources", all);
  }

  listTemplates(request: Request, context: Context): Result {
    const seen = this.templates.entries().filter(({ value }) => this.#isVisible(value, context));
    return this.#results.list(request, "resourceTemplates", seen);
  }

  async read(request: Request, context: Context): Promise<Result> {
    const { uri } = request.params as { uri: string };
    const found = this.#find(uri, context);
    if (found === undefined) throw notFound(uri);
    demandScopes(found.options.scopes, context.caller, `The resource ${uri}`);
    const retry = await this.#inputs.decode(request, context);
    const call = new CallContext(context, request, this.#results, retry);
    const { mimeType, cache, _meta: ownMeta } = found.options;
    const value = await this.#results.errors.run(request, context, async () => {
      const returned = await found.read(call);
      if (returned instanceof InputRequired || returned === undefined) return returned;
      return isWholeResult(uri, returned) ? returned : { contents: [toContents(uri, mimeType, returned)] };
    });
    if (value instanceof InputRequired) return this.#inputs.encode(value, request, context, retry);
    if (value === undefined) throw notFound(uri);
    const { contents, _meta, ...rest } = value;
    const typed = contents.map(({ uri, ...content }) =>
      defined({ uri, mimeType, ...content, _meta: content._meta ?? ownMeta }),
    );
    return this.#results.cacheable({ ...rest, contents: typed }, cache, _meta);
  }

  #isVisible({ options }: { readonly options: CommonResourceOptions }, context: Context): boolean {
    return isVisible(options.visible, context);
  }

  #find(uri: string, context: Context): Readable | undefined {
    const resource = this.entries.get(uri);
    if (resource !== undefined && !this.#isVisible(resource, context)) return undefined;
    if (resource !== undefined) return { options: resource.options, read: (context) => resource.read(uri, context) };
    for (const { value } of this.templates.entries()) {
      const variables = value.parsed.match(uri);
      if (variables !== undefined && this.#isVisible(value, context)) {
        return { options: value.options, read: (context) => value.read(variables, context, uri) };
      }
    }
    return undefined;
  }
}

function notFound(uri: string): McpError {
  return McpError.of("resource_not_found", `Resource not found: ${uri}`, { uri });
}

function toContents(uri: string, mimeType: string | undefined, value: unknown): ResourceContents {
  if (typeof value === "string") return defined({ uri, mimeType, text: value });
  if (value instanceof Uint8Array) {
    return defined({
      uri,
      mimeType,
      blob: Buffer.from(value.buffer, value.byteOffset, value.length).toString("base64"),
    });
  }
  const found = findUnsendable(value);
  if (found !== undefined) {
    const at = found.path === "" ? "" : `, at ${found.path},`;
    throw new InvalidResult(`Resource ${uri} returned${at} ${found.what}, which cannot be sent`);
  }
  const text = (JSON.stringify(value) as string | undefined) ?? "null";
  return { uri, mimeType: mimeType ?? "application/json", text };
}

interface WholeResult {
  readonly contents: readonly ResourceContents[];
  readonly _meta?: Meta | undefined;
}

/**
 * Any object may have a field `contents`. It is the result if each item is valid; one that has no other fields and whose
 * items have URIs is meant to be, so its mistakes are errors.
 */
function isWholeResult(uri: string, value: unknown): value is WholeResult {
  const { contents } = Object(value) as { contents?: unknown };
  if (!Array.isArray(contents) || contents.length === 0) return false;
  const problems = contents.map((item: unknown, index) => contentsProblem(item, `contents[${index}]`));
  const problem = problems.find((one) => one !== undefined);
  if (problem === undefined) return true;
  const isMeant =
    Object.keys(value as object).every((field) => field === "contents" || field === "_meta") &&
    contents.every((item: unknown) => typeof (Object(item) as { uri?: unknown }).uri === "string");
  if (isMeant) throw new InvalidResult(`Resource ${uri} returned ${problem}`);
  return false;
}
