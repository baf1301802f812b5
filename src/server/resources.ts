// Resources and resource templates: their lists and their reads. An address is looked up as it stands, then
// tried against the templates in the order of their registration. A string that is read is text, bytes are a
// blob, an object whose `contents` are contents is the result itself, undefined is "not found", all else is JSON.

import type { Caller, Context, Meta, Request, Result } from "../core/handler.ts";
import { McpError } from "../protocol/errors.ts";
import type { Annotations, Icon, Resource, ResourceContents } from "../protocol/model/index.ts";
import { parseTemplate, type UriTemplate, type TemplateMatch } from "../protocol/uri-template.ts";
import { CallContext, type ToolContext } from "./call-context.ts";
import type { Completer, Completers } from "./completion.ts";
import { type CacheHint, checkedCache, type Frame, type Listed } from "./result-builder.ts";
import { defined } from "../core/objects.ts";
import { InputRequired, type Rounds } from "./input-required.ts";
import { checkRegistration } from "./options.ts";
import { demandScopes } from "../auth/bearer/scopes.ts";
import { counter, Shelf } from "./ordered-map.ts";
import { orError } from "./tool-errors.ts";
import type { Flat } from "./schema.ts";

interface CommonOptions {
  /** What programs call it; the address where it is left out. */
  readonly name?: string;
  /** For people: how a program shows it, where that is not its name. */
  readonly title?: string;
  /** For the model and for people: what is to be found there. */
  readonly description?: string;
  /** What kind of text or bytes is read, such as "text/markdown"; goes with each read too. */
  readonly mimeType?: string;
  /** Pictures for programs that show it. */
  readonly icons?: readonly Icon[];
  /** Whom it is for, how much it matters, when it last changed. */
  readonly annotations?: Annotations;
  /** Passed to callers as it is, for what the specification has no field for. */
  readonly _meta?: Meta;
  /**
   * How long callers may keep what they read here; the server's own hint where it is left out.
   *
   * @example
   * cache: { ttlMs: 60_000, cacheScope: "public" }
   */
  readonly cache?: CacheHint;
  /**
   * What a caller over HTTP must have proved that it may do; see `bearer`. It stays in the list for everybody, and a
   * caller that lacks a scope is told which.
   *
   * @example
   * scopes: ["notes:write"]
   */
  readonly scopes?: readonly string[];
}

/** What is said of a resource when it is registered. */
export interface ResourceOptions extends CommonOptions {
  /** In bytes, as it is read. */
  readonly size?: number;
}

/** What is said of a template when it is registered. */
export interface TemplateOptions extends CommonOptions {
  /** The addresses that the template stands for at present, where they can be counted: they join the list of resources. */
  readonly list?: (context: ToolContext) => readonly Resource[] | Promise<readonly Resource[]>;
  /**
   * By the name of a variable: what could stand there, given what was typed so far.
   *
   * @example
   * complete: { date: (typed) => days.filter((day) => day.startsWith(typed)) }
   */
  readonly complete?: Readonly<Record<string, Completer>>;
}

export type ResourceHandler = (uri: string, context: ToolContext) => unknown;
export type TemplateHandler<Variables> = (variables: Variables, context: ToolContext, uri: string) => unknown;

interface Template {
  readonly parsed: UriTemplate;
  readonly options: TemplateOptions;
  readonly completers: Completers;
  read(variables: unknown, context: ToolContext, uri: string): unknown;
}

type Found = { readonly options: CommonOptions; read(context: ToolContext): unknown };

export class Resources {
  readonly #resources: Shelf<{ readonly options: ResourceOptions; readonly read: ResourceHandler }>;
  readonly #templates: Shelf<Template>;
  readonly #frame: Frame;
  readonly #rounds: Rounds;

  constructor(frame: Frame, rounds: Rounds, changed: () => void) {
    this.#frame = frame;
    this.#rounds = rounds;
    // One counter, because what templates list stands among the resources.
    const next = counter();
    this.#resources = new Shelf(next, changed);
    this.#templates = new Shelf(next, changed);
  }

  get used(): boolean {
    return this.#resources.used || this.#templates.used;
  }

  add(uri: string, options: ResourceOptions, read: ResourceHandler): void {
    const owner = checkRegistration("resource", uri, options, read);
    if (!/^[A-Za-z][A-Za-z0-9+.-]*:/.test(uri)) throw new TypeError(`${owner}: its address must begin with a scheme`);
    checkedCache(owner, options.cache);
    const { name = uri, title, description, mimeType, size, icons, annotations, _meta } = options;
    const shown = defined({ uri, name, title, description, mimeType, size, icons, annotations, _meta });
    this.#resources.put(uri, { options, read }, shown);
  }

  addTemplate(uriTemplate: string, options: TemplateOptions, read: Template["read"]): void {
    const owner = checkRegistration("template", uriTemplate, options, read);
    const parsed = parseTemplate(uriTemplate);
    checkedCache(owner, options.cache);
    const { name = uriTemplate, title, description, mimeType, icons, annotations, _meta, complete = {} } = options;
    const stray = Object.keys(complete).find((variable) => !parsed.names.includes(variable));
    if (stray !== undefined) throw new TypeError(`${owner}: it has no variable ${stray} to complete`);
    const completers = new Map(
      parsed.names.map((name) => [name, Object.hasOwn(complete, name) ? complete[name] : undefined]),
    );
    const shown = defined({ uriTemplate, name, title, description, mimeType, icons, annotations, _meta });
    this.#templates.put(uriTemplate, { parsed, options, completers, read }, shown);
  }

  remove(uri: string): boolean {
    return this.#resources.remove(uri);
  }

  removeTemplate(uriTemplate: string): boolean {
    return this.#templates.remove(uriTemplate);
  }

  /** What is needed to read at the address; undefined where nothing is known to be there. */
  scopesOf(uri: string): readonly string[] | undefined {
    const found = this.#find(uri);
    return found && (found.options.scopes ?? []);
  }

  completers(uri: string, caller: Caller): Completers | undefined {
    const template = this.#templates.get(uri);
    if (template === undefined) return this.#resources.get(uri) && new Map();
    demandScopes(template.options.scopes, caller, `The template ${uri}`);
    return template.completers;
  }

  async list(request: Request, context: Context): Promise<Result> {
    const listing = this.#templates.items().filter(({ entry }) => entry.options.list !== undefined);
    const call = new CallContext(context, request, this.#frame, { answers: {}, state: undefined });
    const counted = await Promise.all(
      listing.map(async ({ order, entry }): Promise<readonly Listed[]> => {
        const resources = await orError(context, () => entry.options.list?.(call) ?? []);
        return resources.map((shown) => ({ order, key: shown.uri, shown }));
      }),
    );
    const items: readonly Listed[] = this.#resources.items();
    const all = listing.length === 0 ? items : [...items, ...counted.flat()].toSorted((a, b) => a.order - b.order);
    return this.#frame.list(request.method, "resources", all, request.params["cursor"]);
  }

  listTemplates({ method, params }: Request): Result {
    return this.#frame.list(method, "resourceTemplates", this.#templates.items(), params["cursor"]);
  }

  async read(request: Request, context: Context): Promise<Result> {
    const { uri } = request.params as { uri: string };
    const found = this.#find(uri);
    if (found === undefined) throw notFound(uri);
    demandScopes(found.options.scopes, context.caller, `The resource ${uri}`);
    const call = new CallContext(context, request, this.#frame, await this.#rounds.brought(request, context));
    const value = await orError(context, () => found.read(call));
    if (value instanceof InputRequired) return this.#rounds.result(value, request, context);
    if (value === undefined) throw notFound(uri);
    const { mimeType, cache } = found.options;
    if (isResult(value)) {
      const { contents, _meta, ...rest } = value;
      const whole = contents.map((content) => defined({ mimeType, ...content }));
      return this.#frame.cacheable({ ...rest, contents: whole }, cache, _meta);
    }
    return this.#frame.cacheable({ contents: [contentOf(uri, mimeType, value)] }, cache);
  }

  #find(uri: string): Found | undefined {
    const resource = this.#resources.get(uri);
    if (resource !== undefined) return { options: resource.options, read: (context) => resource.read(uri, context) };
    for (const { entry } of this.#templates.items()) {
      const variables = entry.parsed.match(uri);
      if (variables !== undefined) {
        return { options: entry.options, read: (context) => entry.read(variables, context, uri) };
      }
    }
    return undefined;
  }
}

function notFound(uri: string): McpError {
  return McpError.of("resource_not_found", `Resource not found: ${uri}`, { uri });
}

function contentOf(uri: string, mimeType: string | undefined, value: unknown): ResourceContents {
  if (typeof value === "string") return defined({ uri, mimeType, text: value });
  if (value instanceof Uint8Array) {
    return defined({
      uri,
      mimeType,
      blob: Buffer.from(value.buffer, value.byteOffset, value.length).toString("base64"),
    });
  }
  const text = (JSON.stringify(value) as string | undefined) ?? "null";
  return { uri, mimeType: mimeType ?? "application/json", text };
}

interface WholeResult {
  readonly contents: readonly ResourceContents[];
  readonly _meta?: Meta;
}

/** Anything may have a field of this name; contents say their address and hold a text or a blob. */
function isResult(value: unknown): value is WholeResult {
  const { contents } = Object(value) as { contents?: unknown };
  if (!Array.isArray(contents) || contents.length === 0) return false;
  return contents.every((item: unknown) => {
    const { uri, text, blob } = Object(item) as Record<string, unknown>;
    return typeof uri === "string" && (typeof text === "string" || typeof blob === "string");
  });
}

// The variables of a URI template as a type, read from the template's text by the compiler, so that a handler
// knows its variables by name. It follows the rules of protocol/uri-template.ts: `{a}` and `{+a}` are always
// there, the others may be left out, and `*` makes a list. Types only.


export type TemplateVariables<Text extends string> = string extends Text ? TemplateMatch : Flat<Parts<Text>>;

type Parts<Text extends string> = Text extends `${string}{${infer Body}}${infer Rest}`
  ? Expression<Body> & Parts<Rest>
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
