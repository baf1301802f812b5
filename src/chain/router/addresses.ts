// Addresses of resources and ids of tasks in many upstreams, and how results are rewritten to hold them. Listed addresses
// get labels like names do. Others come from results (links, embedded resources, updates) and templates: one that an
// upstream has named is remembered; one that could be mistaken for another upstream's gets the label of its own.

import { BoundedMap } from "../../core/bounded-map.ts";
import type { Params, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { invalidParams, type McpError } from "../../protocol/errors.ts";
import { parseTemplate, type UriTemplate } from "../../protocol/uri-template.ts";
import type { NameIndex, NamesOption, Route, RoutedUpstream } from "./names.ts";

/** Unlisted addresses that each view remembers. */
const MAX_ROUTES = 1_000;
/** Parsed templates. */
const MAX_TEMPLATES = 10_000;

/** Where an address may be read. */
export interface AddressRoutes {
  /** The likeliest first. */
  readonly routes: readonly Route[];
  /** Whether it can be nowhere else. */
  readonly isCertain: boolean;
}

/** False for a template that cannot be parsed. */
const templates = new BoundedMap<string, UriTemplate | false>(MAX_TEMPLATES);

export class Addresses {
  readonly #upstreams: readonly RoutedUpstream[];
  readonly #option: NamesOption;
  readonly #resources: NameIndex;
  readonly #templates: NameIndex;
  readonly #routes = new BoundedMap<string, Route>(MAX_ROUTES);

  constructor(upstreams: readonly RoutedUpstream[], option: NamesOption, resources: NameIndex, listed: NameIndex) {
    this.#upstreams = upstreams;
    this.#option = option;
    this.#resources = resources;
    this.#templates = listed;
  }

  /** Whether addresses are never changed. */
  get areUnchanged(): boolean {
    return this.#upstreams.length === 1 && this.#option === "when-needed";
  }

  /** The address that callers see for one that an upstream has named, and by which it is found again. */
  shown(upstream: number, uri: string): string {
    if (this.areUnchanged) return uri;
    const labelled = `${this.#upstreams[upstream]?.label.scheme ?? ""}.${uri}`;
    if (this.#option === "always") return labelled;
    if (this.#resources.names.owners(uri).includes(upstream)) return this.#resources.names.shown(upstream, uri);
    if (this.#needsLabel({ upstream, name: uri })) return labelled;
    this.remember(uri, { upstream, name: uri });
    return uri;
  }

  /** Where the label of an address leads, if the address would be shown with it. */
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

  /** Remembers where an unlisted address was found. */
  remember(uri: string, route: Route): void {
    this.#routes.set(uri, route);
  }

  /** The shown addresses of the upstreams that list this one, if several do. */
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
  let template = templates.get(text);
  if (template === undefined) {
    template = tryParseTemplate(text);
    templates.set(text, template);
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
 * Ids of tasks with the label of their upstream: the label, a dot, and the upstream's own id. Nothing is stored, so an id
 * is valid as long as the upstream knows it, also after a restart of the gateway.
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

  /** Undefined if the id has no label of ours. */
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
 * Rewrites results and notifications of one upstream: addresses and task ids become those that lead back to it. Copies
 * nothing that needs no change.
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

  /** The contents at an address; the caller sees the address that it requested. */
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

/** The same array if nothing has changed. */
function mapChanged(items: readonly unknown[], change: (item: unknown) => unknown): readonly unknown[] {
  let copy: unknown[] | undefined;
  for (const [index, item] of items.entries()) {
    const changed = change(item);
    if (changed !== item) (copy ??= [...items])[index] = changed;
  }
  return copy ?? items;
}
