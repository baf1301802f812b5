// This revision has batches, but no titles, structured content, resource links or elicitation. Its successor dropped
// batches and added the rest. A resource link becomes text with its URI.

import type { Delta } from "../revision.ts";
import {
  block,
  dropStructured,
  promptContent,
  sampledContent,
  samplingContent,
  toolContent,
  all,
  at,
  drop,
  dropAt,
  items,
  object,
  type Edit,
} from "./edits.ts";
import { isObject } from "../../core/values.ts";

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

/** In this revision, a tool has a title only in its annotations. */
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
  lacks: { clientRequests: ["elicitation/create"] },
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
