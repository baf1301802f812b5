// What the log of calls finds in requests and results: names, keys by which requests belong together, and texts.

import type { ObservedCall } from "../chain/observe.ts";
import type { Caller, Request, Result } from "../core/handler.ts";
import { copyFirstChars } from "../core/text.ts";
import { isObject } from "../core/values.ts";

/** Requests that a gateway answers by asking all its servers. */
export function isOfAll(method: string): boolean {
  return method.endsWith("/list") || method === "server/discover" || method === "subscriptions/listen";
}

export function clientName({ title, name, version }: NonNullable<Caller["info"]>): string {
  const shown = typeof title === "string" && title !== "" ? title : name;
  return copyFirstChars(version === "" ? shown : `${shown} ${version}`, 100);
}

export function nameOf({ request, name }: ObservedCall): string | undefined {
  const { taskId } = request.params;
  return name ?? (typeof taskId === "string" ? taskId : undefined);
}

/** By its state, or, if the server gave none, by what it asks for and asked. */
export function askedKey(
  caller: Caller,
  method: string,
  { name, uri }: Request["params"],
  state: unknown,
  questions: unknown,
): string {
  if (typeof state === "string") return `${caller.key} ${state}`;
  const keys = isObject(questions) ? Object.keys(questions).toSorted() : [];
  return JSON.stringify([caller.key, method, name, uri, keys]);
}

export function isRequest(value: unknown): value is Request {
  return isObject(value) && typeof value["method"] === "string" && isObject(value["params"] ?? {});
}

export function firstText({ content }: Result): string {
  if (!Array.isArray(content)) return "";
  const texts: readonly unknown[] = content;
  const block = texts.find((block) => isObject(block) && typeof block["text"] === "string");
  return isObject(block) ? String(block["text"]) : "";
}

export function hasText(value: unknown, wanted: string): boolean {
  if (typeof value === "string") return value.toLowerCase().includes(wanted);
  if (typeof value === "number") return String(value).includes(wanted);
  if (Array.isArray(value)) return value.some((item) => hasText(item, wanted));
  if (!isObject(value)) return false;
  return Object.entries(value).some(([key, inner]) => key.toLowerCase().includes(wanted) || hasText(inner, wanted));
}
