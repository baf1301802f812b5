// What comes from an end, as callers see it: addresses and ids of tasks in results and events are changed to those that
// lead back to the end. What needs no change is passed on as it is, and nothing is copied for it.

import type { Params, Result } from "../../core/handler.ts";
import { isObject } from "../../core/objects.ts";
import type { Addresses } from "./addresses.ts";
import type { TaskIds } from "./task-ids.ts";

type Json = { readonly [key: string]: unknown };

export class Shown {
  readonly #end: number;
  readonly #addresses: Addresses;
  readonly #taskIds: TaskIds;

  constructor(end: number, addresses: Addresses, taskIds: TaskIds) {
    this.#end = end;
    this.#addresses = addresses;
    this.#taskIds = taskIds;
  }

  /** Of a call, or what came of a task. */
  toolResult(result: Result): Result {
    if (result.resultType === "task") return this.task(result);
    return this.#within(result, "content", (block) => this.#block(block));
  }

  promptResult(result: Result): Result {
    return this.#within(result, "messages", (message) => {
      const content = isObject(message) ? message["content"] : undefined;
      if (!isObject(message) || content === undefined) return message;
      const shown = Array.isArray(content)
        ? changed(content as readonly unknown[], (block) => this.#block(block))
        : this.#block(content);
      return shown === content ? message : { ...message, content: shown };
    });
  }

  /** What was read at an address; the caller sees the one by which it asked. */
  readResult(result: Result, own: string, asked: string): Result {
    return this.#within(result, "contents", (content) => {
      if (!isObject(content) || typeof content["uri"] !== "string") return content;
      return this.#at(content, content["uri"] === own ? asked : this.#addresses.shown(this.#end, content["uri"]));
    });
  }

  /** How a task stands, with what came of it. */
  task<Fields extends Params | Result>(fields: Fields): Fields {
    const { taskId, result } = fields;
    const came = isObject(result) ? this.toolResult(result) : result;
    return {
      ...fields,
      ...(typeof taskId === "string" ? { taskId: this.#taskIds.shown(this.#end, taskId) } : undefined),
      ...(came === undefined ? undefined : { result: came }),
    };
  }

  #block(block: unknown): unknown {
    if (!isObject(block)) return block;
    if (block["type"] === "resource_link" && typeof block["uri"] === "string") {
      return this.#at(block, this.#addresses.shown(this.#end, block["uri"]));
    }
    const { type, resource } = block;
    if (type !== "resource" || !isObject(resource) || typeof resource["uri"] !== "string") return block;
    const shown = this.#at(resource, this.#addresses.shown(this.#end, resource["uri"]));
    return shown === resource ? block : { ...block, resource: shown };
  }

  #at(fields: Json, uri: string): Json {
    return fields["uri"] === uri ? fields : { ...fields, uri };
  }

  #within(result: Result, field: string, change: (item: unknown) => unknown): Result {
    const items = result[field];
    if (!Array.isArray(items) || this.#addresses.arePlain) return result;
    const shown = changed(items as readonly unknown[], change);
    return shown === items ? result : { ...result, [field]: shown };
  }
}

/** The same array where nothing has changed. */
function changed(items: readonly unknown[], change: (item: unknown) => unknown): readonly unknown[] {
  let copy: unknown[] | undefined;
  for (const [index, item] of items.entries()) {
    const now = change(item);
    if (now !== item) (copy ??= [...items])[index] = now;
  }
  return copy ?? items;
}
