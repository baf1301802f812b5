// Decides how the resource URIs and task ids of many upstreams are shown to callers, and rewrites results that contain
// them. A label is a prefix that names the upstream. A listed URI gets a label by the same rules as a name (names.ts).
// An unlisted URI comes from a result (a link or an embedded resource), a template or a subscription. It gets a label
// if it could also belong to another upstream. Otherwise it is shown unchanged, and the router remembers its upstream.

import { BoundedMap } from "../../core/collections.ts";
import type { Params, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { invalidParams, type McpError } from "../../protocol/errors.ts";
import { parseTemplate, type UriTemplate } from "../../protocol/uri-template.ts";
import type { NameIndex, NamesOption, Route, RoutedUpstream } from "./names.ts";

/** How many unlisted URIs each view remembers. */
const MAX_ROUTES = 1_000;
/** How many parsed templates are kept, for all views together. */
const MAX_TEMPLATES = 10_000;

/** The upstreams that may have a resource. */
export interface AddressRoutes {
  /** The most likely one first. */
  readonly routes: readonly Route[];
  /** Whether no other upstream can have it. */
  readonly isCertain: boolean;
}

/** False for a template that cannot be parsed. */
const parsedTemplates = new BoundedMap<string, UriTemplate | false>(MAX_TEMPLATES);

export class Addresses {
  readonly #upstreams: readonly RoutedUpstream[];
  readonly #option: NamesOption;
  readonly #resources: NameIndex;
  readonly #templates: NameIndex;
  readonly #routes = new BoundedMap<string, Route>(MAX_ROUTES);

  constructor(upstreams: readonly RoutedUpstream[], option: NamesOption, resources: NameIndex, templates: NameIndex) {
    this.#upstreams = upstreams;
    this.#option = option;
    this.#resources = resources;
    this.#templates = templates;
  }

  /** Whether URIs are never changed. */
  get areUnchanged(): boolean {
    return this.#upstreams.length === 1 && this.#option === "when-needed";
  }

  /** The URI that callers see for an upstream's own URI. If it is unlisted and has no label, it is remembered. */
  shown(upstream: number, uri: string): string {
    if (this.areUnchanged) return uri;
    const labelled = `${this.#upstreams[upstream]?.label.scheme ?? ""}.${uri}`;
    if (this.#option === "always") return labelled;
    if (this.#resources.names.owners(uri).includes(upstream)) return this.#resources.names.shown(upstream, uri);
    if (this.#needsLabel({ upstream, name: uri })) return labelled;
    this.remember(uri, { upstream, name: uri });
    return uri;
  }

  /** Undefined if the URI has no label, or if callers see this URI without a label. */
  #routeByLabel(uri: string): Route | undefined {
    const route = this.#resources.parseLabel(uri);
    return route !== undefined && this.#needsLabel(route) ? route : undefined;
  }

  #needsLabel({ upstream, name }: Route): boolean {
    const { names } = this.#resources;
    const owners = names.owners(name);
    if (owners.length > 0) return !owners.includes(upstream) || names.shown(upstream, name) !== name;
    const route = this.#routes.get(name);
    if (route !== undefined) return route.upstream !== upstream;
    if (names.hasPrefixes(upstream) || this.#templates.names.hasPrefixes(upstream)) return true;
    return this.#option === "always" || this.#resources.parseLabel(name) !== undefined;
  }

  /** Remembers where an unlisted URI was found. */
  remember(uri: string, route: Route): void {
    this.#routes.set(uri, route);
  }

  /** If several upstreams list this URI, the labelled URIs that a caller can choose from. Otherwise empty. */
  candidates(uri: string): readonly string[] {
    const { names } = this.#resources;
    if (names.route(uri) !== undefined) return [];
    return names.owners(uri).map((upstream) => names.shown(upstream, uri));
  }

  routes(uri: string): AddressRoutes {
    const certain = this.#resources.find(uri) ?? this.#routeByLabel(uri);
    if (certain !== undefined) return { routes: [certain], isCertain: true };
    const known = this.#routes.get(uri);
    const matching = this.#upstreams.flatMap(({ index }) =>
      this.#templates.listOf(index).some((template) => matchesTemplate(template, uri))
        ? [{ upstream: index, name: uri }]
        : [],
    );
    return { routes: known === undefined ? matching : [known, ...matching], isCertain: false };
  }
}

function matchesTemplate(text: string, uri: string): boolean {
  let template = parsedTemplates.get(text);
  if (template === undefined) {
    template = tryParseTemplate(text);
    parsedTemplates.set(text, template);
  }
  return template !== false && template.match(uri) !== undefined;
}

function tryParseTemplate(text: string): UriTemplate | false {
  try {
    return parseTemplate(text);
  } catch {
    return false;
  }
}

/**
 * Ids of tasks with the label of their upstream: the label, a dot, and the upstream's own id. Nothing is stored, so an
 * id is valid as long as the upstream knows it, even after a restart of the gateway.
 */
export class TaskIds {
  readonly #upstreams: readonly RoutedUpstream[];
  readonly #byLabel: ReadonlyMap<string, number>;

  constructor(upstreams: readonly RoutedUpstream[]) {
    this.#upstreams = upstreams;
    this.#byLabel = new Map(upstreams.map(({ index, label }) => [label.scheme, index]));
  }

  shown(upstream: number, id: string): string {
    return `${this.#upstreams[upstream]?.label.scheme ?? ""}.${id}`;
  }

  /** Undefined if the id does not begin with the label of an upstream. */
  route(id: string): Route | undefined {
    const dot = id.indexOf(".");
    const upstream = dot === -1 ? undefined : this.#byLabel.get(id.slice(0, dot));
    return upstream === undefined ? undefined : { upstream, name: id.slice(dot + 1) };
  }
}

export function unknownTask(taskId: string): McpError {
  return invalidParams("Unknown task: its id names no upstream", { taskId });
}

type Json = { readonly [key: string]: unknown };

/**
 * Rewrites results and notifications of one upstream: its URIs and task ids are replaced with those that callers use.
 * Does not copy what needs no change.
 */
export class ResultRewriter {
  readonly #upstream: number;
  readonly #addresses: Addresses;
  readonly #taskIds: TaskIds;

  constructor(upstream: number, addresses: Addresses, taskIds: TaskIds) {
    this.#upstream = upstream;
    this.#addresses = addresses;
    this.#taskIds = taskIds;
  }

  /** The result of a tool call, or of a task. */
  toolResult(result: Result): Result {
    if (result.resultType === "task") return this.task(result);
    return this.#mapField(result, "content", (block) => this.#block(block));
  }

  promptResult(result: Result): Result {
    return this.#mapField(result, "messages", (message) => {
      const content = isObject(message) ? message["content"] : undefined;
      if (!isObject(message) || content === undefined) return message;
      const rewritten = Array.isArray(content)
        ? mapChanged(content as readonly unknown[], (block) => this.#block(block))
        : this.#block(content);
      return rewritten === content ? message : { ...message, content: rewritten };
    });
  }

  /** The contents of a resource. The caller sees the URI that it requested. */
  readResult(result: Result, own: string, requested: string): Result {
    return this.#mapField(result, "contents", (content) => {
      if (!isObject(content) || typeof content["uri"] !== "string") return content;
      const uri = content["uri"] === own ? requested : this.#addresses.shown(this.#upstream, content["uri"]);
      return withUri(content, uri);
    });
  }

  /** The state of a task, with its result if it has one. */
  task<Fields extends Params | Result>(fields: Fields): Fields {
    const { taskId, result } = fields;
    const rewritten = isObject(result) ? this.toolResult(result) : result;
    return {
      ...fields,
      ...(typeof taskId === "string" ? { taskId: this.#taskIds.shown(this.#upstream, taskId) } : undefined),
      ...(rewritten === undefined ? undefined : { result: rewritten }),
    };
  }

  #block(block: unknown): unknown {
    if (!isObject(block)) return block;
    if (block["type"] === "resource_link" && typeof block["uri"] === "string") {
      return withUri(block, this.#addresses.shown(this.#upstream, block["uri"]));
    }
    const { type, resource } = block;
    if (type !== "resource" || !isObject(resource) || typeof resource["uri"] !== "string") return block;
    const rewritten = withUri(resource, this.#addresses.shown(this.#upstream, resource["uri"]));
    return rewritten === resource ? block : { ...block, resource: rewritten };
  }

  #mapField(result: Result, field: string, change: (item: unknown) => unknown): Result {
    const items = result[field];
    if (!Array.isArray(items) || this.#addresses.areUnchanged) return result;
    const rewritten = mapChanged(items as readonly unknown[], change);
    return rewritten === items ? result : { ...result, [field]: rewritten };
  }
}

function withUri(fields: Json, uri: string): Json {
  return fields["uri"] === uri ? fields : { ...fields, uri };
}

/** Returns the same array if nothing has changed. */
function mapChanged(items: readonly unknown[], change: (item: unknown) => unknown): readonly unknown[] {
  let copy: unknown[] | undefined;
  for (const [index, item] of items.entries()) {
    const changed = change(item);
    if (changed !== item) (copy ??= [...items])[index] = changed;
  }
  return copy ?? items;
}
