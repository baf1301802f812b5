// The four kinds of things that ends list, and what is known of each by the protocol: how it is listed, by which field
// an item is told from others, and which capability stands for it.

export const KINDS = {
  tools: { method: "tools/list", field: "tools", key: "name", family: "tools" },
  prompts: { method: "prompts/list", field: "prompts", key: "name", family: "prompts" },
  resources: { method: "resources/list", field: "resources", key: "uri", family: "resources" },
  templates: {
    method: "resources/templates/list",
    field: "resourceTemplates",
    key: "uriTemplate",
    family: "resources",
  },
} as const;

export type Kind = keyof typeof KINDS;
export type Family = (typeof KINDS)[Kind]["family"];

export const FAMILIES: readonly Family[] = ["tools", "prompts", "resources"];

/** The wish to hear of changes in the lists of a family, in a listen's filter. */
export function flagOf(family: Family): `${Family}ListChanged` {
  return `${family}ListChanged`;
}

/** How a change in them is told. */
export function changeOf(family: Family): `notifications/${Family}/list_changed` {
  return `notifications/${family}/list_changed`;
}
