// An item: a tool, prompt, resource, template or task at one place of a chain, with the name that callers use there, its
// names at the upstreams, and its definition. It is made when a name in a request is followed (follow.ts), and for each
// entry of a list that transforms are applied to (driver.ts).

import type { CalledItem, Caller, Context } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { LISTS, OWN_NAMES, UPSTREAM, type ListKind } from "../protocol/lists.ts";
import { factOf, type ToolFact } from "../tools/facts.ts";

/** An item as a server lists it. */
export type ItemDefinition = { readonly [field: string]: unknown };

/** What an item is: a tool, prompt, resource, template, or task. */
export type ItemKind = CalledItem["kind"];

/** A tool, prompt, resource, template or task at one place of a chain. */
export class Item implements CalledItem {
  readonly kind: ItemKind;
  readonly name: string;
  readonly upstream: string | undefined;
  /** The upstream, and those behind it if it is a gateway: `team`, `team.notes`. */
  readonly upstreams: readonly string[];
  /** Its names at the upstreams, the nearest first. There are several if upstreams are gateways. */
  readonly ownNames: readonly string[];
  /** These names, and some with the name of the upstream as a prefix, for rules that hide an item by any of them. */
  readonly otherNames: readonly string[];
  readonly isListed: boolean | undefined;
  readonly definition: ItemDefinition | undefined;
  /** Where a router sends requests that name it. Only that router reads it. */
  readonly route: unknown;
  /** Whether its name leads somewhere. Otherwise it is only a name that a caller has sent. */
  readonly isKnown: boolean;
  /** The item as it was before `changedBy` changed it. */
  inner: Item | undefined;
  changedBy: object | undefined;
  /** The transform that hides it, here or further inside. */
  readonly hiddenBy: object | undefined;
  /** Why its definition could not be read. */
  readonly failure: Error | undefined;
  /** Until when all this counts, on the clock of `performance`; 0 if the name may lead elsewhere the next time. */
  readonly validUntil: number;

  /** Only `kind` and `name` must be given. */
  constructor(fields: Partial<ItemFields> & Pick<ItemFields, "kind" | "name">) {
    this.kind = fields.kind;
    this.name = fields.name;
    this.upstream = fields.upstream;
    this.upstreams = fields.upstreams ?? NO_NAMES;
    this.ownNames = fields.ownNames ?? NO_NAMES;
    this.otherNames = fields.otherNames ?? NO_NAMES;
    this.definition = fields.definition;
    this.isListed = fields.isListed ?? (fields.definition === undefined ? undefined : true);
    this.route = fields.route;
    this.isKnown = fields.isKnown ?? false;
    this.inner = fields.inner;
    this.changedBy = fields.changedBy;
    this.hiddenBy = fields.hiddenBy;
    this.failure = fields.failure;
    this.validUntil = fields.validUntil ?? Infinity;
  }

  /** An item of a list. Its `_meta` says of which upstream it is, and its names there. */
  static listed(kind: ListKind, name: string, definition: ItemDefinition): Item {
    return new Item({ kind, name, definition, isKnown: true, ...originOf(definition, name) });
  }

  get ownName(): string {
    return this.ownNames[0] ?? this.name;
  }

  /** What the definition of a tool says about calls of it. */
  get facts(): ToolFact | undefined {
    const { definition } = this;
    if (this.kind !== "tools" || definition === undefined) return undefined;
    let facts = knownFacts.get(definition);
    if (facts === undefined) knownFacts.set(definition, (facts = factOf(definition, true)));
    return facts;
  }

  /** The item with another name or definition. Its definition has the new name. */
  change(changes: { readonly name?: string; readonly definition?: ItemDefinition | undefined }): Item {
    const { name = this.name, definition = this.definition } = changes;
    const isListed = definition !== undefined && name !== this.name && this.kind !== "tasks";
    const listedDefinition = isListed ? { ...definition, [LISTS[this.kind].key]: name } : definition;
    const { upstream } = this;
    // Without other names, its name so far is also the one at the upstream.
    const isOwn = this.ownNames.length === 0 && name !== this.name;
    const ownNames = isOwn ? [this.name] : this.ownNames;
    const otherNames = isOwn ? [this.name, ...this.otherNames] : this.otherNames;
    if (listedDefinition !== undefined && listedDefinition !== this.definition)
      origins.set(listedDefinition, { upstream, ownNames, otherNames });
    return changed(this, { name, definition: listedDefinition, ownNames, otherNames });
  }

  /** Says which transform has made it of another item. */
  setOrigin(transform: object, inner: Item): this {
    this.changedBy = transform;
    this.inner = inner;
    return this;
  }

  /** The item outside of a transform that hides it from callers that use this name. `failure`: why, if not by a rule. */
  hide(transform: object, name: string, failure?: Error): Item {
    const hidden = { definition: undefined, isListed: false, hiddenBy: transform };
    return changed(this, { ...hidden, name, failure, inner: this, changedBy: transform });
  }

  /** The same item, now that its definition is known. */
  withDefinition(definition: ItemDefinition, validUntil = this.validUntil): Item {
    const origin = this.isKnown ? undefined : originOf(definition, this.name);
    return changed(this, { ...origin, definition, isListed: true, isKnown: true, validUntil });
  }

  /** The same item, which is in no list. */
  withoutDefinition(validUntil = this.validUntil): Item {
    if (this.isListed === false && validUntil >= this.validUntil) return this;
    return changed(this, { definition: undefined, isListed: false, validUntil });
  }

  withFailure(failure: Error): Item {
    return changed(this, { failure });
  }
}

/** What an item is made of. */
type ItemFields = Omit<
  Item,
  "ownName" | "facts" | "change" | "setOrigin" | "hide" | "withDefinition" | "withoutDefinition" | "withFailure"
>;

function changed(item: ItemFields, changes: Partial<ItemFields>): Item {
  return new Item({ ...item, ...changes });
}

/** By definition, so that they are worked out once for each list. */
const knownFacts = new WeakMap<ItemDefinition, ToolFact>();

const NO_NAMES: readonly string[] = [];

/** Where definitions come from that a transform has made. */
const origins = new WeakMap<ItemDefinition, Partial<ItemFields>>();

/** The upstream and the names of an item there: what is known of it, or what a router has written into its `_meta`. */
function originOf(definition: ItemDefinition, name: string): Partial<ItemFields> {
  const known = origins.get(definition);
  if (known !== undefined) return known;
  const { _meta: meta } = definition;
  const { [OWN_NAMES]: listed, [UPSTREAM]: upstream } = isObject(meta) ? meta : {};
  const ownNames: readonly string[] = Array.isArray(listed)
    ? listed.filter((name) => typeof name === "string")
    : NO_NAMES;
  if (typeof upstream !== "string") return { ownNames, otherNames: ownNames };
  return { ownNames, upstream, otherNames: [...ownNames, `${upstream}_${ownNames[0] ?? name}`] };
}

/** What is known about the tool that a request calls. Throws if its list could not be read. */
export function calledTool({ item }: Context): ToolFact | undefined {
  // A tool that is hidden further inside is in no list here.
  if (!(item instanceof Item) || item.hiddenBy !== undefined) return undefined;
  if (item.failure !== undefined) throw item.failure;
  return item.facts;
}

/** What a router or a gateway knows about the names that its callers use. */
export interface ItemSource {
  /** The item that a name leads to; one that is not known if nothing has the name. Never throws or rejects. */
  find(kind: ItemKind, name: string, context: Context): Item | Promise<Item>;
  /** Another number when names may lead elsewhere. */
  version(caller: Caller): number;
  /** The URI that callers see for a URI of an upstream. Absent if it is the same. */
  readonly shownUri?: (upstream: string, uri: string, caller: Caller) => string;
  /** Reads the lists that this depends on, if they were never read. */
  readonly readUris?: (context: Context) => Promise<void>;
}
