// Checks the params of each method, so that handlers can rely on them. Nothing is copied, and unknown fields pass. The
// arguments of a tool are checked by its own schema. Strings that are looked up, parsed or matched have a limit. Also
// reads the `_meta` that every stateless request has.

import { isLogLevel, LOG_LEVELS, type Meta, type Params } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { isId } from "../jsonrpc/message.ts";
import { invalidParams } from "./errors.ts";
import { MAX_CURSOR_LENGTH } from "./pages.ts";
import { META } from "./model/base.ts";
import { MAX_URI_LENGTH } from "./uri-template.ts";

/** Of the name of a tool, a prompt or an argument. */
const MAX_NAME_LENGTH = 4_096;
/** How many resources and tasks one subscription may name, and how many characters all of them may have. */
const MAX_SUBSCRIBED = 10_000;
const MAX_SUBSCRIBED_LENGTH = 1_048_576;

interface Field {
  readonly name: string;
  readonly type: "string" | "object";
  readonly isOptional: boolean;
  readonly max: number;
}

type Guard = (params: Params) => string | undefined;

function string(name: string, max: number = Infinity, isOptional = false): Field {
  return { name, type: "string", isOptional, max };
}

function object(name: string, isOptional = false): Field {
  return { name, type: "object", isOptional, max: Infinity };
}

function fieldProblem({ name, type, isOptional, max }: Field, value: unknown): string | undefined {
  if (value === undefined && isOptional) return undefined;
  if (type === "object") return isObject(value) ? undefined : `\`${name}\` must be an object`;
  if (typeof value !== "string") return `\`${name}\` must be a string`;
  return value.length > max ? `\`${name}\` must have at most ${max} characters` : undefined;
}

const NAME = string("name", MAX_NAME_LENGTH);
const URI = string("uri", MAX_URI_LENGTH);
const TASK_ID = string("taskId", MAX_URI_LENGTH);
const CURSOR = string("cursor", MAX_CURSOR_LENGTH, true);
const ARGUMENTS = object("arguments", true);

const level: Guard = (params) =>
  isLogLevel(params["level"]) ? undefined : `\`level\` must be one of ${LOG_LEVELS.join(", ")}`;

/** By type of reference: the field that names the prompt or resource template, and its maximum length. */
const REFERENCE_FIELDS: ReadonlyMap<unknown, readonly [field: string, max: number]> = new Map([
  ["ref/prompt", ["name", MAX_NAME_LENGTH]],
  ["ref/resource", ["uri", MAX_URI_LENGTH]],
]);

const completion: Guard = ({ ref, argument }) => {
  if (!isObject(ref)) return "`ref` must be an object";
  const [field = "", max = 0] = REFERENCE_FIELDS.get(ref["type"]) ?? [];
  if (typeof ref[field] !== "string") {
    return "`ref` must name a prompt (`ref/prompt` with `name`) or a resource template (`ref/resource` with `uri`)";
  }
  if (!isObject(argument) || typeof argument["name"] !== "string" || typeof argument["value"] !== "string") {
    return "`argument` must have a `name` and a `value`, both strings";
  }
  return (
    fieldProblem(string(`ref.${field}`, max), ref[field]) ??
    fieldProblem(string("argument.name", MAX_NAME_LENGTH), argument["name"])
  );
};

const filter: Guard = ({ notifications }) => {
  if (!isObject(notifications)) return "`notifications` must be an object";
  for (const field of ["resourceSubscriptions", "taskIds"]) {
    const problem = notifications[field] === undefined ? undefined : idsProblem(notifications[field]);
    if (problem !== undefined) return `\`notifications.${field}\` ${problem}`;
  }
  return undefined;
};

function idsProblem(ids: unknown): string | undefined {
  if (!Array.isArray(ids) || !ids.every((id): id is string => typeof id === "string")) {
    return "must be an array of strings";
  }
  if (ids.length > MAX_SUBSCRIBED) return `must have at most ${MAX_SUBSCRIBED} items`;
  if (ids.some(({ length }) => length > MAX_URI_LENGTH))
    return `must have items of at most ${MAX_URI_LENGTH} characters`;
  const total = ids.reduce((sum, { length }) => sum + length, 0);
  return total > MAX_SUBSCRIBED_LENGTH ? `must have at most ${MAX_SUBSCRIBED_LENGTH} characters in all` : undefined;
}

/** `mode` is optional for forms, since they are older than the field. */
const elicitation: Guard = ({ message, mode, requestedSchema, url }) => {
  if (typeof message !== "string") return "`message` must be a string";
  if (mode === "url") return typeof url === "string" ? undefined : "`url` must be a string";
  if (mode !== undefined && mode !== "form") return "`mode` must be form or url";
  return isObject(requestedSchema) ? undefined : "`requestedSchema` must be an object";
};

const sampling: Guard = ({ messages, maxTokens }) => {
  if (!Array.isArray(messages) || !messages.every(isObject)) return "`messages` must be an array of messages";
  return typeof maxTokens === "number" ? undefined : "`maxTokens` must be a number";
};

const RULES: ReadonlyMap<string, readonly (Field | Guard)[]> = new Map<string, readonly (Field | Guard)[]>([
  ["initialize", [string("protocolVersion"), object("capabilities", true), object("clientInfo", true)]],
  ["tools/list", [CURSOR]],
  ["tools/call", [NAME, ARGUMENTS]],
  ["resources/list", [CURSOR]],
  ["resources/templates/list", [CURSOR]],
  ["resources/read", [URI]],
  ["resources/subscribe", [URI]],
  ["resources/unsubscribe", [URI]],
  ["prompts/list", [CURSOR]],
  ["prompts/get", [NAME, ARGUMENTS]],
  ["completion/complete", [completion, object("context", true)]],
  ["logging/setLevel", [level]],
  ["subscriptions/listen", [filter]],
  ["tasks/get", [TASK_ID]],
  ["tasks/update", [TASK_ID, object("inputResponses")]],
  ["tasks/cancel", [TASK_ID]],
  ["tasks/result", [TASK_ID]],
  ["tasks/list", [CURSOR]],
  ["elicitation/create", [elicitation]],
  ["sampling/createMessage", [sampling]],
]);
const NO_RULES: readonly Guard[] = [];

/** Throws an `invalid_params` error that names the method and the field. */
export function checkParams(method: string, params: Params): void {
  const { _meta: meta } = params;
  const isPlain = meta === undefined || (isObject(meta) && meta[META.progressToken] === undefined);
  let problem = isPlain ? undefined : metaProblem(meta);
  for (const rule of RULES.get(method) ?? NO_RULES) {
    problem ??= typeof rule === "function" ? rule(params) : fieldProblem(rule, params[rule.name]);
  }
  if (problem !== undefined) throw invalidParams(`Invalid params for ${method}: ${problem}`, { method });
}

function metaProblem(meta: unknown): string | undefined {
  if (!isObject(meta)) return "`_meta` must be an object";
  const token = meta[META.progressToken];
  return token === undefined || isId(token) ? undefined : "`_meta.progressToken` must be a string or a number";
}

export interface Envelope {
  readonly meta: Meta;
  readonly name: string;
  readonly capabilities: Meta;
}

/** The `_meta` that every stateless request must have. Throws invalid params if something is missing. */
export function readEnvelope({ _meta: meta }: Params): Envelope {
  const name = isObject(meta) ? meta[META.revision] : undefined;
  const capabilities = isObject(meta) ? meta[META.clientCapabilities] : undefined;
  if (isObject(meta) && typeof name === "string" && isObject(capabilities)) return { meta, name, capabilities };
  const missing = [
    ...(typeof name === "string" ? [] : [META.revision]),
    ...(isObject(capabilities) ? [] : [META.clientCapabilities]),
  ];
  throw invalidParams(`Invalid params: \`_meta\` must have ${missing.join(" and ")}`, { missing });
}
