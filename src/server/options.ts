// What every registration must bring, whatever it registers: something to call it by, options, a handler. Programs
// without types may leave out any of them, or give them in the wrong order, and are told which at once.

import { isObject } from "../core/objects.ts";
import { scopesProblem } from "../auth/bearer/scopes.ts";
import type { TaskSupport } from "../protocol/tasks.ts";

type Kind = "tool" | "resource" | "template" | "prompt";

const FORMS: Readonly<Record<Kind, string>> = {
  tool: ".tool(name, options, handler)",
  resource: ".resource(uri, options, read)",
  template: ".template(uriTemplate, options, read)",
  prompt: ".prompt(name, options, get)",
};

/** Options whose value is a text wherever they are given. */
const TEXTS = ["name", "title", "description", "mimeType"];

/** Throws a TypeError that names what is missing or wrong; gives the name under which later errors speak of it. */
export function checkRegistration(kind: Kind, key: unknown, options: unknown, handler: unknown): string {
  const form = `the form is ${FORMS[kind]}`;
  if (typeof key !== "string" || key === "") {
    const what = kind === "tool" || kind === "prompt" ? "a name" : "an address";
    throw new TypeError(`A ${kind} needs ${what}, a string; ${form}`);
  }
  const owner = `${kind.charAt(0).toUpperCase()}${kind.slice(1)} ${key}`;
  if (!isObject(options)) {
    const what = options === undefined ? "are missing" : "must be an object";
    throw new TypeError(`${owner}: its options ${what}; ${form}`);
  }
  if (typeof handler !== "function") {
    const what = handler === undefined ? "is missing" : "must be a function";
    throw new TypeError(`${owner}: its handler ${what}; ${form}`);
  }
  const wrong = TEXTS.find((field) => options[field] !== undefined && typeof options[field] !== "string");
  if (wrong !== undefined) throw new TypeError(`${owner}: its ${wrong} must be a string`);
  const problem = options["scopes"] === undefined ? undefined : scopesProblem(options["scopes"]);
  if (problem !== undefined) throw new TypeError(`${owner}: its scopes ${problem}`);
  return owner;
}

// What a tool says of tasks when it is registered, and what a server allows of them. Apart from the tasks themselves,
// which are loaded only where a tool that can be one is called.


/**
 * How a tool stands to tasks.
 *
 * @example
 * server.tool("render", { task: { support: "optional", ttlMs: 600_000 } }, async (_args, { signal }) => render(signal));
 */
export interface TaskOptions {
  /**
   * "optional": a task for callers that know tasks, an ordinary call for all others. "required": callers that know no
   * tasks are refused, where their revision has a word for that. "forbidden": always an ordinary call.
   */
  readonly support: TaskSupport;
  /**
   * When the caller gets its handle: "at-once", or "when-detached", which is when the handler calls `context.detach()`.
   * Until then its questions are those of an ordinary call. "at-once" where it is left out.
   */
  readonly when?: "at-once" | "when-detached";
  /** How long the task lives, from its creation. One that still runs then is aborted. */
  readonly ttlMs?: number;
  /** How long callers should wait before they ask again. */
  readonly pollIntervalMs?: number;
}

/**
 * What a server allows of tasks.
 *
 * @example
 * createServer({ name: "notes", version: "1.0.0", tasks: { max: 50, ttlMs: 60_000 } });
 */
export interface TaskLimits {
  /** Tasks that are kept at once, running or over; 1000 where it is left out. */
  readonly max?: number;
  /** The same, for each principal (who proves nothing counts as one); 100 where it is left out. */
  readonly maxPerCaller?: number;
  /** How long a task lives whose tool does not say; an hour where it is left out. */
  readonly ttlMs?: number;
  /** The longest that any task lives, whatever its tool says; a day where it is left out. */
  readonly maxTtlMs?: number;
  /** How long callers should wait before they ask again; a second where it is left out. */
  readonly pollIntervalMs?: number;
}

/** Undefined where the tool is never a task. Throws a TypeError that names what is wrong. */
export function taskOptions(owner: string, task: unknown): TaskOptions | undefined {
  if (task === undefined || task === "forbidden") return undefined;
  if (task === "optional" || task === "required") return { support: task };
  if (!isObject(task))
    throw new TypeError(`${owner}: its task must be "optional", "required", "forbidden" or an object`);
  const { support, when = "at-once" } = task;
  if (support !== "optional" && support !== "required" && support !== "forbidden") {
    throw new TypeError(`${owner}: its task.support must be "optional", "required" or "forbidden"`);
  }
  if (when !== "at-once" && when !== "when-detached") {
    throw new TypeError(`${owner}: its task.when must be "at-once" or "when-detached"`);
  }
  checkNumbers(`${owner}: its task`, task, ["ttlMs", "pollIntervalMs"]);
  return support === "forbidden" ? undefined : (task as unknown as TaskOptions);
}

export function checkedLimits(limits: TaskLimits | undefined): TaskLimits {
  if (limits === undefined) return {};
  const fields = ["max", "maxPerCaller", "ttlMs", "maxTtlMs", "pollIntervalMs"];
  checkNumbers("createServer(): its tasks", Object(limits) as Record<string, unknown>, fields);
  return limits;
}

function checkNumbers(owner: string, given: Readonly<Record<string, unknown>>, fields: readonly string[]): void {
  const wrong = fields.find(
    (field) => given[field] !== undefined && !(Number.isInteger(given[field]) && Number(given[field]) > 0),
  );
  if (wrong !== undefined) throw new TypeError(`${owner}.${wrong} must be a whole number above 0`);
}
