// The newest session-style revision. Its successor dropped the handshake and the session and made tasks an extension.
// The fields `execution`, `task` and `elicitationId`, which the successor lacks, survive a round trip as unknown fields.
// Capabilities that the target revision does not define are dropped, since declaring a capability is a promise. Only
// the `tasks` capability of servers is converted; extensions are vendors' own and pass. The behavior of tasks is
// implemented in dialogue/session.

import { isObject } from "../../core/values.ts";
import type { ErrorBody } from "../../jsonrpc/message.ts";
import { McpError, type ErrorKind } from "../errors.ts";
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
  dropBoth,
  dropStructured,
  items,
  object,
  rename,
  sampledContent,
  samplingContent,
  set,
  values,
  type Edit,
} from "./edits.ts";
import { SESSION_METHODS } from "./standard-methods.ts";

// Converts errors between the session-style revisions and their successor. The successor reports a missing resource as
// invalid params, and reserves the codes -32020 to -32099. `data.kind` names the failure on both sides.

type FailedRequest = { readonly method: string; readonly params: { readonly [key: string]: unknown } };

const INVALID_REQUEST = -32600;
const METHOD_NOT_FOUND = -32601;
const INVALID_PARAMS = -32602;
const INTERNAL_ERROR = -32603;

type SessionKind =
  | "resource_not_found"
  | "url_elicitation_required"
  | "header_mismatch"
  | "missing_capability"
  | "unsupported_revision";

const SESSION_CODES: Readonly<Record<SessionKind, number>> = {
  resource_not_found: -32002,
  url_elicitation_required: -32042,
  header_mismatch: INVALID_REQUEST,
  missing_capability: INTERNAL_ERROR,
  unsupported_revision: INVALID_PARAMS,
};

/** Codes that only the successor defines. */
const SUCCESSOR_CODES: ReadonlyMap<number, SessionKind> = new Map([
  [-32020, "header_mismatch"],
  [-32021, "missing_capability"],
  [-32022, "unsupported_revision"],
] as const);

/** Whether the successor reserves the code. */
const isReserved = (code: number): boolean =>
  (code <= -32020 && code >= -32099) || code === SESSION_CODES.resource_not_found;

/** Adds the kind to an error's data; data that is not an object moves to `details`. */
function withKind(kind: ErrorKind, data: unknown, more?: Readonly<Record<string, unknown>>): Record<string, unknown> {
  if (isObject(data)) return { kind, ...more, ...data };
  return data === undefined ? { kind, ...more } : { kind, ...more, details: data };
}

function errorUp(error: ErrorBody, { method, params }: FailedRequest): ErrorBody {
  const { code, message, data } = error;
  if (code === SESSION_CODES.resource_not_found && method === "resources/read") {
    return { code: INVALID_PARAMS, message, data: withKind("resource_not_found", data, { uri: params.uri }) };
  }
  // Some older servers answer METHOD_NOT_FOUND for an unknown tool.
  if (code === METHOD_NOT_FOUND && method === "tools/call") {
    return { code: INVALID_PARAMS, message, data: { kind: "tool_not_found", upstream: error } };
  }
  if (code === SESSION_CODES.url_elicitation_required && isObject(data) && Array.isArray(data.elicitations)) {
    return { code: INTERNAL_ERROR, message, data: withKind("url_elicitation_required", data) };
  }
  // Wrapped, because the caller would take a reserved code for one that the specification defines.
  return isReserved(code) ? McpError.of("internal_error", message, { upstream: error }).toBody() : error;
}

function errorDown(error: ErrorBody, { method, params }: FailedRequest): ErrorBody {
  const { code, message, data } = error;
  const kind = SUCCESSOR_CODES.get(code);
  if (kind) return { code: SESSION_CODES[kind], message, data: withKind(kind, data) };
  if (!isObject(data)) return error;
  if (code === INVALID_PARAMS && isMissingResource(data, method, params)) {
    return { ...error, code: SESSION_CODES.resource_not_found };
  }
  if (code === INVALID_PARAMS && data.kind === "tool_not_found" && isMissingMethod(data.upstream, message)) {
    return data.upstream;
  }
  if (code === INTERNAL_ERROR) {
    if (data.kind === "url_elicitation_required") return { ...error, code: SESSION_CODES.url_elicitation_required };
    if (isWrapped(data, message)) return data.upstream;
  }
  return error;
}

function isMissingMethod(upstream: unknown, message: string): upstream is ErrorBody {
  return isObject(upstream) && upstream.code === METHOD_NOT_FOUND && upstream.message === message;
}

/** Whether `errorUp` created this error. A server's own error with a field `upstream` is not unwrapped. */
function isWrapped(
  data: Readonly<Record<string, unknown>>,
  message: string,
): data is { readonly kind: string; readonly upstream: ErrorBody } {
  const { kind, upstream, ...rest } = data;
  if (kind !== "internal_error" || !isObject(upstream) || Object.keys(rest).length > 0) return false;
  return upstream.message === message && typeof upstream.code === "number" && isReserved(upstream.code);
}

/** An error without a kind reports a missing resource if its data has the requested URI. */
function isMissingResource(
  data: Readonly<Record<string, unknown>>,
  method: string,
  params: FailedRequest["params"],
): boolean {
  if (data.kind !== undefined) return data.kind === "resource_not_found";
  return method === "resources/read" && data.uri !== undefined && data.uri === params.uri;
}

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
  const text = blocks.map((one) => (isObject(one) ? one.text : undefined)).find((one) => typeof one === "string");
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
const dropResultFields: Edit = dropBoth(["resultType", "ttlMs", "cacheScope"], "_meta", [META.serverInfo]);
/** What a stateless server adds to the result of a vendor's own method. Its other fields are the vendor's. */
const dropMark: Edit = dropBoth(["resultType"], "_meta", [META.serverInfo]);
const complete: Edit = set({ resultType: "complete" });
const completeUncached: Edit = set({ resultType: "complete", ttlMs: 0, cacheScope: "private" });

export const delta: Delta = {
  name: "2025-11-25",
  style: "session",
  batches: false,
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
      "tools/call": structuredDown,
      "sampling/createMessage": sampledContent(sampledDown),
      "tasks/get": taskDown,
    },
    everyResult: (result, method) => {
      if (!SERVER_REQUESTS.has(method)) return result.resultType === "complete" ? dropMark(result) : result;
      const kind = result.resultType ?? "complete";
      if (kind !== "complete") throw cannotAnswer(`a result of type ${JSON.stringify(kind)}`);
      return dropResultFields(result);
    },
    everyNotification: dropAt("_meta", META.subscriptionId),
    clientCapabilities: dropAt("extensions", TASKS_EXTENSION),
    serverCapabilities: serverCapabilitiesDown,
    error: errorDown,
  },
};
