// The tools that the code of a session can call, in the main thread: the global names `tools`, `show` and `ToolError`. A
// call is a message to the host, and its answer settles a promise. The user's code may replace built-in functions, so
// those that are used here are saved.

import { receiveMessageOnPort } from "node:worker_threads";
import type { CallableTool } from "../runtime.ts";
import type { AnswerQueue, CallResult } from "./messages.ts";

const { parse, stringify } = JSON;
const { isArray } = Array;
const { defineProperty } = Object;
const NativePromise = Promise;
const NativeError: ErrorConstructor = Error;
const NativeTypeError = TypeError;
const NativeProxy = Proxy;
const laterTurn = setImmediate;
const { load, wait } = Atomics;

/** A blocked thread looks so often whether it is to be paused or terminated. */
const BLOCK_MS = 50;

/** More is refused, since the host would have to hold all of it. */
const MAX_ARGUMENT_CHARS = 5_000_000;

const NOT_RUNNING = "Tools can be called only while the code of a run is running";
const RUN_ENDED = "The call was cancelled, since the code that made it ended without awaiting it";
const NOT_SHOWN =
  "show() takes content that a tool has returned: a block such as an image or a resource link, an array of blocks, or " +
  "a value with `content`. Print other values with console.log().";

interface OpenCall {
  readonly job: number;
  readonly settle: (result: CallResult) => void;
}

/** Thrown if a tool reports an error. */
export class ToolError extends NativeError {
  override readonly name = "ToolError";
  /** The path of the tool. */
  readonly tool: string;
  readonly content: readonly unknown[];

  constructor(tool: string, message: string, content: readonly unknown[]) {
    super(message);
    this.tool = tool;
    this.content = content;
    defineProperty(this, "content", { enumerable: false });
    defineProperty(this, "name", { enumerable: false });
  }
}

export class ToolCalls {
  readonly #send: (json: string) => void;
  readonly #job: () => number | undefined;
  readonly #open = new Map<number, OpenCall>();
  /** By path and by name. */
  #known = new Map<string, CallableTool>();
  #calls = 0;
  /** The errors of calls that were cancelled. The result of the run names these calls. */
  readonly #cancelled = new WeakSet<object>();

  /** `job` returns the id of the job that runs. */
  constructor(send: (json: string) => void, job: () => number | undefined) {
    this.#send = send;
    this.#job = job;
  }

  /** The value of the global `tools`. */
  create(tools: readonly CallableTool[]): object {
    this.#known = new Map([
      ...tools.map((tool) => [tool.name, tool] as const),
      ...tools.map((tool) => [tool.path, tool] as const),
    ]);
    const root = {};
    for (const tool of tools) this.#add(root, tool);
    for (const [name, server] of Object.entries(root)) {
      if (typeof server === "object") defineProperty(root, name, { value: this.#withMissing(server as object, name) });
    }
    const catalogue = tools.map(({ path, signature, summary }) => ({ path, signature, summary }));
    const functions = { catalogue, search: this.search, call: this.call };
    for (const [name, value] of Object.entries(functions)) {
      defineProperty(root, name, { value, enumerable: false, configurable: true });
    }
    return this.#withMissing(root, "");
  }

  /** What the object lacks is a function, which fails when it is called, with the names that may be meant. */
  #withMissing(known: object, path: string): object {
    const get = (target: object, key: string | symbol): unknown => {
      // A value with a method `then` would be awaited, and one with `toJSON` would be called.
      const isName = typeof key === "string" && key !== "then" && key !== "toJSON";
      if (!isName || key in target) return (target as Record<string | symbol, unknown>)[key];
      const missing = path === "" ? key : `${path}.${key}`;
      return this.#withMissing((args?: unknown) => this.call(missing, args), missing);
    };
    return new NativeProxy(known, { get });
  }

  /** Calls a tool by its path or its name. */
  readonly call = async (path: string, args: unknown = {}): Promise<unknown> => {
    // The host knows the tools of servers that have started meanwhile, and what a wrong name is close to.
    const tool = this.#known.get(path) ?? { name: path, path, signature: "" };
    // Undefined if the object has a method `toJSON` that returns that.
    const json: string | undefined = isArray(args) ? undefined : stringify(args);
    if (typeof args !== "object" || args === null || json === undefined) {
      throw new NativeTypeError(`The arguments of ${tool.path} must be an object: ${tool.signature}`);
    }
    if (json.length > MAX_ARGUMENT_CHARS) {
      throw new NativeError(`The arguments of ${tool.path} have more than ${MAX_ARGUMENT_CHARS} characters`);
    }
    const { result, error } = await this.#request(`"tool":${stringify(tool.name)},"arguments":${json}`);
    // Thrown here and not where the answer arrives, so that the stack shows who called.
    if (error?.kind === "tool") {
      throw new ToolError(tool.path, error.message, error.content ?? [{ type: "text", text: error.message }]);
    }
    if (error !== undefined) throw this.#failure(error);
    return valueOf(result);
  };

  /** Finds tools by words. */
  readonly search = async (query: unknown, limit?: unknown): Promise<unknown> => {
    const { result, error } = await this.#request(
      `"search":${stringify(String(query))},"limit":${Number(limit) || 10}`,
    );
    if (error !== undefined) throw this.#failure(error);
    return result?.structured;
  };

  #failure({ kind, message }: NonNullable<CallResult["error"]>): Error {
    const failure = new NativeError(message);
    if (kind === "cancelled") this.#cancelled.add(failure);
    return failure;
  }

  /** Whether this is the error of a call that its code did not await. */
  isOfCancelled(error: unknown): boolean {
    return this.#cancelled.has(error as object);
  }

  /** Adds content that a tool has returned to the result of the run. */
  readonly show = (value: unknown): void => {
    const job = this.#job();
    if (job === undefined) throw new NativeError(NOT_RUNNING);
    const { content } = Object(value) as { readonly content?: unknown };
    const blocks: readonly unknown[] = isArray(value) ? value : isArray(content) ? content : [value];
    const isBlock = (block: unknown): boolean => typeof (Object(block) as { type?: unknown }).type === "string";
    if (blocks.length === 0 || !blocks.every(isBlock)) throw new NativeTypeError(NOT_SHOWN);
    this.#send(`{"show":${stringify(blocks)},"target":${job}}`);
  };

  /** Sends a call and blocks the thread until it is answered. If the run is stopped, the thread is terminated. */
  requestNow(body: string, answers: AnswerQueue): CallResult {
    const job = this.#job();
    if (job === undefined) throw new NativeError(NOT_RUNNING);
    this.#calls += 1;
    this.#send(`{"call":${this.#calls},"target":${job},${body}}`);
    for (;;) {
      const result = parse(nextAnswer(answers)) as CallResult;
      // Others belong to runs that were stopped.
      if (result.call === this.#calls) return result;
    }
  }

  settle(json: string): void {
    const result = parse(json) as CallResult;
    const open = this.#open.get(result.call);
    this.#open.delete(result.call);
    open?.settle(result);
  }

  /**
   * Ends the calls of a job, which the host cancels. If the job has ended, they fail. If it was abandoned, they never
   * settle, so that its code does not go on.
   */
  end(job: number, isAbandoned: boolean): void {
    const unread: number[] = [];
    for (const [call, open] of this.#open) {
      if (open.job !== job) continue;
      this.#open.delete(call);
      unread.push(call);
      if (!isAbandoned) open.settle({ call, error: { kind: "cancelled", message: RUN_ENDED } });
    }
    if (!isAbandoned && unread.length > 0) this.#send(`{"unread":${stringify(unread)},"target":${job}}`);
  }

  async #request(body: string): Promise<CallResult> {
    const job = this.#job();
    if (job === undefined) {
      // Later, so that code which tries again and again does not block the thread.
      await new NativePromise((resolve) => void laterTurn(resolve));
      throw new NativeError(NOT_RUNNING);
    }
    this.#calls += 1;
    const call = this.#calls;
    return new NativePromise((resolve) => {
      this.#open.set(call, { job, settle: resolve });
      this.#send(`{"call":${call},"target":${job},${body}}`);
    });
  }

  /** A path such as `notes.search` is the property `search` of the property `notes`. */
  #add(root: object, tool: CallableTool): void {
    const parts = tool.path.split(".");
    const last = parts.pop() ?? "";
    let at = root as Record<string, object>;
    for (const part of parts) {
      if (!Object.hasOwn(at, part)) defineProperty(at, part, { value: {}, enumerable: true, configurable: true });
      at = at[part] as Record<string, object>;
    }
    const value = (args?: unknown): Promise<unknown> => this.call(tool.path, args);
    defineProperty(value, "name", { value: tool.path });
    // A tool may have the name of an upstream.
    if (!Object.hasOwn(at, last)) defineProperty(at, last, { value, enumerable: true });
  }
}

function nextAnswer({ port, signal }: AnswerQueue): string {
  const counter = new Int32Array(signal);
  for (;;) {
    const seen = load(counter, 0);
    const received = receiveMessageOnPort(port);
    if (received !== undefined) return received.message as string;
    wait(counter, 0, seen, BLOCK_MS);
  }
}

/** Structured content as it is, or the text; otherwise both text and content. */
function valueOf(result: CallResult["result"]): unknown {
  const { structured, text = "", content } = result ?? {};
  if (structured === undefined) return content === undefined ? text : { text, content };
  const canHaveContent = typeof structured === "object" && structured !== null && !Object.hasOwn(structured, "content");
  if (content !== undefined && canHaveContent) {
    defineProperty(structured, "content", { value: content, enumerable: false, configurable: true, writable: true });
  }
  return structured;
}
