// Hides tools, prompts and resources. A rule that hides names counts for all names of an item, also for those at the
// upstreams of a gateway; in doubt, the item is hidden.

import { expecting, object, ofTools, strings, type OptionsOf } from "../../core/fields.ts";
import type { Handler } from "../../core/handler.ts";
import { matchesGlob } from "../../core/text.ts";
import { LIST_CAPABILITIES, type ListCapability } from "../../protocol/lists.ts";
import { define, type DefinedMiddleware, type DefinitionPlace } from "../define.ts";
import { transformed } from "../driver.ts";
import { kindsOf, type Transform } from "../layer.ts";
import { capabilityOf } from "../named-items.ts";
import { nameMatcher, type NameMatcher } from "./name-rules.ts";

const EXPECTED = 'an array of names, such as ["search_*"]';

export const RULE = {
  include: expecting(EXPECTED, strings("The names to show; `*` matches any characters. Default: all.")),
  exclude: expecting(EXPECTED, strings("The names to hide, even if `include` has them; `*` matches any characters.")),
};

/** Which names to show, or to hide. */
export type FilterRule = OptionsOf<typeof RULE>;

const OPTIONS = {
  tools: ofTools(object("Tools by their names.", RULE)),
  prompts: object("Prompts by their names.", RULE),
  resources: object("Resources by their URI, templates by their URI template.", RULE),
};

/** Options of `filter()`: a rule for each kind of item. A kind without a rule is shown whole. */
export type FilterOptions = OptionsOf<typeof OPTIONS>;

/**
 * Hides tools, prompts and resources from callers. A call of a hidden one fails as if it did not exist.
 *
 * @example
 * filter({ tools: { exclude: ["delete*"] } })
 */
export const filter: DefinedMiddleware<[options: FilterOptions]> = define({
  name: "filter",
  summary: "Hides tools, prompts and resources. A call of a hidden one fails as if it did not exist.",
  options: OPTIONS,
  transform: createFilter,
});

function createFilter(options: FilterOptions, { error }: DefinitionPlace): Transform {
  const concerned = LIST_CAPABILITIES.filter((capability) => options[capability] !== undefined);
  if (concerned.length === 0) throw error("", "must have a rule for `tools`, `prompts` or `resources`");
  const matcher = (capability: ListCapability): NameMatcher => {
    const { include, exclude = [] } = options[capability] ?? {};
    return nameMatcher(capability, include, exclude);
  };
  // Requests for prompts and resources pass without a rule too, but errors do not tell names that might be hidden.
  const capabilities = LIST_CAPABILITIES.filter((capability) => capability !== "tools" || options.tools !== undefined);
  return hiding(capabilities, {
    tools: matcher("tools"),
    prompts: matcher("prompts"),
    resources: matcher("resources"),
  });
}

function hiding(
  capabilities: readonly ListCapability[],
  matchers: Readonly<Record<ListCapability, NameMatcher>>,
): Transform {
  return {
    kinds: kindsOf(capabilities),
    hides: true,
    item: (item) => (matchers[capabilityOf(item.kind)](item.name, item.otherNames) ? item : undefined),
  };
}

/**
 * A handler with a filter for one upstream of a gateway. Its rules may name a tool or prompt as the upstream does, or
 * with the prefix of the upstream, whether or not it is shown with it.
 */
export function filterUpstream(options: FilterOptions, handler: Handler, labelled: (name: string) => string): Handler {
  const matcher = (capability: ListCapability): NameMatcher => {
    const { include, exclude = [] } = options[capability] ?? {};
    if (capability === "resources") return nameMatcher(capability, include, exclude);
    const isOnly = (name: string): boolean =>
      include === undefined || [name, labelled(name)].some((form) => include.some((glob) => matchesGlob(glob, form)));
    const isFree = nameMatcher(capability, undefined, exclude);
    return (name) => isOnly(name) && isFree(name, [labelled(name)]);
  };
  const matchers = { tools: matcher("tools"), prompts: matcher("prompts"), resources: matcher("resources") };
  return transformed(hiding(LIST_CAPABILITIES, matchers), handler);
}
