// Decides how the resource URIs and task ids of many upstreams are shown to callers, and rewrites results that contain
// them. A label is a prefix that names the upstream. A listed URI gets a label by the same rules as a name (names.ts).
// An unlisted URI comes from a result (a link or an embedded resource), a template or a subscription. It gets a label
// if it could also belong to another upstream. Otherwise it is shown unchanged, and the router remembers its upstream.

import { ExpiringMap } from "../../core/expiring-map.ts";
import type { Params, Result } from "../../core/handler.ts";
import { invalidParams, type McpError } from "../../protocol/errors.ts";
import { tryParseTemplate, type UriTemplate } from "../../protocol/uri-template.ts";
import { mapResultUris } from "../result-items.ts";
import type { NameIndex, Route, RoutedUpstream } from "./names.ts";

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
const parsedTemplates = new ExpiringMap<string, UriTemplate | false>({ maxEntries: MAX_TEMPLATES });

export class Addresses {
  readonly #upstreams: readonly RoutedUpstream[];
  readonly #resources: NameIndex;
  readonly #templates: NameIndex;
  readonly #routes = new ExpiringMap<string, Route>({ maxEntries: MAX_ROUTES });

  constructor(upstreams: readonly RoutedUpstream[], resources: NameIndex, templates: NameIndex) {
    this.#upstreams = upstreams;
    this.#resources = resources;
    this.#templates = templates;
  }

  /** Whether URIs are never changed. */
  get areUnchanged(): boolean {
    return this.#upstreams.length === 1 && !this.#isAlways(0);
  }

  /** The URI that callers see for an upstream's own URI. If it is unlisted and has no label, it is remembered. */
  shownUri(upstream: number, uri: string): string {
    if (this.areUnchanged) return uri;
    if (this.#isAlways(upstream)) return this.#labelled(upstream, uri);
    if (this.#resources.names.owners(uri).includes(upstream)) return this.#resources.names.shownName(upstream, uri);
    if (this.#needsLabel({ upstream, name: uri })) return this.#labelled(upstream, uri);
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
    if (owners.length > 0) return !owners.includes(upstream) || names.shownName(upstream, name) !== name;
    const route = this.#routes.get(name);
    if (route !== undefined) return route.upstream !== upstream;
    if (names.hasPrefixes(upstream) || this.#templates.names.hasPrefixes(upstream)) return true;
    return this.#isAlways(upstream) || this.#resources.parseLabel(name) !== undefined;
  }

  /** Remembers where an unlisted URI was found. */
  remember(uri: string, route: Route): void {
    this.#routes.set(uri, route);
  }

  /** If several upstreams list this URI, the labelled URIs that a caller can choose from. Otherwise empty. */
  candidates(uri: string): readonly string[] {
    const { names } = this.#resources;
    if (names.route(uri) !== undefined) return [];
    return names.owners(uri).map((upstream) => names.shownName(upstream, uri));
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

  /**
   * The upstream of a task. The id of a task has the label of its upstream and the upstream's own id. Nothing is stored,
   * so an id is valid as long as the upstream knows it, even after a restart of the gateway.
   */
  taskRoute(id: string): Route | undefined {
    return this.#resources.parseLabel(id);
  }

  /** Replaces an upstream's own URIs in a result, and the id of a task, with those that callers use. */
  rewrite<Fields extends Params | Result>(upstream: number, fields: Fields): Fields {
    const { taskId } = fields;
    const changed = this.rewriteUris(upstream, fields);
    return typeof taskId === "string" ? { ...changed, taskId: this.#labelled(upstream, taskId) } : changed;
  }

  /** `ownUri` is shown as `requested`, the URI that the caller has used. */
  rewriteUris<Fields extends Params | Result>(
    upstream: number,
    fields: Fields,
    ownUri?: string,
    requested = "",
  ): Fields {
    if (this.areUnchanged) return fields;
    return mapResultUris(fields, (uri) => (uri === ownUri ? requested : this.shownUri(upstream, uri)));
  }

  #isAlways(upstream: number): boolean {
    return this.#upstreams[upstream]?.names === "always";
  }

  #labelled(upstream: number, text: string): string {
    return `${this.#upstreams[upstream]?.label.scheme ?? ""}.${text}`;
  }
}

function matchesTemplate(text: string, uri: string): boolean {
  let template = parsedTemplates.get(text);
  if (template === undefined) {
    template = tryParseTemplate(text) ?? false;
    parsedTemplates.set(text, template);
  }
  return template !== false && template.match(uri) !== undefined;
}

export function unknownTask(taskId: string): McpError {
  return invalidParams("Unknown task: its id names no upstream", { taskId });
}
