// Which tools can be tasks, and which must be: a session-style end says it in its list of tools, a handler in this
// process under a symbol, and a call must be treated accordingly. What of the list goes by is noted; where a tool was
// not in it, the list is asked for once, and again only after it is said to have changed.

import type { Result } from "../../core/handler.ts";
import { isObject } from "../../core/objects.ts";
import { type Supporting, TASK_SUPPORT, type TaskSupport } from "../../protocol/tasks.ts";

/** Tools that are kept in mind, and pages that are asked for. */
const MOST_TOOLS = 10_000;
const MOST_PAGES = 100;

/** One page of the list of tools. */
type List = (cursor: string | undefined) => Promise<Result>;

export class TaskSupports {
  readonly #known = new Map<string, TaskSupport>();
  /** Whether the whole list is known: a tool that is not in it is none. */
  #isWhole = false;
  /** How often the list has changed. */
  #changes = 0;
  #listing: Promise<void> | undefined;

  /** The same page; each tool says for itself, under a symbol, how it stands to tasks. */
  note(page: Result): Result {
    const { tools } = page;
    if (!Array.isArray(tools)) return page;
    const marked = tools.map((tool: unknown) => {
      if (!isObject(tool)) return tool;
      const support = supportOf(tool);
      if (typeof tool["name"] === "string" && this.#known.size < MOST_TOOLS) this.#known.set(tool["name"], support);
      const mark: Supporting = { [TASK_SUPPORT]: support };
      return { ...tool, ...mark };
    });
    return { ...page, tools: marked };
  }

  /** The list is no longer what it was. */
  changed(): void {
    this.#known.clear();
    this.#isWhole = false;
    this.#changes += 1;
  }

  /** Undefined: the list, if there is one, does not name the tool. */
  async of(name: unknown, list: List): Promise<TaskSupport | undefined> {
    if (typeof name !== "string") return undefined;
    if (!this.#known.has(name) && !this.#isWhole) {
      // Without a list the call goes out as it is: what is wrong with it the end will say.
      await (this.#listing ??= this.#all(list).finally(() => (this.#listing = undefined))).catch(() => undefined);
    }
    return this.#known.get(name);
  }

  async #all(list: List): Promise<void> {
    const changes = this.#changes;
    let cursor: string | undefined;
    for (let page = 0; page < MOST_PAGES; page += 1) {
      const result = await list(cursor);
      this.note(result);
      const next = result["nextCursor"];
      if (typeof next !== "string" || next === cursor) break;
      cursor = next;
    }
    if (changes === this.#changes) this.#isWhole = true;
  }
}

/** A tool that says nothing of tasks cannot be one. */
function supportOf(tool: Supporting & { readonly execution?: unknown }): TaskSupport {
  const { execution } = tool;
  const said = tool[TASK_SUPPORT] ?? (isObject(execution) ? execution["taskSupport"] : undefined);
  return said === "required" || said === "optional" ? said : "forbidden";
}
