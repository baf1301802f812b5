// One run of code that calls tools: its inner calls with their budgets, what they ask and report, and what the result of
// the run says about them. Every message comes from the user's code, which can forge any, so each is checked here.

import { randomUUID } from "node:crypto";
import { Semaphore } from "../core/async.ts";
import { CANCEL_TOKEN, CancelToken } from "../core/cancel.ts";
import type { AskOptions, Caller, Context, Meta, Notification, Request } from "../core/handler.ts";
import { sanitize } from "../core/text.ts";
import { errorMessage, isObject } from "../core/values.ts";
import { callWithInput } from "../dialogue/calls/input-required.ts";
import { withoutTasks } from "../protocol/caller.ts";
import { contentProblem } from "../tools/content.ts";
import { McpError } from "../protocol/errors.ts";
import type { ContentBlock } from "../protocol/model/index.ts";
import { withoutSecrets } from "../core/redactor.ts";
import { hasTasks } from "../protocol/tasks.ts";
import type { ToolContext } from "../server/call-context.ts";
import { argumentsOf, jsonOf } from "./arguments.ts";
import {
  type Answer,
  answerOf,
  type CallFailure,
  CANCELLED,
  type CodeBudgets,
  overrun,
  protocolFailure,
  refusal,
  tooManyBytes,
} from "./call-answer.ts";
import { type CallRecord, callsText } from "./evaluation-text.ts";
import type { GuestReply } from "./guest.ts";
import { OfferedTools, type RunTool, type RunTools } from "./offered-tools.ts";
import { takeMedia } from "./media.ts";
import type { EvaluationRun } from "./server.ts";
import type { SessionLog } from "./session-log.ts";
import type { CallableTool } from "./runtime.ts";
import type { RunChannel } from "./run.ts";
import type { CallAdvice } from "./tool.ts";

export interface CodeRunOptions {
  readonly tools: (context: Context) => Promise<RunTools>;
  readonly budgets: CodeBudgets;
  readonly confirm: "destructive" | undefined;
  readonly advice: CallAdvice;
  /** Sends a message to the caller as progress. */
  readonly report: (message: string) => void;
  /** Has the texts that were too long for a result. */
  readonly log: Pick<SessionLog, "text">;
}

const MAX_FOUND = 50;
const FOUND = 10;
/** More content blocks than anybody looks at. */
const MAX_SHOWN = 50;
/** What code calls to read a text that was too long for a result. No path of a tool is the same. */
const OUTPUT = "output";
const OUTPUT_SCHEMA = { type: "object", properties: { number: { type: "integer" } }, required: ["number"] };
/** Calls that were cancelled; more are not named. */
const MAX_LISTED = 20;

export class CodeRun implements EvaluationRun {
  readonly #id = randomUUID().slice(0, 8);
  readonly #context: ToolContext;
  readonly #options: CodeRunOptions;
  readonly #caller: Caller;
  readonly #offered: OfferedTools;
  readonly #slots: Semaphore;
  /** The calls that have not ended. */
  readonly #open = new Map<CancelToken, () => void>();
  /** All calls and searches within the budget, by id: what each calls, and whether the code has its answer. */
  readonly #asked = new Map<number, { readonly what: string; isAnswered: boolean }>();
  readonly #records: CallRecord[] = [];
  readonly #shownBlocks: ContentBlock[] = [];
  /** Calls that need the consent of the caller, until it is asked. */
  #unasked: { readonly calls: WantedCall[]; readonly refusal: Promise<CallFailure | undefined> } | undefined;
  #shownBytes = 0;
  #notShown = 0;
  #messages = 0;
  #resultBytes = 0;
  #isOver = false;

  private constructor(context: ToolContext, options: CodeRunOptions, caller: Caller, offered: OfferedTools) {
    this.#context = context;
    this.#options = options;
    this.#caller = caller;
    this.#offered = offered;
    this.#slots = new Semaphore(options.budgets.maxParallel);
  }

  static async begin(context: ToolContext, options: CodeRunOptions): Promise<CodeRun> {
    const caller = withoutTaskSupport(context.caller);
    const { revision, signal } = context;
    const offered = await OfferedTools.read(options, {
      revision,
      caller,
      signal,
      notify: (notification) => context.notify(notification),
      ask: (request, asked) => context.ask(request, asked),
    });
    const run = new CodeRun(context, options, caller, offered);
    context.observer?.ran?.(run.#id);
    return run;
  }

  get tools(): readonly CallableTool[] {
    return this.#offered.all.entries;
  }

  receive(message: GuestReply, channel: RunChannel): void {
    const { call, tool, search, show, shownValues, unread } = message;
    if (show !== undefined) return this.#show(show);
    if (shownValues !== undefined) return this.#showValues(shownValues);
    if (Array.isArray(unread)) return this.#endUnread(unread);
    if (typeof call !== "number") return;
    const name = String(tool);
    const what = search === undefined ? (this.#offered.find(name)?.path ?? name) : this.#options.advice.search;
    void this.#answer(call, what, channel, () =>
      search === undefined ? this.#call(call, tool, message, channel) : this.#search(search, message),
    );
  }

  end(): void {
    this.#isOver = true;
    for (const [token, finish] of this.#open) {
      // Its handler may ignore the signal, and then never ends.
      finish();
      token.abort(new Error(CANCELLED.message));
    }
    this.#open.clear();
    this.#slots.releaseAll();
  }

  takeMedia(text: string, isTruncated: boolean): string {
    const dataOf = (block: ContentBlock): unknown => (block as { readonly data?: unknown }).data;
    // The code may have shown it already.
    const isShown = (block: ContentBlock): boolean =>
      this.#shownBlocks.some((shownBlock) => dataOf(shownBlock) === dataOf(block));
    return takeMedia(text, isTruncated, (block) => isShown(block) || this.#keep(block));
  }

  outputCall(number: number): string {
    return this.#options.advice.output(number);
  }

  result(isOk: boolean): ReturnType<EvaluationRun["result"]> {
    const calls = this.#records.map((record) => ({ ...record }));
    const content: ContentBlock[] = [...this.#shownBlocks];
    if (this.#notShown > 0) {
      const limits = `a run can show ${MAX_SHOWN} blocks and ${this.#options.budgets.maxResultBytes} bytes`;
      content.push({ type: "text", text: `[Notice] Blocks that are not shown: ${this.#notShown}; ${limits}` });
    }
    const unfinished = [...this.#asked.values()].filter(({ isAnswered }) => !isAnswered).map(({ what }) => what);
    if (isOk && unfinished.length > 0) {
      const names = [...new Set(unfinished)].slice(0, MAX_LISTED).map((name) => sanitize(name, MAX_SHOWN_NAME));
      const ended = `The code ended while calls were still running, so they were cancelled: ${names.join(", ")}`;
      content.push({ type: "text", text: `[Notice] ${ended}. ${this.#options.advice.wait}` });
    }
    if (calls.length > 0) content.push({ type: "text", text: callsText(calls) });
    return { content, facts: { calls } };
  }

  /**
   * Runs the work of one message, within the budget of calls, and sends its answer. Once the run is being stopped,
   * nothing is answered, so that its code does not go on.
   */
  async #answer(call: number, what: string, channel: RunChannel, work: () => Promise<Answer>): Promise<void> {
    if (this.#isOver) return;
    let answer: Answer;
    const asked = { what, isAnswered: false };
    const { maxCalls, maxResultBytes } = this.#options.budgets;
    this.#messages += 1;
    if (this.#messages > maxCalls) answer = { error: overrun(`The run has made ${maxCalls} calls`, "maxCalls") };
    else if (this.#resultBytes >= maxResultBytes) answer = { error: tooManyBytes(maxResultBytes) };
    else {
      this.#asked.set(call, asked);
      answer = await work().catch((error: unknown) => ({ error: protocolFailure(error) }));
    }
    if (this.#isOver) return;
    asked.isAnswered = true;
    const { record, repeated = "", ...sent } = answer;
    const copied = Buffer.byteLength(repeated);
    const left = maxResultBytes - this.#resultBytes;
    const bytes = channel.answer({ call, ...sent }, left + copied + ENVELOPE_BYTES) - copied;
    if (record !== undefined) record.bytes = Math.max(0, bytes - ENVELOPE_BYTES);
    if (bytes > left + ENVELOPE_BYTES) channel.answer({ call, error: tooManyBytes(maxResultBytes) });
    else this.#resultBytes += Math.max(0, bytes - ENVELOPE_BYTES);
  }

  /** The code has ended, and has not read the answers of these calls. */
  #endUnread(calls: readonly unknown[]): void {
    this.end();
    for (const call of calls) {
      const asked = this.#asked.get(call as number);
      if (asked !== undefined) asked.isAnswered = false;
    }
  }

  async #call(call: number, name: unknown, message: GuestReply, channel: RunChannel): Promise<Answer> {
    if (typeof name !== "string") return refusal("The name of a tool must be a string");
    if (name === OUTPUT) return this.#readOutput(message);
    const tool = this.#offered.find(name) ?? (await this.#offered.findLate(name));
    if (typeof tool === "string") return refusal(tool);
    const { arguments: json, values } = message;
    const args = values === undefined ? json : argumentsOf(values, tool.tool?.["inputSchema"]);
    if (!isObject(args)) {
      const { arguments: wanted } = this.#options.advice;
      return refusal(`The arguments of ${tool.path} must be ${wanted}: ${tool.signature}`);
    }
    if (this.#options.confirm !== undefined && tool.isDestructive) {
      const refused = await this.#askForConsent({ tool, args }, channel);
      if (refused !== undefined) return { error: refused };
    }
    const turn = this.#slots.acquire();
    if (turn !== undefined) await turn;
    if (this.#isOver) return { error: CANCELLED };
    const record: CallRecord = { tool: tool.path, ms: 0, bytes: 0 };
    this.#records.push(record);
    const begun = performance.now();
    const token = new CancelToken();
    const finish = (): void => {
      record.ms = Math.round((performance.now() - begun) * 10) / 10;
      if (this.#isOver) record.isError = true;
    };
    this.#open.set(token, finish);
    try {
      const request: Request = {
        method: "tools/call",
        params: { name: tool.name, arguments: args, ...this.#meta(call) },
      };
      const result = await callWithInput(
        this.#offered.all.gateway,
        request,
        this.#innerContext(call, tool, token, channel),
      );
      if (result["isError"] === true) record.isError = true;
      return { ...answerOf(result, tool.tool?.["outputSchema"]), record };
    } catch (error) {
      record.isError = true;
      return { error: protocolFailure(error), record };
    } finally {
      if (this.#open.delete(token)) finish();
      this.#slots.release();
    }
  }

  #readOutput({ arguments: json, values }: GuestReply): Answer {
    const args = values === undefined ? json : argumentsOf(values, OUTPUT_SCHEMA);
    const number = isObject(args) ? args["number"] : undefined;
    const text = typeof number === "number" ? this.#options.log.text(number) : undefined;
    return text === undefined
      ? refusal(`There is no output ${String(number).slice(0, 20)} in this session, or it is no longer kept`)
      : { result: { text } };
  }

  /** Resolves to undefined if the caller agrees. Calls that come at the same moment are one question. */
  #askForConsent(call: WantedCall, channel: RunChannel): Promise<CallFailure | undefined> {
    if (this.#unasked === undefined) {
      const calls: WantedCall[] = [];
      const ask = async (): Promise<CallFailure | undefined> => {
        await new Promise((resolve) => setTimeout(resolve, CONSENT_DELAY_MS));
        this.#unasked = undefined;
        return this.#isOver ? CANCELLED : this.#ask(calls, channel);
      };
      this.#unasked = { calls, refusal: ask() };
    }
    this.#unasked.calls.push(call);
    return this.#unasked.refusal;
  }

  async #ask(calls: readonly WantedCall[], channel: RunChannel): Promise<CallFailure | undefined> {
    const question = consentQuestion(calls);
    const refused = (why: string): CallFailure => ({
      kind: "refused",
      message: `${namesOf(calls)} did not run: ${why}`,
    });
    const token = new CancelToken();
    this.#open.set(token, () => undefined);
    const release = channel.holdDeadline();
    try {
      const { action, content } = await this.#context.ask(question, { signal: token.signal });
      const isAllowed = action === "accept" && isObject(content) && content["allow"] === true;
      return isAllowed ? undefined : refused("the user did not agree");
    } catch (error) {
      if (this.#isOver) return CANCELLED;
      const isUnable = error instanceof McpError && error.kind === "missing_capability";
      if (isUnable) return refused("the user must agree, and the client cannot ask (it has not declared elicitation)");
      return refused(`the client could not ask the user: ${errorMessage(error)}`);
    } finally {
      release();
      this.#open.delete(token);
    }
  }

  async #search(query: unknown, { limit }: GuestReply): Promise<Answer> {
    if (typeof query !== "string") return refusal("The words to search for must be a string");
    const wanted = typeof limit === "number" && limit >= 1 ? Math.min(Math.floor(limit), MAX_FOUND) : FOUND;
    const matches = await this.#offered.all.search(query, wanted);
    const structured = matches.map(({ path, signature, summary }) => ({ path, signature, summary }));
    return { result: { structured, text: "" } };
  }

  #showValues(values: unknown): void {
    try {
      this.#show(jsonOf(values));
    } catch {
      // The guest has checked them, so the message is forged.
    }
  }

  /** Invalid blocks can only come from forged messages, so they are dropped. */
  #show(content: unknown): void {
    const blocks: readonly unknown[] = Array.isArray(content) ? content : [content];
    for (const block of blocks) {
      if (!this.#isOver && contentProblem([block]) === undefined) this.#keep(block as ContentBlock);
    }
  }

  /** Returns whether the block will be shown. */
  #keep(block: ContentBlock): boolean {
    const bytes = Buffer.byteLength(JSON.stringify(block));
    const { maxResultBytes } = this.#options.budgets;
    const hasRoom = this.#shownBlocks.length < MAX_SHOWN && this.#shownBytes + bytes <= maxResultBytes;
    if (!hasRoom) this.#notShown += 1;
    else {
      this.#shownBytes += bytes;
      this.#shownBlocks.push(block);
    }
    return hasRoom;
  }

  /** Progress is wanted if the caller of the run wants it. The calls belong to its trace. */
  #meta(call: number): { _meta?: Meta } {
    const { progressToken, traceparent, tracestate, baggage } = this.#context.meta;
    const meta = {
      ...(progressToken === undefined ? undefined : { progressToken: `${this.#id}-${call}` }),
      ...(traceparent === undefined ? undefined : { traceparent }),
      ...(tracestate === undefined ? undefined : { tracestate }),
      ...(baggage === undefined ? undefined : { baggage }),
    };
    return Object.keys(meta).length === 0 ? {} : { _meta: meta };
  }

  /** The context of a call: the caller of the run, who is asked and gets progress and logs, and a signal of its own. */
  #innerContext(call: number, tool: RunTool, token: CancelToken, channel: RunChannel): Context {
    const outer = this.#context;
    return token.attachTo({
      [CANCEL_TOKEN]: token,
      revision: outer.revision,
      caller: this.#caller,
      ...(outer.logLevel === undefined ? undefined : { logLevel: outer.logLevel }),
      // The headers of the caller are about run-code.
      headersChecked: true,
      run: this.#id,
      notify: (notification) => this.#notify(tool, notification),
      ask: async (request, asked) => {
        const release = channel.holdDeadline();
        try {
          return await outer.ask(request, askOptions(call, token, asked));
        } finally {
          release();
        }
      },
    });
  }

  #notify(tool: RunTool, notification: Notification): void {
    if (this.#isOver) return;
    if (notification.method !== "notifications/progress") return this.#context.notify(notification);
    const { progress, total, message } = notification.params ?? {};
    const amount = typeof total === "number" ? `${String(progress)}/${total}` : String(progress);
    this.#options.report(`${tool.path}: ${typeof message === "string" ? message : amount}`);
  }
}

interface WantedCall {
  readonly tool: RunTool;
  readonly args: object;
}

/** How long further calls may come until the caller is asked: on a busy machine those of one moment come apart. */
const CONSENT_DELAY_MS = 100;
/** A question lists so many calls; of others, only the tool and their number. */
const MAX_ASKED = 20;
const MAX_SHOWN_ARGUMENTS = 300;
const MAX_SHOWN_NAME = 200;

function consentQuestion(calls: readonly WantedCall[]): Request {
  const listed = calls.slice(0, MAX_ASKED).map(({ tool, args }) => {
    const shownArguments = sanitize(withoutSecrets(JSON.stringify(args)), MAX_SHOWN_ARGUMENTS);
    return `- ${sanitize(tool.path, MAX_SHOWN_NAME)} ${shownArguments}`;
  });
  const rest = calls.slice(MAX_ASKED);
  const more = rest.length === 0 ? [] : [`- and ${rest.length} more calls of ${namesOf(rest)}`];
  const what = calls.length === 1 ? "a tool that may" : "tools that may";
  return {
    method: "elicitation/create",
    params: {
      mode: "form",
      message: [`The code wants to call ${what} destroy something:`, ...listed, ...more].join("\n"),
      requestedSchema: {
        type: "object",
        properties: { allow: { type: "boolean", title: calls.length === 1 ? "Allow this call" : "Allow these calls" } },
        required: ["allow"],
      },
    },
  };
}

/** The tools of the calls, each once. */
function namesOf(calls: readonly WantedCall[]): string {
  return [...new Set(calls.map(({ tool }) => sanitize(tool.path, MAX_SHOWN_NAME)))].join(", ");
}

/** What an answer has beside the result. */
const ENVELOPE_BYTES = 64;

/** An inner call is never a task, since the code waits for its result. */
function withoutTaskSupport(caller: Caller): Caller {
  return hasTasks(caller.capabilities) ? { ...caller, capabilities: withoutTasks(caller.capabilities) } : caller;
}

/** Keys of questions are unique in a run, and a question ends with its call. */
function askOptions(call: number, token: CancelToken, { key, signal }: AskOptions = {}): AskOptions {
  return { signal: signal ?? token.signal, ...(key === undefined ? undefined : { key: `${call}-${key}` }) };
}
