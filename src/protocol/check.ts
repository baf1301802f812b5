// Hand-written guards for the params of each method: what every handler may rely on. They look, they do
// not copy; fields that nobody here knows pass. A tool's own arguments are checked by the tool's schema.

import { LOG_LEVELS, type Params } from "../core/handler.ts";
import { isObject } from "../core/objects.ts";
import { Exact } from "../jsonrpc/message.ts";
import { invalidParams } from "./errors.ts";

type Guard = (params: Params) => string | undefined;

const text =
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

const all =
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

/** What can be completed, and the field that says which one. */
const COMPLETED: ReadonlyMap<unknown, string> = new Map([
  ["ref/prompt", "name"],
  ["ref/resource", "uri"],
]);

const completion: Guard = ({ ref, argument }) => {
  if (!isObject(ref)) return "`ref` must be an object";
  const field = COMPLETED.get(ref["type"]);
  if (field === undefined || typeof ref[field] !== "string") {
    return "`ref` must name a prompt (`ref/prompt` with `name`) or a resource template (`ref/resource` with `uri`)";
  }
  if (!isObject(argument) || typeof argument["name"] !== "string" || typeof argument["value"] !== "string") {
    return "`argument` must have a `name` and a `value`, both strings";
  }
  return undefined;
};

const NAMED = ["resourceSubscriptions", "taskIds"];

const filter: Guard = ({ notifications }) => {
  if (!isObject(notifications)) return "`notifications` must be an object";
  const wrong = NAMED.find((field) => notifications[field] !== undefined && !isTexts(notifications[field]));
  return wrong && `\`notifications.${wrong}\` must be an array of strings`;
};

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

/** Questions of an end. The mode is older than its name: without one, it is a form. */
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
  ["initialize", all(text("protocolVersion"), optionalObject("capabilities"), optionalObject("clientInfo"))],
  ["tools/list", page],
  ["tools/call", all(text("name"), optionalObject("arguments"))],
  ["resources/list", page],
  ["resources/templates/list", page],
  ["resources/read", text("uri")],
  ["resources/subscribe", text("uri")],
  ["resources/unsubscribe", text("uri")],
  ["prompts/list", page],
  ["prompts/get", all(text("name"), optionalObject("arguments"))],
  ["completion/complete", all(completion, optionalObject("context"))],
  ["logging/setLevel", level],
  ["subscriptions/listen", filter],
  ["tasks/get", text("taskId")],
  ["tasks/update", all(text("taskId"), object("inputResponses"))],
  ["tasks/cancel", text("taskId")],
  ["tasks/result", text("taskId")],
  ["tasks/list", page],
  ["elicitation/create", elicitation],
  ["sampling/createMessage", sampling],
]);

function metaProblem({ _meta }: Params): string | undefined {
  if (_meta === undefined) return undefined;
  if (!isObject(_meta)) return "`_meta` must be an object";
  const token = _meta["progressToken"];
  if (token === undefined || typeof token === "string" || typeof token === "number" || token instanceof Exact)
    return undefined;
  return "`_meta.progressToken` must be a string or a number";
}

/** Throws invalid params, naming the method and the field. */
export function checkParams(method: string, params: Params): void {
  const problem = metaProblem(params) ?? GUARDS.get(method)?.(params);
  if (problem !== undefined) throw invalidParams(`Invalid params for ${method}: ${problem}`, { method });
}
