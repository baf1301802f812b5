// The tools that the code of one run may call. A tool of a server that was still starting when the run began is looked
// for again when it is called, once the server has started.

import { pause, withTimeout } from "../core/async.ts";
import type { Context, Handler } from "../core/handler.ts";
import { nearest } from "../core/options.ts";
import { withoutDiagnostics } from "../protocol/errors.ts";
import { notListed } from "../tools/search-tools.ts";
import { orList } from "./languages.ts";
import type { CallableTool } from "./runtime.ts";
import type { CallAdvice } from "./tool.ts";

/** A tool that the code of one caller may call. */
export interface RunTool extends CallableTool {
  /** Whether it may destroy something. */
  readonly isDestructive: boolean;
  /** Its definition. */
  readonly tool?: { readonly [field: string]: unknown };
}

/** A server whose tools the caller's list lacks, because it is still starting or has failed. */
export interface MissingServer {
  /** Why, in a sentence with its name. */
  readonly message: string;
  /** Resolves when the server has started. Rejects if it cannot be started. */
  started(context: Context): Promise<unknown>;
}

/** What one caller may call. */
export interface RunTools {
  readonly entries: readonly RunTool[];
  /** By the first part of the paths that their tools will have. */
  readonly missing: ReadonlyMap<string, MissingServer>;
  /** Answers `tools/call`: the gateway, with all its middleware. */
  readonly gateway: Handler;
  /** Finds tools by words, the best first. */
  search(
    query: string,
    limit: number,
  ): Promise<readonly { readonly path: string; readonly signature: string; readonly summary: string }[]>;
}

export interface OfferedToolsOptions {
  /** Reads the list of a caller. */
  readonly tools: (context: Context) => Promise<RunTools>;
  readonly advice: CallAdvice;
}

/** How long a call waits for the server that it names, as long as a list waits for one. */
const SERVER_START_MS = 15_000;
/** Between two looks at the list, if the server has started and the list does not have its tools yet. */
const LOOK_AGAIN_MS = 200;
const MAX_SUGGESTED = 3;

export class OfferedTools {
  readonly #read: () => Promise<RunTools>;
  readonly #context: Context;
  readonly #advice: CallAdvice;
  #offered: RunTools;
  #byName: ReadonlyMap<string, RunTool> = new Map();
  /** The servers that calls wait for. Resolve to the reason if the server has not started. */
  readonly #starting = new Map<string, Promise<string | undefined>>();

  private constructor(offered: RunTools, { tools, advice }: OfferedToolsOptions, context: Context) {
    this.#read = () => tools(context);
    this.#advice = advice;
    this.#context = context;
    this.#offered = offered;
    this.#index();
  }

  static async read(options: OfferedToolsOptions, context: Context): Promise<OfferedTools> {
    return new OfferedTools(await options.tools(context), options, context);
  }

  get all(): RunTools {
    return this.#offered;
  }

  /** Finds a tool by its name or path. */
  find(name: string): RunTool | undefined {
    return this.#byName.get(name);
  }

  /** Finds a tool once its server has started. Resolves to a message if there is none. */
  async findLate(path: string): Promise<RunTool | string> {
    const [server = ""] = path.split(".", 1);
    if (this.#offered.missing.has(server)) {
      let starting = this.#starting.get(server);
      if (starting === undefined) {
        starting = this.#waitFor(server).finally(() => this.#starting.delete(server));
        this.#starting.set(server, starting);
      }
      const problem = await starting;
      if (problem !== undefined) return `${path} cannot be called: ${problem}`;
    }
    return this.find(path) ?? this.#noSuchTool(path);
  }

  /** Waits until the list has the tools of the server. Resolves to the reason if it does not get them. */
  async #waitFor(server: string): Promise<string | undefined> {
    const until = performance.now() + SERVER_START_MS;
    const { signal } = this.#context;
    const late = `The server ${server} has not started within ${SERVER_START_MS / 1_000} s; run the code again later`;
    for (;;) {
      const missing = this.#offered.missing.get(server);
      if (missing === undefined) return undefined;
      const leftMs = until - performance.now();
      if (leftMs <= 0) return late;
      try {
        await withTimeout(
          leftMs,
          signal,
          (limitedSignal) => missing.started({ ...this.#context, signal: limitedSignal }),
          late,
        );
        this.#offered = await this.#read();
      } catch (error) {
        return withoutDiagnostics(error);
      }
      this.#index();
      if (this.#offered.missing.has(server)) await pause(LOOK_AGAIN_MS, signal);
    }
  }

  #index(): void {
    const { entries } = this.#offered;
    const byPath = entries.map((tool) => [tool.path, tool] as const);
    this.#byName = new Map([...byPath, ...entries.map((tool) => [tool.name, tool] as const)]);
  }

  /** Suggests tools with a similar path or name, or with the same name on another server. */
  #noSuchTool(name: string): string {
    const paths = this.#offered.entries.map(({ path }) => path);
    const servers = paths.flatMap((path) => (path.includes(".") ? [path.slice(0, path.indexOf("."))] : []));
    let similar = nearest(name, new Set([...this.#byName.keys(), ...servers]));
    if (similar.length === 0) {
      const last = nearest(lastPart(name), new Set(paths.map(lastPart)), 1);
      similar = last.flatMap((part) => paths.filter((path) => lastPart(path) === part));
    }
    const { prefix = "", search } = this.#advice;
    const near = [...new Set(similar.map((path) => `${prefix}${this.find(path)?.path ?? path}`))].slice(
      0,
      MAX_SUGGESTED,
    );
    const suggestion = near.length === 0 ? "" : `did you mean ${orList(near)}? If not, `;
    const reasons = [...new Set([...this.#offered.missing.values()].map(({ message }) => message))];
    const rest = notListed(reasons).map((line) => `. ${line}`);
    return `There is no tool ${name.slice(0, 100)}; ${suggestion}find it with ${search}${rest.join("")}`;
  }
}

function lastPart(path: string): string {
  return path.slice(path.lastIndexOf(".") + 1);
}
