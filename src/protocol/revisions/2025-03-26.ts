// Batches, and nothing yet of titles, structured content, links to resources and elicitation: the delta to
// the successor that brought those and took batches away. A link becomes text with its address.

import type { Delta } from "../revision.ts";
import { block, dropStructured, promptContent, sampledContent, samplingContent, toolContent } from "./content.ts";
import { isObject } from "../../core/objects.ts";
import { all, at, drop, dropAt, items, object } from "./edit.ts";
import type { Edit } from "./edit.ts";

const dropTitle: Edit = drop("title");
const dropModified: Edit = dropAt("annotations", "lastModified");

const linkToText: Edit = block(
  "resource_link",
  object((link) => ({
    type: "text",
    text: `${String(link.name)}: ${String(link.uri)}`,
    ...(link.annotations !== undefined && { annotations: link.annotations }),
    ...(link._meta !== undefined && { _meta: link._meta }),
  })),
);

const contentDown: Edit = all(linkToText, dropModified);

/** A tool's title had its only place among the annotations. */
const titleToAnnotations: Edit = object((tool) => {
  if (!Object.hasOwn(tool, "title")) return tool;
  const { title, ...rest } = tool;
  const annotations = isObject(rest.annotations) ? rest.annotations : {};
  return annotations.title === undefined ? { ...rest, annotations: { ...annotations, title } } : rest;
});

const resourceDown: Edit = all(dropTitle, dropModified);

export const delta: Delta = {
  name: "2025-03-26",
  style: "session",
  batches: true,
  lacks: { asks: ["elicitation/create"] },
  up: {},
  down: {
    request: {
      "completion/complete": all(drop("context"), at("ref", dropTitle)),
      "sampling/createMessage": samplingContent(dropModified),
    },
    result: {
      "tools/list": at("tools", items(all(titleToAnnotations, drop("outputSchema")))),
      "tools/call": all(
        toolContent(contentDown),
        dropStructured(() => true),
      ),
      "prompts/list": at("prompts", items(all(dropTitle, at("arguments", items(dropTitle))))),
      "prompts/get": promptContent(contentDown),
      "resources/list": at("resources", items(resourceDown)),
      "resources/templates/list": at("resourceTemplates", items(resourceDown)),
      "sampling/createMessage": sampledContent(dropModified),
    },
    clientCapabilities: drop("elicitation"),
    implementation: dropTitle,
  },
};
