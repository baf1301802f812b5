// Turns a language into an MCP server, with the language's tools and those that every live server has. Output goes to
// the caller as progress while the code runs, and cancelling the call interrupts the code.

import { callerKey } from "../core/caller-key.ts";
import type { Handler } from "../core/handler.ts";
import { EVALUATES_CODE } from "../core/handler-marks.ts";
import { ConnectionError } from "../core/errors.ts";
import type { LiveServer } from "../core/live-server.ts";
import { packageVersion } from "../core/files.ts";
import { defined, errorMessage } from "../core/values.ts";
import { HINT } from "../protocol/failed-evaluation.ts";
import { changedMethod } from "../protocol/lists.ts";
import type { ContentBlock, Tool } from "../protocol/model/index.ts";
import type { ToolContext } from "../server/call-context.ts";
import { createServer, type Server } from "../server/server.ts";
import { TrustedResult } from "../server/tool-result.ts";
import type { ToolAnswer } from "../server/returned-types.ts";
import {
  DEBUGGER_TOOLS,
  DEFAULT_SESSION,
  READ_ONLY,
  registerSessionTools,
  SESSION_ARGUMENT,
  sessionName,
} from "./common-tools.ts";
import { registerCheckpoints } from "./checkpoints.ts";
import { EVALUATION_SCHEMA, summaryOf, toEvaluation, type EvaluationRecord } from "./evaluation.ts";
import { evaluationBlock, stoppedText, testsText, withNotices } from "./evaluation-text.ts";
import type { GuestParams } from "./guest.ts";
import { liveServer } from "./live-server.ts";
import { registerResources, SessionListeners } from "./resources.ts";
import { DEFAULT_LIMITS, type GuestTests, type GuestText } from "./runtime.ts";
import { WAITS, type RunOptions, type RunPeer, type RunResult } from "./run.ts";
import { LIVE, type LiveOptions } from "./options.ts";
import { sandboxed } from "./sandbox.ts";
import type { Session } from "./session.ts";
import type { SessionLog } from "./session-log.ts";
import { closedError, Sessions } from "./sessions.ts";
import {
  fits,
  toCamelCase,
  toolInput,
  type ArgumentSpecs,
  type GuestTool,
  type Language,
  type Schema,
  type ToolArguments,
  type ToolInput,
} from "./tool.ts";

/** A server that evaluates code. Closing it ends all its processes; it cannot be used afterwards. */
export interface Live extends Server {
  readonly [EVALUATES_CODE]: true;
  /** For the operator of this process: the sessions of all owners, and what happens in them. */
  live(): ReadonlyMap<string, LiveServer>;
}

const TIMEOUT_ARGUMENT: ArgumentSpecs = { timeout: { type: "number", minimum: 0 } };
/** Tools that only look are seldom slow. */
const UNLISTED_TIMEOUT: ArgumentSpecs = { timeout: { type: "number", minimum: 0, unlisted: true } };

/** Explains at one tool what all have. */
const EXPLAINED: ArgumentSpecs = {
  timeout: { type: "number", minimum: 0, description: "Seconds, instead of the session's limit; 0: no limit" },
  session: { type: "string", description: "Name of the session; created on first use", default: DEFAULT_SESSION },
};

/** Lets the code of evaluations call tools, for code mode. */
export interface EvaluationHooks {
  /** Called for each evaluation before it starts. `report` sends a message to the caller as progress. */
  begin(context: ToolContext, report: (message: string) => void, log: SessionLog): Promise<EvaluationRun>;
}

export interface EvaluationRun extends RunPeer {
  /** Takes images out of what the code has printed, to be shown beside it. `isTruncated`: its end is missing. */
  takeMedia(text: string, isTruncated: boolean): string;
  /** How code reads a text that was cut. */
  outputCall(number: number): string;
  /**
   * Called when the evaluation has ended: what its result has beside its own text and facts. `isOk` is false if it
   * failed or was stopped.
   */
  result(isOk: boolean): { readonly content: readonly ContentBlock[]; readonly facts: object };
}

export function createLiveServer(language: Language, options: LiveOptions, hooks?: EvaluationHooks): Live {
  const { title, instructions } = language;
  const runtime = sandboxed(language.runtime, options.sandbox);
  const tools = language.hasDebugger === true ? [...language.tools, ...DEBUGGER_TOOLS] : language.tools;
  const sessions = new Sessions({
    runtime,
    limits: { ...DEFAULT_LIMITS, ...defined(options.limits ?? {}) },
    ceilings: defined(options.limits ?? {}),
    maxSessions: options.maxSessions ?? LIVE.maxSessions.default,
    idleMs: options.idleMs ?? LIVE.idleMs.default,
    onLoaded: () => server.notify({ method: changedMethod("tools") }),
    onBackground: (owner, session) => listeners.changed(owner, session, ["background"]),
    isOnlyTool: hooks !== undefined,
  });
  const info = { name: options.name ?? `catenary-${runtime.language}`, version: packageVersion(), title };
  const listeners = new SessionListeners();
  const server = createServer({
    ...info,
    instructions,
    // Our own errors are written for callers.
    maskErrors: false,
    onError: () => undefined,
  });
  const host: Host = { server, sessions, listeners, hasJournal: runtime.checkpoint === undefined, hooks };
  registerEvaluation(host, language.evaluate, "eval");
  for (const tool of tools) {
    if (tool.evaluates !== undefined) registerEvaluation(host, tool, "eval");
    else if (tool.isEvaluation === true) registerEvaluation(host, tool, tool.name);
    else registerTool(host, tool);
  }
  registerSessionTools(server, language, sessions);
  registerCheckpoints(server, runtime, sessions);
  registerResources(server, language, sessions);
  const libraries = new Map(tools.flatMap(({ name, library }) => (library === undefined ? [] : [[name, library]])));
  const close = async (): Promise<void> => {
    // At once, since a session that is starting may wait for what the runtime prepares.
    await Promise.all([server.close(), sessions.close(), runtime.close?.()]);
  };
  const list = withoutUnloaded(server, libraries, sessions);
  const listen = listeners.listen(server);
  const handler: Handler = (request, context) => {
    if (request.method === "tools/list") return list(request, context);
    return request.method === "subscriptions/listen" ? listen(request, context) : server(request, context);
  };
  const live = new Map([["", liveServer(language, sessions, hooks !== undefined)]]);
  return closable(server, handler, close, live);
}

/** What the tools of a live server share. */
interface Host {
  readonly server: Server;
  readonly sessions: Sessions;
  readonly listeners: SessionListeners;
  /** Whether the code of a session is remembered, to run it again. */
  readonly hasJournal: boolean;
  readonly hooks: EvaluationHooks | undefined;
}

/** Lists the tools of a library only to callers who have it loaded in a session. */
function withoutUnloaded(server: Server, libraries: ReadonlyMap<string, string>, sessions: Sessions): Handler {
  return async (request, context) => {
    const result = await server(request, context);
    if (libraries.size === 0) return result;
    const loaded = new Set(sessions.list(callerKey(context.caller, "sessions")).flatMap((session) => session.loaded));
    const isListed = ({ name }: Tool): boolean => {
      const library = libraries.get(name);
      return library === undefined || loaded.has(library);
    };
    return { ...result, tools: (result["tools"] as readonly Tool[]).filter(isListed) };
  };
}

/** Wraps the server so that it refuses calls once it is closed, since they would start processes that nothing ends. */
function closable(
  server: Server,
  handler: Handler,
  close: () => Promise<void>,
  operated: ReadonlyMap<string, LiveServer>,
): Live {
  let isClosed = false;
  const live = ((request, context) =>
    // Clients can still get the results of tasks from a closed server.
    isClosed && !request.method.startsWith("tasks/")
      ? Promise.reject(closedError())
      : handler(request, context)) as Live;
  const methods = Object.entries(server).map(([name, method]: [string, (...args: unknown[]) => unknown]) => {
    const value = (...args: unknown[]): unknown => {
      const result = method(...args);
      return result === server ? live : result;
    };
    return [name, { value }] as const;
  });
  const closeOnce = async (): Promise<void> => {
    isClosed = true;
    await close();
  };
  return Object.defineProperties(live, {
    ...Object.fromEntries(methods),
    [EVALUATES_CODE]: { value: true },
    live: { value: () => operated },
    close: { value: closeOnce },
    [Symbol.asyncDispose]: { value: closeOnce },
  });
}

type EvaluationAnswer = ToolAnswer | TrustedResult;

/** Our own code builds the result of an evaluation, so it need not be validated. */
const UNCHECKED = {
  "~standard": { version: 1, vendor: "catenary", validate: (value: unknown) => ({ value }) },
} as const;

/** Registers a tool whose guest request `op` is answered with an evaluation. */
function registerEvaluation(host: Host, tool: GuestTool, op: string): void {
  const { server, sessions, listeners, hasJournal, hooks } = host;
  const { evaluates } = tool;
  const evaluateTurn = async (
    turn: number,
    session: Session,
    args: ToolArguments,
    context: ToolContext,
  ): Promise<EvaluationAnswer> => {
    const startedAt = performance.now();
    const { log } = session;
    const reports = progressOf(context);
    const onOutput = (text: string): void => log.printed(turn, text);
    const peer = hooks === undefined ? undefined : await hooks.begin(context, reports.report, log);
    const running = run(sessions, session, op, args, { context, reports, onOutput, isEvaluation: true, peer });
    const result = await running.catch(refused);
    if ("content" in result) return result;
    if (result.outcome === "refused") return errorAnswer(withNotices(result, String(result.reason)));
    // The guest says so if there is nothing to evaluate in, such as no error.
    const { text: refusal, status: replied } = result.reply;
    if (refusal !== undefined && replied === undefined) return toolAnswer(result, session);
    const whole = toEvaluation(session.name, result, performance.now() - startedAt);
    const isOnlyTool = peer !== undefined;
    const record = isOnlyTool ? forCodeMode(whole, peer) : whole;
    const { evaluation, truncated } = log.shorten(record, session.limits, peer);
    const { status, values, notice } = evaluation;
    const withTiming = args["capture-time"] === true;
    const block = evaluationBlock(evaluation, { withTiming, timeoutMs: result.timeoutMs, isOnlyTool });
    // A text that was cut is a part of the whole one, which must not stay in memory with it.
    log.end(turn, status, block.text, truncated === undefined ? evaluation : structuredClone(evaluation));
    // Code that failed is kept only if it has defined something before.
    const hasDefined = status === "error" && evaluation.defined !== undefined;
    if (hasJournal && op === "eval" && (status === "ok" || hasDefined)) log.record(String(args["code"]), hasDefined);
    if (evaluation.defined !== undefined)
      listeners.changed(callerKey(context.caller, "sessions"), session.name, ["definitions", "transcript"]);
    if (evaluates === undefined) {
      const summary = summaryOf(evaluation, truncated);
      if (peer === undefined) return new TrustedResult([block], summary, status !== "ok");
      const { content, facts } = peer.result(status === "ok");
      return new TrustedResult([block, ...content], { ...summary, ...facts }, status !== "ok");
    }
    const isBare = status === "ok" && notice === undefined;
    return { content: [isBare ? { ...block, text: values.join("\n") } : block], isError: status !== "ok" };
  };
  const evaluate = async (callArguments: ToolArguments, context: ToolContext): Promise<EvaluationAnswer> => {
    const args = evaluates === undefined ? callArguments : withCode(evaluates, callArguments);
    const session = getSession(sessions, args, context);
    const { log } = session;
    const code = op === "eval" ? String(args["code"]) : `${op} ${JSON.stringify(args)}`;
    const client = context.caller.info?.name;
    const { session: _session, ...given } = args;
    const others = op === "eval" ? undefined : given;
    const turn = log.begin({ op, code, ...defined({ client, args: others }) });
    try {
      const answer = await evaluateTurn(turn, session, args, context);
      log.refuse(turn, answer);
      return answer;
    } catch (error) {
      log.refuse(turn, errorAnswer(errorMessage(error)));
      throw error;
    }
  };
  const isMain = op === "eval" && evaluates === undefined;
  const output = isMain ? { output: UNCHECKED, outputSchema: EVALUATION_SCHEMA } : undefined;
  server.tool(tool.name, { ...toolOptions({ ...tool, runsCode: true }, isMain), ...output }, evaluate);
}

/** Only other tools could use the handles of values. */
function forCodeMode({ handles: _handles, ...evaluation }: EvaluationRecord, peer: EvaluationRun): EvaluationRecord {
  const { values, stdout, truncated } = evaluation;
  const total = truncated.stdout;
  const shortOutput = peer.takeMedia(stdout, total !== false);
  return {
    ...evaluation,
    values: values.map((value) => peer.takeMedia(value, false)),
    stdout: shortOutput,
    // What the notes say is not left out.
    truncated: { ...truncated, stdout: total === false ? false : total - stdout.length + shortOutput.length },
  };
}

/** The definition of a tool that evaluates code, as it is listed. */
export function evaluationTool(tool: GuestTool): Tool {
  const { description, inputSchema } = toolOptions({ ...tool, runsCode: true }, true);
  const input = inputSchema as Tool["inputSchema"];
  return { name: tool.name, title: tool.title, description, inputSchema: input, outputSchema: EVALUATION_SCHEMA };
}

/** The arguments with the one that is evaluated under the name that the guest expects. */
function withCode(name: string, { [name]: code, ...args }: ToolArguments): ToolArguments {
  return { ...args, code };
}

function registerTool({ server, sessions }: Host, tool: GuestTool): void {
  // Without annotations, a tool counts as one that may change anything.
  const annotations = tool.readOnly === true ? { annotations: READ_ONLY } : undefined;
  const call = async (args: ToolArguments, context: ToolContext): Promise<ToolAnswer> => {
    const session = getSession(sessions, args, context);
    const answer = tool.answer?.(session, args);
    if (answer !== undefined) return textAnswer(answer);
    if (tool.whileBusy === true && session.state === "starting") return textAnswer(STARTING);
    if (tool.whileBusy === true && session.state === "busy") {
      const reply = await session.control(tool.name, guestParams(args));
      if (reply !== undefined) return textAnswer(reply);
    }
    const options = { context, reports: progressOf(context), isEvaluation: false };
    return toolAnswer(await run(sessions, session, tool.name, args, options), session);
  };
  server.tool(tool.name, { ...toolOptions(tool), ...annotations }, call);
}

const STARTING: GuestText = { text: "The session's process is starting." };

function toolOptions(tool: GuestTool, isMain = false): ToolOptions {
  const { title, description, runsCode, readOnly, arguments: toolArguments } = tool;
  const timeout = runsCode === true ? (readOnly === true ? UNLISTED_TIMEOUT : TIMEOUT_ARGUMENT) : undefined;
  const input = toolInput({ ...toolArguments, ...(isMain ? EXPLAINED : { ...timeout, ...SESSION_ARGUMENT }) });
  return { ...(isMain && { title }), description, ...input, ...(runsCode === true ? { task: "optional" } : undefined) };
}

interface ToolOptions extends ToolInput {
  readonly title?: string;
  readonly description: string;
  readonly task?: "optional";
}

/** Returns the session that the call names, and creates it if there is none. */
function getSession(sessions: Sessions, args: ToolArguments, context: ToolContext): Session {
  const session = sessions.get(callerKey(context.caller, "sessions"), sessionName(args));
  session.usedBy(context.caller.info?.name);
  return session;
}

/** Returns the arguments for the guest, without `session` and `timeout`, which are for the host. */
function guestParams(args: ToolArguments): GuestParams {
  const params: GuestParams = {};
  for (const name of Object.keys(args)) {
    if (name !== "session" && name !== "timeout") params[name.includes("-") ? toCamelCase(name) : name] = args[name];
  }
  return params;
}

function run(
  sessions: Sessions,
  session: Session,
  op: string,
  args: ToolArguments,
  { context, reports, onOutput, isEvaluation, peer }: CallOptions,
): Promise<RunResult> {
  const { timeout } = args;
  const { onProgress, onSilence, onWait } = reports;
  const timeoutMs = typeof timeout === "number" ? sessions.timeoutMs(timeout * 1000) : undefined;
  // One literal instead of spread parts, for speed: every evaluation comes through here.
  const options: RunOptions = { context, timeoutMs, onProgress, onOutput, onSilence, onWait, isEvaluation, peer };
  return session.run(op, guestParams(args), options);
}

interface CallOptions {
  readonly context: ToolContext;
  readonly reports: ProgressReports;
  readonly onOutput?: RunOptions["onOutput"];
  readonly isEvaluation: boolean;
  readonly peer?: RunOptions["peer"];
}

/** Reports output, and also silence to a caller that wants progress. Each report must be greater than the last. */
function progressOf(context: ToolContext): ProgressReports {
  let beats = 0;
  let printed = 0;
  const onProgress: RunOptions["onProgress"] = (text, total) => {
    printed = total;
    context.progress(total + beats, undefined, text);
  };
  const report = (message: string): void => {
    beats += 1;
    context.progress(printed + beats, undefined, message);
  };
  // A task shows the message, even if the caller wants no progress.
  const { progressToken } = context.meta;
  if (progressToken === undefined) return { onProgress, report };
  const reportState = (message: string, waits: boolean): void => {
    beats += 1;
    const params = { progressToken, progress: printed + beats, message, _meta: { [WAITS]: waits } };
    context.notify({ method: "notifications/progress", params });
  };
  return {
    onProgress,
    report,
    onWait: () => reportState("Waiting for another evaluation in this session", true),
    onSilence: (seconds) => reportState(`Still running after ${seconds} s`, false),
  };
}

interface ProgressReports extends Pick<RunOptions, "onProgress" | "onSilence" | "onWait"> {
  readonly report: (message: string) => void;
}

function toolAnswer(result: RunResult, session: Session): ToolAnswer {
  const { reply, outcome } = result;
  if (outcome !== "answered") {
    return errorAnswer(outcome === "refused" ? withNotices(result, String(result.reason)) : stoppedText(result));
  }
  const answer: Partial<GuestText> = fits(reply, TESTS) ? testsAnswer(reply as unknown as GuestTests) : reply;
  // The user's code can write to the channel too.
  const guestText: unknown = answer.text;
  const text = session.log.shortenText(typeof guestText === "string" ? guestText : "", session.limits.outputChars);
  if (typeof reply["code"] === "string") session.log.record(reply["code"]);
  return textAnswer({ ...answer, text: withNotices(result, text) });
}

const number = { type: "number" } as const;
const string = { type: "string" } as const;
const failure = { type: "object", properties: { name: string, reason: string }, required: ["name", "reason"] } as const;

/** The reply of a tool that runs tests. */
const TESTS: Schema = {
  type: "object",
  properties: {
    tests: {
      type: "object",
      properties: { passed: number, failed: number, skipped: number, failures: { type: "array", items: failure } },
      required: ["passed", "failed", "failures"],
    },
    output: string,
  },
  required: ["tests"],
};

function testsAnswer(reply: GuestTests): GuestText {
  const { passed, failed, skipped = 0 } = reply.tests;
  return { text: testsText(reply), data: { passed, failed, skipped }, isError: failed > 0 || passed + skipped === 0 };
}

/** A session that cannot start, such as for want of a program, says what to do. */
function refused(error: unknown): ToolAnswer & object {
  if (!(error instanceof ConnectionError) || error.hint === undefined) throw error;
  return errorAnswer(error.message, error.hint.text);
}

function errorAnswer(text: string, hint?: string): ToolAnswer {
  return textAnswer({ text, isError: true, ...defined({ hint }) });
}

function textAnswer({ text = "", data, hint, isError }: Partial<GuestText>): ToolAnswer {
  const meta = typeof hint === "string" ? { _meta: { [HINT]: hint } } : undefined;
  return {
    content: [{ type: "text", text, ...meta }],
    ...defined({ structuredContent: data }),
    isError: isError === true,
  };
}
