// Ids of tasks, which name their ends: the end's label, a dot, and the end's own id. Nothing is kept, so an id leads to
// its end for as long as the end itself knows it, also after we were started again.

import { invalidParams, type McpError } from "../../protocol/errors.ts";
import type { RoutedUpstream } from "./member.ts";
import type { Target } from "./names.ts";

export class TaskIds {
  readonly #ends: readonly RoutedUpstream[];
  readonly #byLabel: ReadonlyMap<string, number>;

  constructor(ends: readonly RoutedUpstream[]) {
    this.#ends = ends;
    this.#byLabel = new Map(ends.map(({ index, label }) => [label.scheme, index]));
  }

  shown(end: number, id: string): string {
    return `${this.#ends[end]?.label.scheme ?? ""}.${id}`;
  }

  /** Undefined where it is none of ours. */
  target(id: string): Target | undefined {
    const dot = id.indexOf(".");
    const end = dot === -1 ? undefined : this.#byLabel.get(id.slice(0, dot));
    return end === undefined ? undefined : { end, name: id.slice(dot + 1) };
  }
}

export function unknownTask(taskId: string): McpError {
  return invalidParams("Unknown task: its id names no end", { taskId });
}
