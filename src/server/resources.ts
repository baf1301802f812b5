// Resources and resource templates: registration, lists and reads. A URI is looked up among the resources first, then
// matched against the templates in the order of registration. A returned string is text, bytes are a blob, an object
// whose `contents` are resource contents is the whole result, undefined is "not found", and anything else is JSON.

import { Buffer } from "node:buffer";
import { demandScopes, permits } from "../protocol/scopes.ts";
import type { Context, Meta } from "../core/handler.ts";
import { type OptionNames, optionNames } from "../core/options.ts";
import { defined, isObject, jsonOf } from "../core/values.ts";
import { contentsProblem, findUnsendable } from "../tools/content.ts";
import { McpError } from "../protocol/errors.ts";
import type { AnswerOf, RequestOf } from "../protocol/methods.ts";
import type {
  Annotations,
  ListResourcesResult,
  ListResourceTemplatesResult,
  Resource,
  ResourceContents,
  ResourceTemplate,
} from "../protocol/model/index.ts";
import { parseTemplate, type TemplateMatch, type UriTemplate } from "../protocol/uri-template.ts";
import { CallContext, type ToolContext } from "./call-context.ts";
import { InputRequired } from "./input-required.ts";
import { InvalidResult } from "./handler-errors.ts";
import {
  alreadyRegistered,
  type CacheHint,
  checkCacheHint,
  checkRegistration,
  type RegistrationOptions,
} from "./options.ts";
import type { Completer, Completers } from "./prompts.ts";
import { type ListEntry, type Registered, Registrations } from "./registrations.ts";
import type { ResultBuilder } from "./result-builder.ts";
import type { ResourceReturn } from "./returned-types.ts";
import type { Simplify } from "./schema.ts";

/** Options that resources and templates share. */
export interface CommonResourceOptions extends RegistrationOptions {
  /** The name that programs use. Default: the URI. */
  readonly name?: string | undefined;
  /** The name to show to people, if it differs from `name`. */
  readonly title?: string | undefined;
  /** For the model and for people: what can be read here. */
  readonly description?: string | undefined;
  /** The media type, such as "text/markdown". Also sent with each read. */
  readonly mimeType?: string | undefined;
  /** Audience, priority and time of the last change. */
  readonly annotations?: Annotations | undefined;
  /**
   * How long clients may cache what they read. Default: the server's own hint.
   *
   * @example
   * cache: { ttlMs: 60_000, cacheScope: "public" }
   */
  readonly cache?: CacheHint | undefined;
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

/** What a resource and a template have. */
interface Readable extends Registered {
  readonly options: CommonResourceOptions;
}

interface RegisteredResource extends Readable {
  readonly read: ResourceHandler;
}

interface Template extends Readable {
  readonly parsed: UriTemplate;
  readonly list: TemplateOptions["list"];
  readonly completers: Completers;
  read(variables: unknown, context: ToolContext, uri: string): unknown;
}

export class Resources {
  readonly entries: Registrations<RegisteredResource, Resource>;
  readonly templates: Registrations<Template, ResourceTemplate>;
  /** Whether there ever was a variable with completion. */
  hasCompleters = false;
  readonly #results: ResultBuilder;

  constructor(results: ResultBuilder, onChange: () => void) {
    this.#results = results;
    // Both share one counter, because resources and the resources of templates are listed together, in this order.
    const counter = { last: 0 };
    this.entries = new Registrations(onChange, counter);
    this.templates = new Registrations(onChange, counter);
  }

  add(uri: string, options: ResourceOptions, read: ResourceHandler): void {
    const owner = checkRegistration("resource", uri, options, read, RESOURCE_NAMES);
    if (!/^[A-Za-z][A-Za-z0-9+.-]*:/.test(uri)) throw new TypeError(`${owner}: the URI must start with a scheme`);
    if (/\{[^{}]*\}/.test(uri)) {
      throw new TypeError(`${owner}: the URI has a variable; register it with template(${JSON.stringify(uri)}, ...)`);
    }
    if (this.entries.get(uri) !== undefined) throw alreadyRegistered(owner, `removeResource(${JSON.stringify(uri)})`);
    checkCacheHint(owner, options.cache);
    const { name = uri, title, description, mimeType, size, icons, annotations, _meta, scopes, visible } = options;
    const listItem = defined({ uri, name, title, description, mimeType, size, icons, annotations, _meta });
    this.entries.set(uri, { scopes, visible, options, read }, listItem);
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
    const { scopes, visible, list } = options;
    this.templates.set(uriTemplate, { scopes, visible, options, parsed, list, completers, read }, listItem);
  }

  /** The scopes needed to read the URI, or undefined if no resource or template matches it. */
  scopesOf(uri: string, context: Context): readonly string[] | undefined {
    const match = this.#find(uri, context);
    return match && (match[0].scopes ?? []);
  }

  isReadable(uri: string, context: Context): boolean {
    const scopes = this.scopesOf(uri, context);
    return scopes !== undefined && permits(scopes, context.caller);
  }

  completers(uri: string, context: Context): Completers | undefined {
    const template = this.templates.find(uri, context);
    if (template === undefined)
      return this.entries.get(uri) && this.templates.get(uri) === undefined ? new Map() : undefined;
    demandScopes(template.scopes, context.caller, `The template ${uri}`);
    return template.completers;
  }

  async list(request: RequestOf<"resources/list">, context: Context): Promise<ListResourcesResult> {
    const templates = this.templates.seenBy(context).filter(({ value }) => value.list !== undefined);
    const call = new CallContext(context, request, this.#results);
    const listed = await Promise.all(
      templates.map(async ({ order, value }): Promise<readonly ListEntry<Resource>[]> => {
        const resources = await this.#results.errors.run(request, context, () => value.list?.(call) ?? []);
        return resources.map((resource) => ({
          order,
          key: resource.uri,
          listItem: typeof resource.name === "string" ? resource : { ...resource, name: resource.uri },
        }));
      }),
    );
    const registered: readonly ListEntry<Resource>[] = this.entries.seenBy(context);
    const all =
      templates.length === 0 ? registered : [...registered, ...listed.flat()].toSorted((a, b) => a.order - b.order);
    const { items: resources, nextCursor } = this.#results.page(request, all);
    return this.#results.cacheable(defined({ resources, nextCursor }));
  }

  listTemplates(request: RequestOf<"resources/templates/list">, context: Context): ListResourceTemplatesResult {
    const { items: resourceTemplates, nextCursor } = this.#results.page(request, this.templates.seenBy(context));
    return this.#results.cacheable(defined({ resourceTemplates, nextCursor }));
  }

  async read(request: RequestOf<"resources/read">, context: Context): Promise<AnswerOf<"resources/read">> {
    const { uri } = request.params;
    const match = this.#find(uri, context);
    if (match === undefined) throw notFound(uri);
    const [{ scopes, options }, read] = match;
    demandScopes(scopes, context.caller, `The resource ${uri}`);
    const retry = await this.#results.inputs.decode(request, context);
    const call = new CallContext(context, request, this.#results, retry);
    const { mimeType, cache, _meta: ownMeta } = options;
    const value = await this.#results.errors.run(request, context, async () => {
      const returned = await read(call);
      if (returned instanceof InputRequired || returned === undefined) return returned;
      return isWholeResult(uri, returned) ? returned : { contents: [toContents(uri, mimeType, returned)] };
    });
    if (value instanceof InputRequired) return this.#results.inputs.encode(value, request, context, retry);
    if (value === undefined) throw notFound(uri);
    const { contents, _meta, ...rest } = value;
    const typed = contents.map(({ uri, ...content }) =>
      defined({ uri, mimeType, ...content, _meta: content._meta ?? ownMeta }),
    );
    return this.#results.cacheable({ ...rest, contents: typed }, cache, _meta);
  }

  /** What has the URI, and how it is read. A resource that the caller does not see hides the templates. */
  #find(uri: string, context: Context): readonly [Readable, (call: ToolContext) => unknown] | undefined {
    if (this.entries.get(uri) !== undefined) {
      const resource = this.entries.find(uri, context);
      return resource && [resource, (call) => resource.read(uri, call)];
    }
    for (const { value } of this.templates.seenBy(context)) {
      const variables = value.parsed.match(uri);
      if (variables !== undefined) return [value, (call) => value.read(variables, call, uri)];
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
  const unsendable = findUnsendable(value);
  if (unsendable !== undefined) {
    const at = unsendable.path === "" ? "" : `, at ${unsendable.path},`;
    throw new InvalidResult(`Resource ${uri} returned${at} ${unsendable.what}, which cannot be sent`);
  }
  const text = jsonOf(value) ?? "null";
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
  const contents = isObject(value) ? value["contents"] : undefined;
  if (!isObject(value) || !Array.isArray(contents) || contents.length === 0) return false;
  const problems = contents.map((item: unknown, index) => contentsProblem(item, `contents[${index}]`));
  const problem = problems.find((text) => text !== undefined);
  if (problem === undefined) return true;
  const isMeant =
    Object.keys(value).every((field) => field === "contents" || field === "_meta") &&
    contents.every((item: unknown) => isObject(item) && typeof item["uri"] === "string");
  if (isMeant) throw new InvalidResult(`Resource ${uri} returned ${problem}`);
  return false;
}
