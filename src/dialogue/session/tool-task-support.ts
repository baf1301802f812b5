// Remembers which tools can or must run as a task. The list of tools declares this, in the field `execution`. Each page
// of the list that a client requests is recorded. For an unknown tool the whole list is read once, and again only after
// it has changed.

import type { Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { walkPages } from "../../protocol/pages.ts";
import type { TaskSupport, ToolExecution } from "../../protocol/tasks.ts";

const MAX_TOOLS = 10_000;

/** Reads one page of the list of tools. */
type ListPage = (cursor: string | undefined) => Promise<Result>;

export class ToolTaskSupport {
  readonly #known = new Map<string, TaskSupport>();
  /** Whether the whole list has been read, so that a missing tool does not exist. */
  #isComplete = false;
  /** How often the list has changed. */
  #changes = 0;
  #reading: Promise<void> | undefined;

  /**
   * Records a page. Returns it with an empty `execution` for tools that have none: unlike the tools of other servers,
   * they are known not to support tasks.
   */
  record(page: Result): Result {
    const { tools } = page;
    if (!Array.isArray(tools)) return page;
    const stated = tools.map((tool: unknown) => {
      if (!isObject(tool)) return tool;
      if (typeof tool["name"] === "string" && this.#known.size < MAX_TOOLS) {
        this.#known.set(tool["name"], supportOf(tool));
      }
      return tool["execution"] === undefined ? { ...tool, execution: NO_TASKS } : tool;
    });
    return { ...page, tools: stated };
  }

  /** Forgets everything, since the list has changed. */
  clear(): void {
    this.#known.clear();
    this.#isComplete = false;
    this.#changes += 1;
  }

  /** Undefined if the tool is not listed, or the list cannot be read. */
  async of(name: unknown, list: ListPage): Promise<TaskSupport | undefined> {
    if (typeof name !== "string") return undefined;
    if (!this.#known.has(name) && !this.#isComplete) {
      // If the list cannot be read, the call is sent unchanged, so that the server reports what is wrong with it.
      await (this.#reading ??= this.#readAll(list).finally(() => (this.#reading = undefined))).catch(() => undefined);
    }
    return this.#known.get(name);
  }

  async #readAll(list: ListPage): Promise<void> {
    const changes = this.#changes;
    for await (const { page } of walkPages("tools", list)) this.record(page);
    if (changes === this.#changes) this.#isComplete = true;
  }
}

const NO_TASKS: ToolExecution = {};

/** A tool that declares nothing about tasks cannot run as one. */
function supportOf({ execution }: { readonly execution?: unknown }): TaskSupport {
  const support = isObject(execution) ? execution["taskSupport"] : undefined;
  return support === "required" || support === "optional" ? support : "forbidden";
}
