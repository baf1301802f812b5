// Options of createServer() and the checks that all registrations share. Mistakes are reported when the options are
// passed, since code without type checks would otherwise only notice them in a call.

import { scopesProblem } from "../protocol/scopes.ts";
import type { Caller, Meta, Session } from "../core/handler.ts";
import { printProblem } from "../core/listeners.ts";
import { fieldsOf, isObject, type Optional } from "../core/values.ts";
import { checkOptions, type OptionNames, optionNames, notValue } from "../core/options.ts";
import type { ErrorListener } from "./handler-errors.ts";
import type { CacheScope, Icon, ServerCapabilities } from "../protocol/model/index.ts";
import type { TaskSupport } from "../protocol/tasks.ts";
import type { TaskLimits } from "../tasks/memory.ts";

/** What a server tells its clients about itself. */
export interface ServerInfo {
  /** The name that programs use. */
  readonly name: string;
  /** The version of the server, not of the protocol. */
  readonly version: string;
  /** The name to show to people, if it differs from `name`. */
  readonly title?: string | undefined;
  /** For people: what the server is for. */
  readonly description?: string | undefined;
  /** Where people can read more. */
  readonly websiteUrl?: string | undefined;
  /** Icons for user interfaces. */
  readonly icons?: readonly Icon[] | undefined;
}

/** What a server tells about itself, and how it behaves. */
export interface ServerOptions extends ServerInfo {
  /** For the model: how to use this server. */
  readonly instructions?: string | undefined;
  /** Whether clients can subscribe to list changes. Default: true. */
  readonly listChanged?: boolean | undefined;
  /** Whether clients can subscribe to resource updates. Default: true. */
  readonly subscribe?: boolean | undefined;
  /**
   * Whether the server declares that it sends log messages. With false, they are dropped. Default: true.
   */
  readonly logging?: boolean | undefined;
  /** Capabilities that the specification does not define, by vendors' names. */
  readonly capabilities?: VendorCapabilities | undefined;
  /** Items per page of a list. Default: 1000. */
  readonly pageSize?: number | undefined;
  /**
   * Encrypts the state of `inputRequired`, which the client keeps between the calls. Processes that serve the same
   * clients need the same key. Default: a random key for each server.
   */
  readonly sealKey?: string | Uint8Array | undefined;
  /** Cache hint of lists and reads. Default: no caching. */
  readonly cache?: CacheHint | undefined;
  /** Limits on tasks, for tools that can run as tasks. */
  readonly tasks?: TaskLimits | undefined;
  /**
   * Gets the errors that handlers throw, except for `UserError` and `McpError`, and results that the protocol does not
   * allow. Default: they are written to stderr, with the stack unless `NODE_ENV` is "production".
   *
   * @example
   * onError: (error, { method, name }) => Sentry.captureException(error, { tags: { method, name } })
   */
  readonly onError?: ErrorListener | undefined;
  /**
   * Whether callers read "The tool ... failed because of an internal error" instead of the message of a thrown error. A
   * `UserError` and an `McpError` are never masked. Default: true if `NODE_ENV` is "production".
   */
  readonly maskErrors?: boolean | undefined;
}

/**
 * Capabilities for methods and features of your own.
 *
 * @example
 * createServer({ name: "notes", version: "1.0.0", capabilities: { extensions: { "com.example/search": {} } } });
 */
export type VendorCapabilities = Optional<Pick<ServerCapabilities, "experimental" | "extensions">>;

const CAPABILITY_NAMES: OptionNames<Record<"experimental" | "extensions", unknown>> =
  optionNames("experimental extensions");

/**
 * How long a client may reuse a result, and who may share it.
 *
 * @example
 * createServer({ name: "notes", version: "1.0.0", cache: { ttlMs: 60_000, cacheScope: "private" } });
 */
export interface CacheHint {
  /** In milliseconds; 0 means no caching. */
  readonly ttlMs: number;
  /** "public": the result is the same for every client, so a shared cache may keep it. */
  readonly cacheScope: CacheScope;
}

/**
 * Whether and how a tool runs as a task.
 *
 * @example
 * server.tool("render", { task: { support: "optional", ttlMs: 600_000 } }, (_args, { signal }) => render(signal));
 */
export interface TaskOptions {
  /**
   * "optional": a task for clients that support tasks, a plain call for all others. "required": always a task. Clients
   * that do not ask for one are refused; for clients of revisions without tasks, the call waits until the task is
   * finished. "forbidden": always a plain call.
   */
  readonly support: TaskSupport;
  /**
   * When the client gets its task: "at-once", or "when-detached", which is when the handler calls `context.detach()`.
   * Until then, the handler can send requests to the client as in a plain call. Default: "at-once".
   */
  readonly when?: "at-once" | "when-detached" | undefined;
  /** Lifetime of the task from its creation. A task that is still running then is aborted. */
  readonly ttlMs?: number | undefined;
  /** How long clients should wait between two polls. */
  readonly pollIntervalMs?: number | undefined;
}

/** Whether a caller may see and use something. Stateless callers have no session. */
export type Visible = (caller: Caller, session: Session | undefined) => boolean;

/** Options of tools, prompts, resources and templates. */
export interface RegistrationOptions {
  /** Icons for user interfaces. */
  readonly icons?: readonly Icon[] | undefined;
  /**
   * The scopes that a client over HTTP needs; see `bearer`. All clients see the entry in the list. The error for a
   * missing scope names it.
   *
   * @example
   * scopes: ["notes:write"]
   */
  readonly scopes?: readonly string[] | undefined;
  /**
   * Whether a caller sees the entry in the list and can use it; for others it does not exist. Default: everybody does.
   *
   * @example
   * visible: ({ scopes }) => scopes?.includes("admin") === true
   */
  readonly visible?: Visible | undefined;
  /** Extra data for clients, sent as it is. */
  readonly _meta?: Meta | undefined;
}

const CREATE = "createServer()";

const OPTION_NAMES: OptionNames<ServerOptions> = optionNames(
  "name version title description websiteUrl icons instructions listChanged subscribe logging capabilities",
  "pageSize sealKey cache tasks onError maskErrors",
);

/** Throws a TypeError if the options of createServer() are wrong. */
export function checkServer(options: ServerOptions, hasMoreArguments: boolean): void {
  const { name, version } = fieldsOf(options);
  const missing = Object.entries({ name, version }).filter(([, value]) => typeof value !== "string");
  if (missing.length > 0) {
    const what = missing.map(([field]) => `a ${field}`).join(" and ");
    throw new TypeError(`${CREATE} needs ${what}; usage: createServer({ name: "notes", version: "1.0.0" })`);
  }
  if (hasMoreArguments) throw new TypeError(`${CREATE} has one argument: createServer({ name, version, ...options })`);
  checkOptions(CREATE, options, OPTION_NAMES);
  const { pageSize, sealKey, cache, tasks, onError, capabilities = {} } = options;
  if (pageSize !== undefined && (!Number.isInteger(pageSize) || pageSize < 1)) {
    throw new TypeError(`${CREATE}: \`pageSize\` must be a whole number above 0`);
  }
  if (sealKey?.length === 0) throw new TypeError(`${CREATE}: \`sealKey\` must not be empty`);
  if (onError !== undefined && typeof onError !== "function") {
    throw new TypeError(`${CREATE}: \`onError\` must be a function`);
  }
  checkCacheHint(CREATE, cache);
  checkCapabilities(capabilities);
  if (tasks !== undefined) {
    if (!isObject(tasks)) throw new TypeError(`${CREATE}: \`tasks\` must be an object${notValue(tasks)}`);
    checkOptions(CREATE, tasks, LIMIT_NAMES, "tasks.");
    checkCounts(CREATE, tasks, Object.keys(LIMIT_NAMES), "tasks.");
  }
}

/** Not by fields, which most servers need not load. */
function checkCounts(owner: string, options: object, names: readonly string[], path: string): void {
  for (const name of names) {
    const value = fieldsOf(options)[name];
    if (value === undefined || (Number.isInteger(value) && Number(value) > 0)) continue;
    throw new TypeError(`${owner}: \`${path}${name}\` must be a whole number above 0${notValue(value)}`);
  }
}

function checkCapabilities(capabilities: object): void {
  checkOptions(CREATE, capabilities, CAPABILITY_NAMES, "capabilities.");
  const wrong = Object.entries(capabilities).find(([, value]) => value !== undefined && !isObject(value));
  if (wrong !== undefined) throw new TypeError(`${CREATE}: \`capabilities.${wrong[0]}\` must be an object`);
}

const LIMIT_NAMES: OptionNames<TaskLimits> = optionNames("max maxPerCaller ttlMs maxTtlMs pollIntervalMs");

const CACHE_NAMES: OptionNames<CacheHint> = optionNames("ttlMs cacheScope");

/** `owner` starts the error message. */
export function checkCacheHint(owner: string, cache: unknown): void {
  if (cache === undefined) return;
  const { ttlMs, cacheScope } = fieldsOf(cache);
  if (!Number.isInteger(ttlMs) || Number(ttlMs) < 0) {
    throw new TypeError(`${owner}: \`cache.ttlMs\` must be a whole number of milliseconds, 0 or more`);
  }
  if (cacheScope !== "public" && cacheScope !== "private") {
    throw new TypeError(`${owner}: \`cache.cacheScope\` must be "public" or "private"`);
  }
  checkOptions(owner, cache, CACHE_NAMES, "cache.");
}

type RegistrationKind = "tool" | "resource" | "template" | "prompt" | "method" | "notification";

const USAGE: Readonly<Record<RegistrationKind, string>> = {
  tool: ".tool(name, options, handler)",
  resource: ".resource(uri, options, read)",
  template: ".template(uriTemplate, options, read)",
  prompt: ".prompt(name, options, get)",
  method: ".method(name, options, handler)",
  notification: ".onNotification(name, handler)",
};

const STRINGS = ["name", "title", "description", "mimeType"];

/**
 * Checks what all registrations have in common. Throws a TypeError that names the problem; returns the name of the
 * registration for further error messages.
 */
export function checkRegistration(
  kind: RegistrationKind,
  key: unknown,
  options: unknown,
  handler: unknown,
  names: object,
): string {
  const usage = `usage: ${USAGE[kind]}`;
  if (typeof key !== "string" || key === "") {
    const what = kind === "resource" ? "URI" : kind === "template" ? "URI template" : "name";
    throw new TypeError(`A ${kind} needs a ${what}, a non-empty string; ${usage}`);
  }
  const owner = `${kind.charAt(0).toUpperCase()}${kind.slice(1)} ${key}`;
  if (!isObject(options)) {
    const what = options === undefined ? "are missing" : "must be an object";
    throw new TypeError(`${owner}: the options ${what}; ${usage}`);
  }
  if (typeof handler !== "function") {
    const what = handler === undefined ? "is missing" : "must be a function";
    throw new TypeError(`${owner}: the handler ${what}; ${usage}`);
  }
  checkOptions(owner, options, names);
  const wrong = STRINGS.find((field) => options[field] !== undefined && typeof options[field] !== "string");
  if (wrong !== undefined) throw new TypeError(`${owner}: \`${wrong}\` must be a string`);
  const problem = options["scopes"] === undefined ? undefined : scopesProblem(options["scopes"]);
  if (problem !== undefined) throw new TypeError(`${owner}: \`scopes\` ${problem}`);
  return owner;
}

/** Two registrations with one name are usually a mistake, as when two files define the same tool. */
export function alreadyRegistered(owner: string, remove?: string): TypeError {
  const advice = remove === undefined ? "" : `; to replace it, call server.${remove} first`;
  return new TypeError(`${owner} is already registered${advice}`);
}

/** What the specification allows as the name of a tool. */
const TOOL_NAME = /^[A-Za-z0-9_.-]{1,128}$/;
/** What the models of all large providers accept as the name of a tool. */
const PORTABLE_NAME = /^[A-Za-z0-9_-]{1,64}$/;

/** Throws a TypeError for the name of a tool that clients would refuse, and warns of names that some of them refuse. */
export function checkName(kind: "tool" | "prompt", owner: string, name: string): void {
  if (PORTABLE_NAME.test(name)) return;
  if (kind === "tool" && !TOOL_NAME.test(name)) {
    throw new TypeError(`${owner}: the name must have 1 to 128 characters, out of A-Z, a-z, 0-9, "_", "-" and "."`);
  }
  const rule = `at most 64 characters, out of A-Z, a-z, 0-9, "_" and "-"`;
  printProblem(`${owner}: some clients refuse this name; use ${rule}`);
}

const TASK_NAMES: OptionNames<TaskOptions> = optionNames("support when ttlMs pollIntervalMs");

/** Undefined if the tool never runs as a task. Throws a TypeError that names the problem. */
export function readTaskOptions(owner: string, task: TaskSupport | TaskOptions | undefined): TaskOptions | undefined {
  if (task === undefined || task === "forbidden") return undefined;
  if (task === "optional" || task === "required") return { support: task };
  if (!isObject(task)) {
    throw new TypeError(`${owner}: \`task\` must be "optional", "required", "forbidden" or an object`);
  }
  const { support, when = "at-once" }: { readonly support: unknown; readonly when?: unknown } = task;
  if (support !== "optional" && support !== "required" && support !== "forbidden") {
    throw new TypeError(`${owner}: \`task.support\` must be "optional", "required" or "forbidden"`);
  }
  if (when !== "at-once" && when !== "when-detached") {
    throw new TypeError(`${owner}: \`task.when\` must be "at-once" or "when-detached"`);
  }
  checkOptions(owner, task, TASK_NAMES, "task.");
  checkCounts(owner, task, ["ttlMs", "pollIntervalMs"], "task.");
  return support === "forbidden" ? undefined : task;
}
