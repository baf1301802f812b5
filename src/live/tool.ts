// What a tool of a language is: its name, its words and its arguments. The guest does the work, under the tool's own
// name; how a call gets there, what is added to every tool, and how an answer becomes a result is the same for all (see
// live.ts).

import type { Runtime } from "./runtime.ts";

export interface Argument {
  readonly type: "string" | "integer" | "number" | "boolean" | "strings";
  readonly description: string;
  readonly required?: true;
  readonly choices?: readonly string[];
  /** The least that a number may be. */
  readonly least?: number;
  readonly default?: string | number | boolean;
}

export type Arguments = Readonly<Record<string, Argument>>;

export interface GuestTool {
  readonly name: string;
  readonly title: string;
  /** For the model: what it does, and when to call it. */
  readonly description: string;
  readonly arguments: Arguments;
  /** It changes nothing in the session. */
  readonly readOnly?: true;
  /** It runs the user's code, or works for long: it has a `timeout`, and may be a task. */
  readonly runsCode?: true;
  /** It is asked of the reader, at once, while an evaluation runs. */
  readonly atOnce?: true;
}

export interface Language {
  readonly runtime: Runtime;
  /** For people, such as "Common Lisp". */
  readonly title: string;
  /** For the model, of the whole server. */
  readonly instructions: string;
  /** The tool that evaluates. */
  readonly evaluate: GuestTool;
  readonly tools: readonly GuestTool[];
  /** What get-usage-guide says, as markdown. */
  readonly guide: string;
}
