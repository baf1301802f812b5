// The newest session-style revision. Its successor dropped the handshake and the session and made tasks an extension.
// The fields `execution`, `task` and `elicitationId`, which the successor lacks, survive a round trip as unknown fields.
// Capabilities that the target revision does not define are dropped, since declaring a capability is a promise. Only
// the `tasks` capability of servers is converted; extensions are vendors' own and pass. The behavior of tasks is
// implemented in dialogue/session.

import { isObject } from "../../core/values.ts";
import { CACHEABLE } from "../lists.ts";
import { META } from "../model/base.ts";
import type { Delta } from "../revision.ts";
import { hasTasks, TASKS_EXTENSION } from "../tasks.ts";
import { newest } from "./2026-07-28.ts";
import {
  all,
  at,
  block,
  cannotAnswer,
  drop,
  dropAt,
  dropStructured,
  items,
  object,
  rename,
  sampledContent,
  samplingContent,
  set,
  values,
  without,
  type Edit,
} from "./edits.ts";
import { errorDown, errorUp, SESSION_CODES } from "./session-errors.ts";
import { SESSION_METHODS } from "./standard-methods.ts";

const MAX_COMPLETIONS = 100;

/** The requests whose results differ from the successor's: not those to clients, and not a vendor's own. */
const SERVER_REQUESTS: ReadonlySet<string> = new Set([...newest.vocabulary.requests, ...SESSION_METHODS.requests]);

/** In this revision, the schema of a property must be an object, not `true` or `false`. */
const spellOutBooleans: Edit = at(
  "properties",
  values(<T>(schema: T): T => (schema === true ? {} : schema === false ? { not: {} } : schema) as T),
);

const dropOpenOutput: Edit = object((tool) =>
  isObject(tool.outputSchema) && tool.outputSchema.type !== "object" ? drop("outputSchema")(tool) : tool,
);

const toolDown: Edit = all(dropOpenOutput, at("inputSchema", spellOutBooleans), at("outputSchema", spellOutBooleans));
const structuredDown: Edit = dropStructured((structured) => !isObject(structured));
const sampledDown: Edit = block("tool_result", structuredDown);

const addElicitationId: Edit = object((params) =>
  params.mode === "url" && params.elicitationId === undefined
    ? { ...params, elicitationId: crypto.randomUUID() }
    : params,
);

const dropInputResponses: Edit = drop("inputResponses", "requestState");

const capCompletions: Edit = at(
  "completion",
  object((completion) =>
    Array.isArray(completion.values) && completion.values.length > MAX_COMPLETIONS
      ? { ...completion, values: completion.values.slice(0, MAX_COMPLETIONS), hasMore: true }
      : completion,
  ),
);

const taskUp: Edit = all(rename("ttl", "ttlMs"), rename("pollInterval", "pollIntervalMs"));

/** In this revision, a tool error makes the task fail. Clients fetch the result with `tasks/result`. */
const failedDown: Edit = object((task) => {
  const { status, statusMessage, result, error } = task;
  const message = status === "failed" && isObject(error) ? error.message : undefined;
  const failure = status === "completed" ? errorText(result) : message;
  if (failure === undefined) return task;
  return { ...task, status: "failed", statusMessage: statusMessage ?? failure };
});

/** The text of a tool's error; undefined if the result is not an error. */
function errorText(result: unknown): string | undefined {
  if (!isObject(result) || result.isError !== true) return undefined;
  const blocks: readonly unknown[] = Array.isArray(result.content) ? result.content : [];
  const text = blocks
    .map((block) => (isObject(block) ? block.text : undefined))
    .find((text) => typeof text === "string");
  return text ?? "The tool has failed";
}

const taskDown: Edit = all(
  failedDown,
  drop("result", "error", "inputRequests"),
  rename("ttlMs", "ttl"),
  rename("pollIntervalMs", "pollInterval"),
);

/** Declares the extension only if tool calls can be tasks, since the extension covers nothing else. */
const serverCapabilitiesUp: Edit = object((capabilities) => {
  const rest = all(drop("tasks"), dropAt("extensions", TASKS_EXTENSION))(capabilities);
  const { tasks } = capabilities;
  const requests = isObject(tasks) ? tasks.requests : undefined;
  const tools = isObject(requests) ? requests.tools : undefined;
  if (!isObject(tools) || !isObject(tools.call)) return rest;
  const { extensions } = rest;
  return { ...rest, extensions: { ...(isObject(extensions) ? extensions : undefined), [TASKS_EXTENSION]: {} } };
});

const serverCapabilitiesDown: Edit = object((capabilities) => {
  const rest = dropAt("extensions", TASKS_EXTENSION)(capabilities);
  return hasTasks(capabilities)
    ? { ...rest, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } }
    : rest;
});

const dropEnvelope: Edit = dropAt("_meta", META.revision, META.clientCapabilities, META.clientInfo, META.logLevel);
/** The fields of results that only the successor has. */
const RESULT_FIELDS = ["resultType", "ttlMs", "cacheScope"];
/** What a stateless server adds to the result of a vendor's own method. Its other fields are the vendor's. */
const VENDOR_FIELDS = ["resultType"];
const RESULT_META = [META.serverInfo];
const complete: Edit = set({ resultType: "complete" });
const completeUncached: Edit = set({ resultType: "complete", ttlMs: 0, cacheScope: "private" });

export const delta: Delta = {
  name: "2025-11-25",
  style: "session",
  adds: SESSION_METHODS,
  lacks: {
    requests: ["server/discover", "subscriptions/listen", "tasks/update"],
    serverNotifications: ["notifications/subscriptions/acknowledged", "notifications/tasks"],
  },
  codes: SESSION_CODES,
  up: {
    result: { "completion/complete": capCompletions, "tasks/get": taskUp },
    everyResult: (result, method) => {
      if (!SERVER_REQUESTS.has(method)) return result;
      return CACHEABLE.has(method) ? completeUncached(result) : complete(result);
    },
    notification: {
      // A cancellation without a request id is for a task, and the successor has no such notification for tasks.
      "notifications/cancelled": (params) => (params?.requestId === undefined ? undefined : params),
    },
    // This revision does not define the extension, so it has no meaning.
    clientCapabilities: all(drop("tasks"), dropAt("extensions", TASKS_EXTENSION), at("roots", drop("listChanged"))),
    serverCapabilities: serverCapabilitiesUp,
    error: errorUp,
  },
  down: {
    request: {
      "tools/call": dropInputResponses,
      "prompts/get": dropInputResponses,
      "resources/read": dropInputResponses,
      "elicitation/create": addElicitationId,
      "sampling/createMessage": all(at("tools", items(toolDown)), samplingContent(sampledDown)),
    },
    everyRequest: dropEnvelope,
    result: {
      "tools/list": at("tools", items(toolDown)),
      "tools/call": (result) => (result["structuredContent"] === undefined ? result : structuredDown(result)),
      "sampling/createMessage": sampledContent(sampledDown),
      "tasks/get": taskDown,
    },
    everyResult: (result, method) => {
      const isVendors = !SERVER_REQUESTS.has(method);
      const kind = result.resultType ?? "complete";
      if (isVendors && result.resultType !== "complete") return result;
      if (kind !== "complete") throw cannotAnswer(`a result of type ${JSON.stringify(kind)}`);
      return without(result, isVendors ? VENDOR_FIELDS : RESULT_FIELDS, "_meta", RESULT_META);
    },
    everyNotification: dropAt("_meta", META.subscriptionId),
    clientCapabilities: dropAt("extensions", TASKS_EXTENSION),
    serverCapabilities: serverCapabilitiesDown,
    error: errorDown,
  },
};
