// This revision has forms, structured content and resource links, but no icons, URL elicitation, tools in sampling or
// tasks. A form or sampling message that it cannot express is refused, never changed into one with another meaning.

import type { McpError } from "../errors.ts";
import type { Delta } from "../revision.ts";
import type { ErrorBody } from "../../jsonrpc/message.ts";
import {
  block,
  cannotAnswer,
  cannotAsk,
  promptContent,
  toolContent,
  all,
  at,
  drop,
  items,
  object,
  set,
  values,
  type Edit,
} from "./edits.ts";
import { isObject } from "../../core/values.ts";

const TASKS = ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel"];
const TOOLS = { sampling: { tools: {} } };

const dropIcons: Edit = drop("icons");
const linkDown: Edit = block("resource_link", dropIcons);

/** Lowers one field of a form. In this revision, only booleans can have a default. */
const fieldDown: Edit = object((field) => {
  if (field.type === "array") throw cannotAsk("a form field with several values", { elicitation: { form: {} } });
  if (field.type === "boolean") return field;
  return drop("default")(Array.isArray(field.oneOf) ? namedChoices(field, field.oneOf) : field);
});

function namedChoices(field: Readonly<Record<string, unknown>>, choices: readonly unknown[]): object {
  const { oneOf: _, ...rest } = field;
  const named = choices.filter(isObject);
  return { ...rest, enum: named.map((choice) => choice.const), enumNames: named.map((choice) => choice.title) };
}

const formDown: Edit = object((params) => {
  if (params.mode === "url") throw cannotAsk("a request to open a URL", { elicitation: { url: {} } });
  return all(
    drop("mode", "task"),
    at("requestedSchema", all(drop("$schema"), at("properties", values(fieldDown)))),
  )(params);
});

/** `refuse` creates the error if the content is not one block of a type that this revision has. */
function plainContent(refuse: (what: string) => McpError): Edit {
  return <T>(content: T): T => {
    if (Array.isArray(content) && content.length !== 1) throw refuse("a message with several content blocks");
    const only: unknown = Array.isArray(content) ? content[0] : content;
    if (isObject(only) && (only.type === "tool_use" || only.type === "tool_result")) {
      throw refuse("the use of tools in sampling");
    }
    return only as T;
  };
}

const samplingDown: Edit = object((params) => {
  if (Array.isArray(params.tools) && params.tools.length > 0) throw cannotAsk("sampling with tools", TOOLS);
  const plain = plainContent((what) => cannotAsk(what, TOOLS));
  return all(drop("tools", "toolChoice", "task"), at("messages", items(at("content", plain))))(params);
});

const formResultDown: Edit = at(
  "content",
  values(<T>(value: T): T => {
    if (Array.isArray(value)) throw cannotAnswer("a form field with several values");
    return value;
  }),
);

const clientDown: Edit = all(
  drop("tasks"),
  at("sampling", drop("tools", "context")),
  // In this revision `elicitation` means forms, so a client that supports only URLs must not declare it.
  object((capabilities) => {
    const declared = capabilities.elicitation;
    const onlyUrl = isObject(declared) && declared.url !== undefined && declared.form === undefined;
    return onlyUrl ? drop("elicitation")(capabilities) : at("elicitation", drop("form", "url"))(capabilities);
  }),
);

/** The code -32042 is about URLs only if the data has `elicitations`. Otherwise the server gave it its own meaning. */
function errorDown(error: ErrorBody): ErrorBody {
  const isUrl = error.code === -32042 && isObject(error.data) && Array.isArray(error.data.elicitations);
  return isUrl ? { ...error, code: -32603 } : error;
}

export const delta: Delta = {
  name: "2025-06-18",
  style: "session",
  argumentErrors: true,
  unprimedStreams: true,
  lacks: {
    requests: TASKS,
    clientRequests: TASKS,
    clientNotifications: ["notifications/tasks/status"],
    serverNotifications: ["notifications/tasks/status", "notifications/elicitation/complete"],
  },
  codes: { url_elicitation_required: -32603 },
  up: {
    request: { "elicitation/create": set({ mode: "form" }) },
    // This revision does not define the capability, so it has no meaning.
    serverCapabilities: drop("tasks"),
  },
  down: {
    request: {
      "tools/call": drop("task"),
      "elicitation/create": formDown,
      "sampling/createMessage": samplingDown,
    },
    result: {
      "tools/list": at("tools", items(drop("icons", "execution"))),
      "tools/call": toolContent(linkDown),
      "prompts/list": at("prompts", items(dropIcons)),
      "prompts/get": promptContent(linkDown),
      "resources/list": at("resources", items(dropIcons)),
      "resources/templates/list": at("resourceTemplates", items(dropIcons)),
      "sampling/createMessage": at("content", plainContent(cannotAnswer)),
      "elicitation/create": formResultDown,
    },
    notification: {
      // A cancellation without a request id is for a task, and this revision has no tasks.
      "notifications/cancelled": (params) => (params?.requestId === undefined ? undefined : params),
    },
    clientCapabilities: clientDown,
    serverCapabilities: drop("tasks"),
    implementation: drop("icons", "description", "websiteUrl"),
    error: errorDown,
  },
};
