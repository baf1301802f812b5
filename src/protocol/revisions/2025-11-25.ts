// The newest session-style revision, as a delta to its successor, which gave up the handshake and the session, and
// made tasks an extension of another form. Fields that the successor has no name for (`execution`, `task`) go up as
// the unknown fields that they are there and so come back, and `elicitationId`, which it took away, under a symbol;
// capabilities do not, because declaring one is a promise, but for what the extension says of tasks. What they are here is more than shapes can
// say: dialogue/tasks and dialogue/session-task-back know.

import { newest } from "./2026-07-28.ts";
import { CACHEABLE } from "../cacheable.ts";
import { META } from "../model/meta.ts";
import type { Delta } from "../revision.ts";
import { cannotAnswer, dropStructured, samplingContent, sampledContent, block } from "./content.ts";
import { isObject } from "../../core/objects.ts";
import { TELLS_ROOTS } from "../roots.ts";
import { hasTasks, TASKS } from "../tasks.ts";
import { ELICITATION_ID, type Named } from "../visits.ts";
import { all, at, drop, dropAt, items, object, rename, set, sift, values } from "./edit.ts";
import type { Edit } from "./edit.ts";
import { errorDown, errorUp, SESSION_CODES } from "./session-errors.ts";

/** Requests on tasks that only this revision has. An end could make them too, of its caller. */
const OWN_TASKS = ["tasks/result", "tasks/list"];
const MOST_COMPLETIONS = 100;

const ASKS = new Set(newest.vocabulary.asks);

/** `true` and `false` are schemas too, but a property's schema had to be an object. */
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

/** The successor knows no such name; whoever comes from here finds it again. */
const hideName: Edit = object((params) => {
  if (params.mode !== "url" || params.elicitationId === undefined) return params;
  const { elicitationId, ...rest } = params;
  return { ...rest, [ELICITATION_ID]: elicitationId };
});

const nameElicitation: Edit = object((params: { readonly [key: string]: unknown } & Named) => {
  if (params.mode !== "url" || params.elicitationId !== undefined) return params;
  const { [ELICITATION_ID]: id = crypto.randomUUID(), ...rest } = params;
  return { ...rest, elicitationId: id };
});

const dropAnswers: Edit = drop("inputResponses", "requestState");

const capCompletions: Edit = at(
  "completion",
  object((completion) =>
    Array.isArray(completion.values) && completion.values.length > MOST_COMPLETIONS
      ? { ...completion, values: completion.values.slice(0, MOST_COMPLETIONS), hasMore: true }
      : completion,
  ),
);

const taskUp: Edit = all(rename("ttl", "ttlMs"), rename("pollInterval", "pollIntervalMs"));

/** A tool that failed was a task that failed; what came of it was asked for by another request. */
const failedDown: Edit = object((task) => {
  const { status, statusMessage, result, error } = task;
  const message = status === "failed" && isObject(error) ? error.message : undefined;
  const failure = status === "completed" ? errorText(result) : message;
  if (failure === undefined) return task;
  return { ...task, status: "failed", statusMessage: statusMessage ?? failure };
});

/** What a tool's result says went wrong; undefined: nothing. */
function errorText(result: unknown): string | undefined {
  if (!isObject(result) || result.isError !== true) return undefined;
  const blocks: readonly unknown[] = Array.isArray(result.content) ? result.content : [];
  const text = blocks.map((one) => (isObject(one) ? one.text : undefined)).find((one) => typeof one === "string");
  return text ?? "The tool has failed";
}

const taskDown: Edit = all(
  failedDown,
  drop("result", "error", "inputRequests"),
  rename("ttlMs", "ttl"),
  rename("pollIntervalMs", "pollInterval"),
);

/** That calls of tools can be tasks is what the extension says, and all that it says. */
const offeredUp: Edit = object((capabilities) => {
  const rest = all(drop("tasks"), dropAt("extensions", TASKS))(capabilities);
  const { tasks } = capabilities;
  const requests = isObject(tasks) ? tasks.requests : undefined;
  const tools = isObject(requests) ? requests.tools : undefined;
  if (!isObject(tools) || !isObject(tools.call)) return rest;
  const { extensions } = rest;
  return { ...rest, extensions: { ...(isObject(extensions) ? extensions : undefined), [TASKS]: {} } };
});

const offeredDown: Edit = object((capabilities) => {
  const rest = drop("extensions")(capabilities);
  return hasTasks(capabilities)
    ? { ...rest, tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } }
    : rest;
});

/** The successor has no such notification; a session behind it finds the promise again. */
const hideTelling: Edit = object((roots) => {
  if (!Object.hasOwn(roots, "listChanged")) return roots;
  const { listChanged, ...rest } = roots;
  return listChanged === true ? { ...rest, [TELLS_ROOTS]: true } : rest;
});

const showTelling: Edit = object((roots: { readonly [TELLS_ROOTS]?: unknown }) => {
  const { [TELLS_ROOTS]: tells, ...rest } = roots;
  return tells === true ? { ...rest, listChanged: true } : roots;
});

const dropEnvelope: Edit = dropAt("_meta", META.revision, META.clientCapabilities, META.clientInfo, META.logLevel);
const dropResultKind: Edit = sift(["resultType", "ttlMs", "cacheScope"], "_meta", [META.serverInfo]);
const complete: Edit = set({ resultType: "complete" });
const completeUncached: Edit = set({ resultType: "complete", ttlMs: 0, cacheScope: "private" });

export const delta: Delta = {
  name: "2025-11-25",
  style: "session",
  batches: false,
  adds: {
    requests: ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", ...OWN_TASKS],
    asks: ["ping", "tasks/get", "tasks/cancel", ...OWN_TASKS],
    callerNotifications: [
      "notifications/initialized",
      "notifications/progress",
      "notifications/roots/list_changed",
      "notifications/tasks/status",
    ],
    endNotifications: ["notifications/elicitation/complete", "notifications/tasks/status"],
  },
  lacks: {
    requests: ["server/discover", "subscriptions/listen", "tasks/update"],
    endNotifications: ["notifications/subscriptions/acknowledged", "notifications/tasks"],
  },
  codes: SESSION_CODES,
  up: {
    request: { "elicitation/create": hideName },
    result: { "completion/complete": capCompletions, "tasks/get": taskUp },
    everyResult: (result, method) => {
      if (ASKS.has(method)) return result;
      return CACHEABLE.has(method) ? completeUncached(result) : complete(result);
    },
    notification: {
      // Its id could be left out for tasks, which the successor does not have.
      "notifications/cancelled": (params) => (params?.requestId === undefined ? undefined : params),
    },
    // The extension is not defined here: whoever names it says nothing.
    clientCapabilities: all(drop("tasks"), dropAt("extensions", TASKS), at("roots", hideTelling)),
    serverCapabilities: offeredUp,
    error: errorUp,
  },
  down: {
    request: {
      "tools/call": dropAnswers,
      "prompts/get": dropAnswers,
      "resources/read": dropAnswers,
      "elicitation/create": nameElicitation,
      "sampling/createMessage": all(at("tools", items(toolDown)), samplingContent(sampledDown)),
    },
    everyRequest: dropEnvelope,
    result: {
      "tools/list": at("tools", items(toolDown)),
      "tools/call": structuredDown,
      "sampling/createMessage": sampledContent(sampledDown),
      "tasks/get": taskDown,
    },
    everyResult: (result, method) => {
      if (ASKS.has(method)) return result;
      const kind = result.resultType ?? "complete";
      if (kind !== "complete") throw cannotAnswer(`a result of type ${JSON.stringify(kind)}`);
      return dropResultKind(result);
    },
    everyNotification: dropAt("_meta", META.subscriptionId),
    clientCapabilities: all(drop("extensions"), at("roots", showTelling)),
    serverCapabilities: offeredDown,
    error: errorDown,
  },
};
