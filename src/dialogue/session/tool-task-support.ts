// Remembers which tools can or must run as a task. The list of tools declares this: a session-style server uses the
// field `execution`, and a handler in this process uses the symbol `TASK_SUPPORT`. Each page of the list that a client
// requests is recorded. For an unknown tool the whole list is read once, and again only after it has changed.

import type { Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { type WithTaskSupport, TASK_SUPPORT, type TaskSupport } from "../../protocol/tasks.ts";

const MAX_TOOLS = 10_000;
const MAX_PAGES = 100;

/** Reads one page of the list of tools. */
type ListPage = (cursor: string | undefined) => Promise<Result>;

export class ToolTaskSupport {
  readonly #known = new Map<string, TaskSupport>();
  /** Whether the whole list has been read, so that a missing tool does not exist. */
  #isComplete = false;
  /** How often the list has changed. */
  #changes = 0;
  #reading: Promise<void> | undefined;

  /** Records a page, and returns it with each tool marked with its task support. */
  record(page: Result): Result {
    const { tools } = page;
    if (!Array.isArray(tools)) return page;
    const marked = tools.map((tool: unknown) => {
      if (!isObject(tool)) return tool;
      const support = supportOf(tool);
      if (typeof tool["name"] === "string" && this.#known.size < MAX_TOOLS) this.#known.set(tool["name"], support);
      const mark: WithTaskSupport = { [TASK_SUPPORT]: support };
      return { ...tool, ...mark };
    });
    return { ...page, tools: marked };
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
    let cursor: string | undefined;
    for (let page = 0; page < MAX_PAGES; page += 1) {
      const result = await list(cursor);
      this.record(result);
      const next = result["nextCursor"];
      if (typeof next !== "string" || next === cursor) break;
      cursor = next;
    }
    if (changes === this.#changes) this.#isComplete = true;
  }
}

/** A tool that declares nothing about tasks cannot run as one. */
function supportOf(tool: WithTaskSupport & { readonly execution?: unknown }): TaskSupport {
  const { execution } = tool;
  const support = tool[TASK_SUPPORT] ?? (isObject(execution) ? execution["taskSupport"] : undefined);
  return support === "required" || support === "optional" ? support : "forbidden";
}
