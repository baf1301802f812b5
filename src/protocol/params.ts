// Checks the params of each method, so that handlers can rely on them. Nothing is copied, and unknown fields pass. The
// arguments of a tool are checked by its own schema. Also reads the `_meta` that every stateless request has.

import { LOG_LEVELS, type Meta, type Params } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { ExactId } from "../jsonrpc/message.ts";
import { invalidParams } from "./errors.ts";
import { META } from "./model/base.ts";

type Guard = (params: Params) => string | undefined;

const string =
  (field: string): Guard =>
  (params) =>
    typeof params[field] === "string" ? undefined : `\`${field}\` must be a string`;

const object =
  (field: string): Guard =>
  (params) =>
    isObject(params[field]) ? undefined : `\`${field}\` must be an object`;

const optionalObject =
  (field: string): Guard =>
  (params) =>
    params[field] === undefined || isObject(params[field]) ? undefined : `\`${field}\` must be an object`;

const every =
  (...guards: readonly Guard[]): Guard =>
  (params) => {
    for (const guard of guards) {
      const problem = guard(params);
      if (problem !== undefined) return problem;
    }
    return undefined;
  };

const page: Guard = ({ cursor }) =>
  cursor === undefined || typeof cursor === "string" ? undefined : "`cursor` must be a string";

const level: Guard = (params) =>
  (LOG_LEVELS as readonly unknown[]).includes(params["level"])
    ? undefined
    : `\`level\` must be one of ${LOG_LEVELS.join(", ")}`;

/** By type of reference: the field that names the prompt or resource template. */
const REFERENCE_FIELDS: ReadonlyMap<unknown, string> = new Map([
  ["ref/prompt", "name"],
  ["ref/resource", "uri"],
]);

const completion: Guard = ({ ref, argument }) => {
  if (!isObject(ref)) return "`ref` must be an object";
  const field = REFERENCE_FIELDS.get(ref["type"]);
  if (field === undefined || typeof ref[field] !== "string") {
    return "`ref` must name a prompt (`ref/prompt` with `name`) or a resource template (`ref/resource` with `uri`)";
  }
  if (!isObject(argument) || typeof argument["name"] !== "string" || typeof argument["value"] !== "string") {
    return "`argument` must have a `name` and a `value`, both strings";
  }
  return undefined;
};

const ID_LISTS = ["resourceSubscriptions", "taskIds"];

const filter: Guard = ({ notifications }) => {
  if (!isObject(notifications)) return "`notifications` must be an object";
  const wrong = ID_LISTS.find((field) => notifications[field] !== undefined && !isStringArray(notifications[field]));
  return wrong && `\`notifications.${wrong}\` must be an array of strings`;
};

function isStringArray(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
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

const GUARDS: ReadonlyMap<string, Guard> = new Map([
  ["initialize", every(string("protocolVersion"), optionalObject("capabilities"), optionalObject("clientInfo"))],
  ["tools/list", page],
  ["tools/call", every(string("name"), optionalObject("arguments"))],
  ["resources/list", page],
  ["resources/templates/list", page],
  ["resources/read", string("uri")],
  ["resources/subscribe", string("uri")],
  ["resources/unsubscribe", string("uri")],
  ["prompts/list", page],
  ["prompts/get", every(string("name"), optionalObject("arguments"))],
  ["completion/complete", every(completion, optionalObject("context"))],
  ["logging/setLevel", level],
  ["subscriptions/listen", filter],
  ["tasks/get", string("taskId")],
  ["tasks/update", every(string("taskId"), object("inputResponses"))],
  ["tasks/cancel", string("taskId")],
  ["tasks/result", string("taskId")],
  ["tasks/list", page],
  ["elicitation/create", elicitation],
  ["sampling/createMessage", sampling],
]);

function metaProblem({ _meta }: Params): string | undefined {
  if (_meta === undefined) return undefined;
  if (!isObject(_meta)) return "`_meta` must be an object";
  const token = _meta["progressToken"];
  if (token === undefined || typeof token === "string" || typeof token === "number" || token instanceof ExactId)
    return undefined;
  return "`_meta.progressToken` must be a string or a number";
}

/** Throws an `invalid_params` error that names the method and the field. */
export function checkParams(method: string, params: Params): void {
  const problem = metaProblem(params) ?? GUARDS.get(method)?.(params);
  if (problem !== undefined) throw invalidParams(`Invalid params for ${method}: ${problem}`, { method });
}

export interface Envelope {
  readonly meta: Meta;
  /** The name of the revision, known or not. */
  readonly name: string;
  readonly capabilities: Meta;
}

/** The `_meta` that every stateless request must have. Throws invalid params if something is missing. */
export function readEnvelope({ _meta: meta }: Params): Envelope {
  const name = isObject(meta) ? meta[META.revision] : undefined;
  const capabilities = isObject(meta) ? meta[META.clientCapabilities] : undefined;
  if (isObject(meta) && typeof name === "string" && isObject(capabilities)) return { meta, name, capabilities };
  const missing = [
    typeof name === "string" ? [] : META.revision,
    isObject(capabilities) ? [] : META.clientCapabilities,
  ];
  throw invalidParams(`Invalid params: \`_meta\` must have ${missing.flat().join(" and ")}`, {
    missing: missing.flat(),
  });
}
