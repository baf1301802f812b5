// The newest session-style revision, as a delta to its successor, which gave up the handshake, the session
// and tasks. Fields that the successor has no name for (`execution`, `task`, `elicitationId`) go up as the
// unknown fields that they are there and so come back; capabilities do not, because declaring one is a promise.

import { newest } from "./2026-07-28.ts";
import { CACHEABLE } from "../cacheable.ts";
import { META } from "../model/meta.ts";
import type { Delta } from "../revision.ts";
import { cannotAnswer, dropStructured, samplingContent, sampledContent, block } from "./content.ts";
import { isObject } from "../check.ts";
import { all, at, drop, dropAt, items, object, set, sift, values } from "./edit.ts";
import type { Edit } from "./edit.ts";
import { errorDown, errorUp, SESSION_CODES } from "./session-errors.ts";

const TASKS = ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel"];
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

const nameElicitation: Edit = object((params) =>
  params.mode === "url" && params.elicitationId === undefined
    ? { ...params, elicitationId: crypto.randomUUID() }
    : params,
);

const dropAnswers: Edit = drop("inputResponses", "requestState");

const capCompletions: Edit = at(
  "completion",
  object((completion) =>
    Array.isArray(completion.values) && completion.values.length > MOST_COMPLETIONS
      ? { ...completion, values: completion.values.slice(0, MOST_COMPLETIONS), hasMore: true }
      : completion,
  ),
);

const dropEnvelope: Edit = dropAt("_meta", META.revision, META.clientCapabilities, META.clientInfo, META.logLevel);
const dropResultKind: Edit = sift(["resultType", "ttlMs", "cacheScope"], "_meta", [META.serverInfo]);
const complete: Edit = set({ resultType: "complete" });
const completeUncached: Edit = set({ resultType: "complete", ttlMs: 0, cacheScope: "private" });

export const delta: Delta = {
  name: "2025-11-25",
  style: "session",
  batches: false,
  adds: {
    requests: ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", ...TASKS],
    asks: ["ping", ...TASKS],
    callerNotifications: [
      "notifications/initialized",
      "notifications/progress",
      "notifications/roots/list_changed",
      "notifications/tasks/status",
    ],
    endNotifications: ["notifications/elicitation/complete", "notifications/tasks/status"],
  },
  lacks: {
    requests: ["server/discover", "subscriptions/listen"],
    endNotifications: ["notifications/subscriptions/acknowledged"],
  },
  codes: SESSION_CODES,
  up: {
    result: { "completion/complete": capCompletions },
    everyResult: (result, method) => {
      if (ASKS.has(method)) return result;
      return CACHEABLE.has(method) ? completeUncached(result) : complete(result);
    },
    notification: {
      // Its id could be left out for tasks, which the successor does not have.
      "notifications/cancelled": (params) => (params?.requestId === undefined ? undefined : params),
    },
    clientCapabilities: all(drop("tasks"), at("roots", drop("listChanged"))),
    serverCapabilities: drop("tasks"),
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
    },
    everyResult: (result, method) => {
      if (ASKS.has(method)) return result;
      const kind = result.resultType ?? "complete";
      if (kind !== "complete") throw cannotAnswer(`a result of type ${JSON.stringify(kind)}`);
      return dropResultKind(result);
    },
    everyNotification: dropAt("_meta", META.subscriptionId),
    clientCapabilities: drop("extensions"),
    serverCapabilities: drop("extensions"),
    error: errorDown,
  },
};
