// Code mode: callers of a gateway see three tools in place of all. They find tools with search-tools, read declarations
// with describe-tools, and call as many as they like from the code of one run-code. What a caller finds and calls is what
// its own list has, and each call passes through the gateway as the caller's own. One run is in code-run.ts.

import { ExpiringMap } from "../core/expiring-map.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Context, Handler, Request, Result } from "../core/handler.ts";
import { EVALUATES_CODE, evaluatesCode } from "../core/handler-marks.ts";
import { CODE_MODE, type LiveServer } from "../core/live-server.ts";
import { digest } from "../core/seal.ts";
import { defaultsOf } from "../core/options.ts";
import { defined, isObject } from "../core/values.ts";
import { McpError, METHOD_NOT_FOUND } from "../protocol/errors.ts";
import type { Unavailable } from "../protocol/lists.ts";
import type { SubscriptionFilter, Tool } from "../protocol/model/index.ts";
import { TASKS_EXTENSION } from "../protocol/tasks.ts";
import { type CallSyntax, type ListedTool } from "../tools/search.ts";
import {
  answerDescribe,
  answerSearch,
  type Arguments,
  DESCRIBE_TOOLS,
  describeTool,
  readTools,
  SEARCH_TOOLS,
  searchTool,
  shortList,
  type ToolList,
  USUAL_FOUND,
  withInstructions,
} from "../tools/search-tools.ts";
import type { CodeBudgets } from "./call-answer.ts";
import { CodeRun } from "./code-run.ts";
import { declareTools, describeCall } from "./declarations.ts";
import type { MissingServer, RunTools } from "./offered-tools.ts";
import { CODE, type CodeOptions, type LiveOptions } from "./options.ts";
import { createLiveServer, evaluationTool, type Live } from "./server.ts";
import { type GuestTool, type Language, required } from "./tool.ts";
import { type CatalogueEntry, directoryOf, identifier, ToolCatalogue } from "./tool-catalogue.ts";

export interface CodeRunnerOptions extends LiveOptions, Omit<CodeOptions, "include"> {
  /** What a caller may call. Called for each run, with a context of that caller. */
  readonly tools: (context: Context) => Promise<RunTools>;
}

export interface CodeRunner {
  /** Answers `tools/call` of `run-code`, and has the resources of the sessions. */
  readonly handler: Handler & Pick<Live, "notify">;
  /** The definition of `run-code`, as it is listed. */
  readonly tool: Tool;
  /** How the code writes a call, if not as JavaScript does. */
  readonly callSyntax: CallSyntax | undefined;
  /** Its sessions, for the operator of this process. */
  live(): ReadonlyMap<string, LiveServer>;
  /** Ends all sessions. */
  close(): Promise<void>;
}

const RUN_CODE = "run-code";

export function createCodeRunner(language: Language, options: CodeRunnerOptions): CodeRunner {
  const { callsTools, callSyntax, callAdvice: advice, title, resources } = language;
  if (callsTools === undefined || advice === undefined)
    throw new TypeError(`Code in ${title} cannot call tools; use another language`);
  const { tools, confirm, maxCalls, maxParallel, maxResultBytes, ...liveOptions } = options;
  const budgets: CodeBudgets = {
    ...defaultsOf(CODE),
    ...defined({ maxCalls, maxParallel, maxResultBytes }),
  };
  const evaluate: GuestTool = {
    name: RUN_CODE,
    title: "Run code",
    description: callsTools,
    arguments: { code: required() },
    runsCode: true,
  };
  const server = createLiveServer(
    { runtime: language.runtime, title, instructions: "", evaluate, tools: [], ...(resources && { resources }) },
    // Callers have no tools that could use an error that stays open.
    { ...liveOptions, limits: { ...liveOptions.limits, errorHoldMs: 0 } },
    { begin: (context, report, log) => CodeRun.begin(context, { tools, budgets, confirm, advice, report, log }) },
  );
  const tool = evaluationTool(evaluate);
  return { handler: server, tool, callSyntax, live: () => server.live(), close: () => server.close() };
}

/** Options of code mode in every language. `sandbox` is true by default. */
export interface CodeModeOptions extends LiveOptions, CodeOptions {}

/** A gateway in code mode. It has all that the gateway has; closing it closes the gateway and ends the sessions. */
export type CodeMode<Gateway extends Handler> = Gateway & {
  readonly [EVALUATES_CODE]: true;
  /** Ends the sessions, and closes the gateway. */
  close(budgetMs?: number): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
};

const INSTRUCTIONS = `The tools of this server are called from code. Find them with ${SEARCH_TOOLS}, read their declarations with ${DESCRIBE_TOOLS}, and call many of them in one ${RUN_CODE}: loop, filter and combine there, and return only what you need.`;

const SEARCH = searchTool(
  `Finds tools by words about what they do. Returns their signatures, the best match first. They are called in ${RUN_CODE}, as tools.NAME(...).`,
);
const DESCRIBE = describeTool("Returns TypeScript declarations of tools, with the descriptions of their arguments.");
/** In other languages, the results show how a tool is called. */
const OTHER_SEARCH = searchTool(
  `Finds tools by words about what they do. Returns how they are called in ${RUN_CODE}, the best match first.`,
);
const OTHER_DESCRIBE = describeTool(`Returns how tools are called in ${RUN_CODE}, and describes their arguments.`);

const LIVE_URI = "live://";
const MAX_TASKS = 10_000;
/** Lists for which a catalogue is kept. Callers with equal lists share one. */
const MAX_CATALOGUES = 20;

/** What a model sees of the tools: ours, and those that stay. `tools` is the whole list. */
export async function codeModeTools(
  language: Language,
  tools: readonly ListedTool[],
  { include = [] }: Pick<CodeModeOptions, "include">,
): Promise<readonly ListedTool[]> {
  const runner = createCodeRunner(language, { tools: () => Promise.reject(new Error("Nothing is run")) });
  try {
    const directory = directoryOf(new ToolCatalogue(tools).entries, []);
    const list = shortList(ownTools(runner, directory), { tools, first: {} }, include);
    return list["tools"] as readonly ListedTool[];
  } finally {
    await runner.close();
  }
}

/** The schema of the result is left out: a model can do without, and would load it in every conversation. */
function ownTools({ tool, callSyntax }: CodeRunner, directory: string): readonly ListedTool[] {
  const { outputSchema: _output, ...rest } = tool;
  const run = { ...rest, description: `${tool.description ?? ""}${directory}` };
  return callSyntax === undefined ? [SEARCH, DESCRIBE, run] : [OTHER_SEARCH, OTHER_DESCRIBE, run];
}

/** `create` loads the language, with the first request that needs it. */
export function createCodeMode<Gateway extends Handler>(
  gateway: Gateway,
  create: () => Promise<Language>,
  options: CodeModeOptions,
): CodeMode<Gateway> {
  const state = new CodeModeState(gateway, create, options);
  const { length: _length, name: _name, ...properties } = Object.getOwnPropertyDescriptors(gateway);
  const handler: Handler = (request, context) => state.handle(request, context);
  return Object.defineProperties(handler, {
    ...properties,
    [EVALUATES_CODE]: { value: true },
    live: { value: () => state.live() },
    close: { value: (budgetMs?: number): Promise<void> => state.close(budgetMs) },
    [Symbol.asyncDispose]: { value: () => state.close() },
  }) as unknown as CodeMode<Gateway>;
}

type GatewayParts = Handler & {
  readonly upstreams?: ReadonlyMap<string, Handler>;
  live?(): ReadonlyMap<string, LiveServer>;
  close?(budgetMs?: number): Promise<void> | void;
};

class CodeModeState {
  readonly #gateway: GatewayParts;
  readonly #create: () => Promise<Language>;
  readonly #options: CodeModeOptions;
  /** The tasks of our runs, by id. */
  readonly #tasks = new ExpiringMap<string, true>({ maxEntries: MAX_TASKS });
  readonly #catalogues = new ExpiringMap<string, ToolCatalogue>({ maxEntries: MAX_CATALOGUES });
  #runner: Promise<CodeRunner> | undefined;
  /** The runner once it is loaded. */
  #loaded: CodeRunner | undefined;
  #closing: Promise<void> | undefined;

  constructor(gateway: GatewayParts, create: () => Promise<Language>, options: CodeModeOptions) {
    this.#gateway = gateway;
    this.#create = create;
    this.#options = options;
  }

  /** The sessions have resources, unless those of the gateway could have the same URIs. */
  get #hasResources(): boolean {
    return !evaluatesCode(this.#gateway);
  }

  handle(request: Request, context: Context): Promise<Result> {
    const { method, params } = request;
    switch (method) {
      case "tools/list":
        return this.#list(context);
      case "tools/call":
        return this.#call(request, context);
      case "server/discover":
        return this.#gateway(request, context).then((result) => this.#discovered(result));
      case "resources/list":
        return this.#hasResources ? this.#listBoth("resources", request, context) : this.#gateway(request, context);
      case "resources/templates/list":
        return this.#hasResources
          ? this.#listBoth("resourceTemplates", request, context)
          : this.#gateway(request, context);
      case "resources/read":
        return this.#isOurs(params["uri"]) ? this.#ask(request, context) : this.#gateway(request, context);
      case "subscriptions/listen":
        return this.#isForOurTasks(params["notifications"] as SubscriptionFilter)
          ? this.#ask(request, context)
          : this.#gateway(request, context);
      default:
        return method.startsWith("tasks/") && this.#tasks.get(String(params["taskId"])) === true
          ? this.#ask(request, context)
          : this.#gateway(request, context);
    }
  }

  /** The sessions of the gateway's upstreams, and our own. */
  live(): ReadonlyMap<string, LiveServer> {
    const own = [...(this.#loaded?.live().values() ?? [])].map((server) => [CODE_MODE, server] as const);
    return new Map([...(this.#gateway.live?.() ?? []), ...own]);
  }

  close(budgetMs?: number): Promise<void> {
    const close = async (): Promise<void> => {
      // The sessions first: their calls go to the gateway.
      await (await this.#runner?.catch(() => undefined))?.close();
      await this.#gateway.close?.(budgetMs);
    };
    return (this.#closing ??= close());
  }

  /** Loads the language once. If that fails, the next request tries again. */
  #open(): Promise<CodeRunner> {
    if (this.#closing !== undefined) {
      return Promise.reject(new ConnectionError("closed", "The gateway is closed", { mayHaveRun: false }));
    }
    const { include: _include, sandbox = true, ...options } = this.#options;
    const open = async (): Promise<CodeRunner> =>
      (this.#loaded = createCodeRunner(await this.#create(), {
        ...options,
        sandbox,
        tools: (context) => this.#toolsOf(context),
      }));
    this.#runner ??= open().catch((error: unknown) => {
      this.#runner = undefined;
      throw error;
    });
    return this.#runner;
  }

  async #ask(request: Request, context: Context): Promise<Result> {
    return (await this.#open()).handler(request, context);
  }

  async #list(context: Context): Promise<Result> {
    const [runner, { catalogue, list }] = await Promise.all([this.#open(), this.#catalogue(context)]);
    const missing = list.missing.map(({ upstream }) => upstream);
    return shortList(ownTools(runner, directoryOf(catalogue.entries, missing)), list, this.#options.include ?? []);
  }

  #call(request: Request, context: Context): Promise<Result> {
    const { name, arguments: callArguments } = request.params;
    const args = isObject(callArguments) ? callArguments : {};
    if (name === SEARCH_TOOLS) return this.#search(args, context);
    if (name === DESCRIBE_TOOLS) return this.#describe(args, context);
    return name === RUN_CODE ? this.#run(request, context) : this.#gateway(request, context);
  }

  async #run(request: Request, context: Context): Promise<Result> {
    const result = await this.#ask(request, context);
    if (typeof result["taskId"] === "string") this.#tasks.set(result["taskId"], true);
    return result;
  }

  async #catalogue(context: Context): Promise<{ catalogue: ToolCatalogue; list: ToolList }> {
    const [{ callSyntax }, list] = await Promise.all([this.#open(), readTools(this.#gateway, context)]);
    const { tools } = list;
    // The tools of a single upstream do not name it.
    const [first, ...others] = this.#gateway.upstreams?.keys() ?? [];
    const only = others.length === 0 ? first : undefined;
    const key = `${only ?? ""} ${digest(tools)}`;
    const catalogue = this.#catalogues.get(key) ?? new ToolCatalogue(tools, only, callSyntax);
    this.#catalogues.set(key, catalogue);
    return { catalogue, list };
  }

  async #search(args: Arguments, context: Context): Promise<Result> {
    const { catalogue, list } = await this.#catalogue(context);
    return answerSearch(args, USUAL_FOUND, list, async (query, limit, offset) => {
      const { found, total } = await catalogue.search(query, limit, offset);
      const tools = found.map(({ path, signature, summary }) => ({ name: path, signature, summary }));
      return { found: tools, total };
    });
  }

  async #describe(args: Arguments, context: Context): Promise<Result> {
    const [{ callSyntax }, { catalogue, list }] = await Promise.all([this.#open(), this.#catalogue(context)]);
    const describe = (entries: readonly CatalogueEntry[]): readonly string[] => {
      if (callSyntax !== undefined) return entries.map((entry) => describeCall(entry, callSyntax));
      return entries.length === 0 ? [] : [declareTools(entries)];
    };
    return answerDescribe(
      args,
      list.missing,
      (name) => catalogue.find(name),
      () => catalogue.entries.map(({ path }) => path),
      (entries) => ({ texts: describe(entries) }),
    );
  }

  async #toolsOf(context: Context): ReturnType<CodeRunnerOptions["tools"]> {
    const { catalogue, list } = await this.#catalogue(context);
    return {
      entries: catalogue.entries,
      missing: new Map(list.missing.flatMap((upstream) => this.#missing(upstream))),
      gateway: this.#gateway,
      search: async (query, limit) => (await catalogue.search(query, limit)).found,
    };
  }

  /** A gateway behind this one names its servers after its own name and a dot. */
  #missing({ upstream, message }: Unavailable): readonly (readonly [string, MissingServer])[] {
    const names = [upstream, ...upstream.split(".", 1)];
    const handler = names.map((name) => this.#gateway.upstreams?.get(name)).find((handler) => handler !== undefined);
    const started = async (context: Context): Promise<unknown> =>
      handler?.({ method: "server/discover", params: {} }, context);
    return names.map((name) => [identifier(name), { message, started }]);
  }

  #discovered(result: Result): Result {
    const { capabilities } = result;
    const known = isObject(capabilities) ? capabilities : {};
    const { tools = {}, resources = this.#hasResources ? {} : undefined } = known;
    const extensions = { ...(isObject(known["extensions"]) && known["extensions"]), [TASKS_EXTENSION]: {} };
    const all = { ...known, extensions, tools, ...(resources === undefined ? undefined : { resources }) };
    return withInstructions({ ...result, capabilities: all }, INSTRUCTIONS);
  }

  #isOurs(uri: unknown): boolean {
    return this.#hasResources && typeof uri === "string" && uri.startsWith(LIVE_URI);
  }

  /** A subscription to anything else too is the gateway's, which does not grant our tasks, so that they are polled. */
  #isForOurTasks({ taskIds = [], ...others }: SubscriptionFilter): boolean {
    const isOurs = taskIds.length > 0 && taskIds.every((id) => this.#tasks.get(id) === true);
    return isOurs && Object.keys(others).length === 0;
  }

  /** The resources of the sessions follow the last page of the gateway's. They are the caller's own. */
  async #listBoth(field: string, request: Request, context: Context): Promise<Result> {
    const theirs = await this.#gateway(request, context).catch((error: unknown): Result => {
      if (error instanceof McpError && error.code === METHOD_NOT_FOUND) return { resultType: "complete", [field]: [] };
      throw error;
    });
    if (typeof theirs["nextCursor"] === "string") return theirs;
    const ours = await this.#ask({ method: request.method, params: {} }, context);
    const items = [theirs[field], ours[field]].flatMap((list) => (Array.isArray(list) ? (list as unknown[]) : []));
    return { ...theirs, ttlMs: 0, cacheScope: "private", [field]: items };
  }
}
