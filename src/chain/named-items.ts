// Where a request names a tool, prompt, resource, template or task, and the errors for one that does not exist.

import type { CalledItem, Request } from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import { invalidParams, McpError } from "../protocol/errors.ts";
import type { ListCapability } from "../protocol/lists.ts";

type ItemKind = CalledItem["kind"];

interface NamePlace {
  readonly kind: ItemKind;
  /** The param that holds the name. */
  readonly param: "name" | "uri" | "taskId";
}

const TASK: NamePlace = { kind: "tasks", param: "taskId" };
const NAME_PLACES: ReadonlyMap<string, NamePlace> = new Map<string, NamePlace>([
  ["tools/call", { kind: "tools", param: "name" }],
  ["prompts/get", { kind: "prompts", param: "name" }],
  ["resources/read", { kind: "resources", param: "uri" }],
  ["tasks/get", TASK],
  ["tasks/update", TASK],
  ["tasks/cancel", TASK],
  ["tasks/result", TASK],
]);

/** Methods that the specification does not define name their items as those with the same beginning do. */
const BEGINNINGS: readonly (readonly [string, NamePlace])[] = [
  ["tools/", { kind: "tools", param: "name" }],
  ["prompts/", { kind: "prompts", param: "name" }],
  ["resources/", { kind: "resources", param: "uri" }],
];

function placeByBeginning(method: string): NamePlace | undefined {
  return BEGINNINGS.find(([beginning]) => method.startsWith(beginning))?.[1];
}

export interface NamedItem {
  readonly kind: ItemKind;
  readonly name: string;
}

/** The item that a request names. A completion that names a URI is about a template, or a resource. */
export function namedIn({ method, params }: Request): NamedItem | undefined {
  if (method === "completion/complete") return readRef(params["ref"]);
  const place = NAME_PLACES.get(method) ?? placeByBeginning(method);
  const name = place && params[place.param];
  return typeof name === "string" && place !== undefined ? { kind: place.kind, name } : undefined;
}

/** Whether this is the item that the request names. */
export function isNamedIn(request: Request, item: CalledItem): boolean {
  if (request.method === "tools/call") return item.kind === "tools" && request.params["name"] === item.name;
  const named = namedIn(request);
  return named?.kind === item.kind && named.name === item.name;
}

/** The request with another name for its item. */
export function withName(request: Request, name: string): Request {
  const { method, params } = request;
  if (method !== "completion/complete") {
    const { param = "name" } = NAME_PLACES.get(method) ?? placeByBeginning(method) ?? {};
    return { ...request, params: { ...params, [param]: name } };
  }
  const ref = isObject(params["ref"]) ? params["ref"] : {};
  const field = ref["type"] === "ref/prompt" ? "name" : "uri";
  return { ...request, params: { ...params, ref: { ...ref, [field]: name } } };
}

/** Reads the `ref` of a completion request; undefined if it is invalid. */
function readRef(ref: unknown): NamedItem | undefined {
  if (!isObject(ref)) return undefined;
  const isPrompt = ref["type"] === "ref/prompt";
  const name = isPrompt ? ref["name"] : ref["uri"];
  return typeof name === "string" ? { kind: isPrompt ? "prompts" : "templates", name } : undefined;
}

export function capabilityOf(kind: ItemKind): ListCapability {
  return kind === "tools" || kind === "prompts" ? kind : "resources";
}

/** The error that a server gives for an item that it does not have. `hint` follows in the message, `more` in the data. */
export function notFound(capability: ListCapability, name: string, hint = "", more: object = {}): McpError {
  const [noun, kind, field] = NOT_FOUND[capability];
  return McpError.of(kind, `${noun} not found: ${name}${hint}`, { [field]: name, ...more });
}

const NOT_FOUND = {
  tools: ["Tool", "tool_not_found", "toolName"],
  prompts: ["Prompt", "prompt_not_found", "promptName"],
  resources: ["Resource", "resource_not_found", "uri"],
} as const;

/** Whether an error is one of these. */
export function isNotFoundKind(kind: string | undefined): boolean {
  return Object.values(NOT_FOUND).some(([, known]) => known === kind);
}

/** The same for the item that a request names. */
export function notFoundIn({ method, params }: Request, { kind, name }: NamedItem): McpError {
  if (method !== "completion/complete") return notFound(capabilityOf(kind), name);
  const what = kind === "prompts" ? `prompt ${name}` : `resource ${name}`;
  return invalidParams(`There is no ${what} to complete`, { ref: params["ref"] });
}
