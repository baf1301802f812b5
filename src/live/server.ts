// Turns a language into an MCP server, with the language's tools and those that every live server has: list, interrupt,
// reset and close sessions, change their limits, and the usage guide. Output goes to the caller as progress while the
// code runs, and cancelling the call interrupts the code.

import { readFile } from "node:fs/promises";
import { packageFile } from "../core/files.ts";
import { EVALUATES_CODE } from "../core/handler.ts";
import { defined } from "../core/values.ts";
import type { ToolAnnotations } from "../protocol/model/index.ts";
import type { ToolContext } from "../server/call-context.ts";
import { createServer, type Server } from "../server/server.ts";
import { TrustedResult } from "../server/tool-result.ts";
import type { ToolAnswer } from "../server/tools.ts";
import { EVALUATION_SCHEMA, evaluationText, stoppedText, toEvaluation, withNotices } from "./evaluation.ts";
import type { GuestParams } from "./guest.ts";
import { DEFAULT_LIMITS, LIMIT_BOUNDS, type GuestText, type Limits } from "./runtime.ts";
import type { RunResult, Session } from "./session.ts";
import { closedError, Sessions } from "./sessions.ts";
import {
  toCamelCase,
  toolInput,
  type ArgumentSpecs,
  type GuestTool,
  type Language,
  type ToolArguments,
  type ToolInput,
} from "./tool.ts";

/** Options of live servers in every language. */
export interface LiveOptions {
  /** The name of the server. */
  readonly name?: string;
  /**
   * The limits of each session; see `Limits`. A limit that is set here is also the most that a caller can choose. The
   * other ones have a default, and callers can change them.
   */
  readonly limits?: Partial<Limits>;
  /** How many sessions may have a process at once; 32 by default. */
  readonly maxSessions?: number;
  /** Milliseconds after which the process of an idle session is ended; 30 minutes by default, 0 for never. */
  readonly idleMs?: number;
}

/** A server that evaluates code. Closing it ends all its processes; it cannot be used afterwards. */
export interface Live extends Server {
  readonly [EVALUATES_CODE]: true;
}

const MAX_SESSIONS = 32;
const IDLE_MS = 30 * 60_000;

const DEFAULT_SESSION = "main";

const SESSION_ARGUMENT: ArgumentSpecs = {
  session: { type: "string", description: "Name of the session; created on first use", default: DEFAULT_SESSION },
};

/** Accepted and ignored, since a model may pass `session` to every tool. */
const IGNORED_SESSION: ArgumentSpecs = {
  session: { type: "string", description: "Ignored: this tool applies to all sessions" },
};

const TIMEOUT_ARGUMENT: ArgumentSpecs = {
  timeout: {
    type: "number",
    minimum: 0,
    description: "Time limit in seconds, instead of the session's limit, up to that of the server; 0 for no limit",
  },
};

const LIMIT_ARGUMENTS: ArgumentSpecs = {
  timeout: { type: "number", description: "Seconds that an evaluation may take; 0 for no limit" },
  "max-output": { type: "integer", description: "Characters of output to keep, for stdout and stderr each" },
  "print-length": { type: "integer", description: "Elements of a collection to print" },
  "print-depth": { type: "integer", description: "How deep to print a value" },
  memory: { type: "integer", description: "Megabytes of heap; takes effect at the next reset" },
};

const LIMIT_NAMES: Readonly<Record<string, keyof Limits>> = {
  timeout: "timeoutMs",
  "max-output": "outputChars",
  "print-length": "printLength",
  "print-depth": "printDepth",
  memory: "memoryMb",
};

export function createLiveServer(language: Language, options: LiveOptions): Live {
  const { runtime, title, instructions } = language;
  const sessions = new Sessions({
    runtime,
    limits: { ...DEFAULT_LIMITS, ...defined(options.limits ?? {}) },
    ceilings: defined(options.limits ?? {}),
    maxSessions: options.maxSessions ?? MAX_SESSIONS,
    idleMs: options.idleMs ?? IDLE_MS,
  });
  const info = { name: options.name ?? `catenary-${runtime.language}`, version: "1", title };
  const server = createServer({
    ...info,
    instructions,
    listChanged: false,
    // Our own errors are written for callers.
    maskErrors: false,
    onError: () => undefined,
  });
  registerEvaluate(server, language.evaluate, sessions);
  for (const tool of language.tools) registerTool(server, tool, sessions);
  registerSessionTools(server, language, sessions);
  return closable(server, async () => {
    await Promise.all([server.close(), sessions.close()]);
    await runtime.close?.();
  });
}

/** Wraps the server so that it refuses calls once it is closed, since they would start processes that nothing ends. */
function closable(server: Server, close: () => Promise<void>): Live {
  let isClosed = false;
  const live = ((request, context) =>
    // Clients can still get the results of tasks from a closed server.
    isClosed && !request.method.startsWith("tasks/")
      ? Promise.reject(closedError())
      : server(request, context)) as Live;
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
    close: { value: closeOnce },
  });
}

/** Our own code builds the result of an evaluation, so it need not be validated. */
const UNCHECKED = {
  "~standard": { version: 1, vendor: "catenary", validate: (value: unknown) => ({ value }) },
} as const;

function registerEvaluate(server: Server, tool: GuestTool, sessions: Sessions): void {
  const evaluate = async (args: ToolArguments, context: ToolContext): Promise<ToolAnswer | TrustedResult> => {
    const startedAt = performance.now();
    const session = getSession(sessions, args, context);
    const result = await run(sessions, session, "eval", args, context);
    if (result.outcome === "refused") return errorAnswer(withNotices(result, String(result.reason)));
    const evaluation = toEvaluation(session.name, result, performance.now() - startedAt);
    const withTiming = args["capture-time"] === true;
    const text = evaluationText(evaluation, { withTiming, timeoutMs: result.timeoutMs });
    return new TrustedResult(text, evaluation, evaluation.status !== "ok");
  };
  const annotations = { readOnlyHint: false, destructiveHint: true, openWorldHint: true };
  const output = { output: UNCHECKED, outputSchema: EVALUATION_SCHEMA };
  server.tool(tool.name, { ...toolOptions({ ...tool, runsCode: true }), ...output, annotations }, evaluate);
}

function registerTool(server: Server, tool: GuestTool, sessions: Sessions): void {
  const annotations = tool.readOnly === true ? READ_ONLY : { destructiveHint: true };
  const call = async (args: ToolArguments, context: ToolContext): Promise<ToolAnswer> => {
    const session = getSession(sessions, args, context);
    if (tool.whileBusy === true && session.state === "starting") return textAnswer(STARTING);
    if (tool.whileBusy === true && session.state === "busy") {
      const reply = await session.control(tool.name, guestParams(args));
      if (reply !== undefined) return textAnswer(reply);
    }
    if (tool.evaluates !== undefined) return bareAnswer(session, tool.evaluates, args, context);
    return toolAnswer(await run(sessions, session, tool.name, args, context));
  };
  const bareAnswer = async (
    session: Session,
    argument: string,
    { [argument]: code, ...args }: ToolArguments,
    context: ToolContext,
  ): Promise<ToolAnswer> => {
    const startedAt = performance.now();
    const result = await run(sessions, session, "eval", { ...args, code }, context);
    if (result.outcome === "refused") return toolAnswer(result);
    const evaluation = toEvaluation(session.name, result, performance.now() - startedAt);
    const isBare = evaluation.status === "ok" && evaluation.notice === undefined;
    if (isBare) return textAnswer({ text: evaluation.values.join("\n") });
    const text = evaluationText(evaluation, { withTiming: false, timeoutMs: result.timeoutMs });
    return textAnswer({ text, isError: evaluation.status !== "ok" });
  };
  server.tool(tool.name, { ...toolOptions(tool), annotations }, call);
}

const READ_ONLY: ToolAnnotations = { readOnlyHint: true, openWorldHint: false };
const STARTING: GuestText = { text: "The session's process is starting." };

function toolOptions({ title, description, runsCode, arguments: own }: GuestTool): ToolInput & ToolTexts {
  const input = toolInput({ ...own, ...(runsCode === true ? TIMEOUT_ARGUMENT : undefined), ...SESSION_ARGUMENT });
  return { title, description, ...input, ...(runsCode === true ? { task: "optional" } : undefined) };
}

interface ToolTexts {
  readonly title: string;
  readonly description: string;
  readonly task?: "optional";
}

/** Returns the session that the call names, and creates it if there is none. */
function getSession(sessions: Sessions, args: ToolArguments, context: ToolContext): Session {
  return sessions.get(ownerOf(context), sessionName(args));
}

function sessionName({ session }: ToolArguments): string {
  return (session as string | undefined) ?? DEFAULT_SESSION;
}

/** Sessions belong to the authenticated principal. Unauthenticated callers share theirs. */
function ownerOf({ caller }: ToolContext): string {
  return caller.principal ?? "";
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
  context: ToolContext,
): Promise<RunResult> {
  const { timeout } = args;
  return session.run(op, guestParams(args), {
    context,
    timeoutMs: typeof timeout === "number" ? sessions.timeoutMs(timeout * 1000) : undefined,
    onProgress: (text, total) => context.progress(total, undefined, text),
  });
}

function toolAnswer(result: RunResult): ToolAnswer {
  const { text = "" } = result.reply as Partial<GuestText>;
  if (result.outcome === "answered") return textAnswer({ ...result.reply, text: withNotices(result, text) });
  return errorAnswer(result.outcome === "refused" ? withNotices(result, String(result.reason)) : stoppedText(result));
}

function errorAnswer(text: string): ToolAnswer {
  return { content: [{ type: "text", text }], isError: true };
}

function textAnswer(reply: Partial<GuestText>): ToolAnswer {
  return {
    content: [{ type: "text", text: reply.text ?? "" }],
    ...defined({ structuredContent: reply.data }),
    isError: reply.isError === true,
  };
}

/** The tools that every live server has. None of them waits for an evaluation. */
function registerSessionTools(server: Server, { title, runtime }: Language, sessions: Sessions): void {
  const add = (
    name: string,
    options: ToolTexts & { readonly specs?: ArgumentSpecs; readonly annotations: ToolAnnotations },
    answer: (name: string, owner: string, args: ToolArguments) => string | Promise<string>,
  ): void => {
    const { specs = SESSION_ARGUMENT, ...texts } = options;
    server.tool(name, { ...texts, ...toolInput(specs) }, (args: ToolArguments, context: ToolContext) =>
      answer(sessionName(args), ownerOf(context), args),
    );
  };
  const forAll = { specs: IGNORED_SESSION, annotations: READ_ONLY };
  const description = `How to work with these ${title} sessions. Read it first.`;
  add("get-usage-guide", { title: "Usage guide", description, ...forAll }, () =>
    // Like the Lisp sources, it ships in src/.
    readFile(packageFile(`src/live/${runtime.language}/guide.md`), "utf8"),
  );
  add(
    "list-sessions",
    { title: "List sessions", description: "List the sessions and what each is doing.", ...forAll },
    (_name, owner) => listText(sessions.list(owner)),
  );
  add(
    "interrupt-session",
    {
      title: "Interrupt",
      description: "Stop what a session is evaluating. Its definitions are kept if possible.",
      annotations: { destructiveHint: false },
    },
    async (name, owner) => {
      const wasRunning = await sessions.find(owner, name)?.interrupt();
      return wasRunning === true ? `Interrupted session ${name}.` : `Nothing is running in session ${name}.`;
    },
  );
  add(
    "reset-session",
    {
      title: "Reset",
      description: "End the session's process. All definitions are lost, and the next evaluation starts a new process.",
      annotations: { destructiveHint: true },
    },
    async (name, owner, args) => {
      const session = sessions.find(owner, name);
      // The default session counts as existing even before its first use.
      if (session === undefined && args["session"] !== undefined) return `There is no session ${name} to reset.`;
      await session?.end(undefined);
      return "Session reset successfully.";
    },
  );
  add(
    "close-session",
    {
      title: "Close",
      description: "End a session's process and forget its name and limits.",
      annotations: { destructiveHint: true },
    },
    async (name, owner) =>
      (await sessions.remove(owner, name)) ? `Closed session ${name}.` : `There is no session ${name}.`,
  );
  add(
    "configure-limits",
    {
      title: "Limits",
      description: "Show the limits of a session, and change those that are given.",
      specs: { ...LIMIT_ARGUMENTS, ...SESSION_ARGUMENT },
      annotations: { destructiveHint: false, idempotentHint: true },
    },
    (name, owner, args) => {
      const session = sessions.get(owner, name);
      session.limits = changeLimits(session.limits, args, sessions.ceilings);
      return limitsText(session);
    },
  );
}

function changeLimits(limits: Limits, args: ToolArguments, ceilings: Partial<Limits>): Limits {
  const changed: { -readonly [Key in keyof Limits]: number } = { ...limits };
  for (const [argument, limit] of Object.entries(LIMIT_NAMES)) {
    if (args[argument] === undefined) continue;
    const factor = limit === "timeoutMs" ? 1000 : 1;
    const [least, most] = LIMIT_BOUNDS[limit];
    // 0 means no limit.
    const ceiling = ceilings[limit] || Infinity;
    const min = limit === "timeoutMs" && ceiling < Infinity ? 0.001 : least / factor;
    const max = Math.min(most, ceiling) / factor;
    const value = Number(args[argument]);
    if (value < min || value > max) {
      const why = ceiling < most ? ", which the operator of this server has set as the most" : "";
      throw new Error(`${argument} must be from ${min} to ${max}${why}; got ${value}`);
    }
    changed[limit] = value * factor;
  }
  return changed;
}

function limitsText({ limits, memoryMb: current, state }: Session): string {
  const { timeoutMs, outputChars, printLength, printDepth, memoryMb } = limits;
  const until = state === "stopped" || current === memoryMb ? "" : ` from the next reset on; ${current} MB until then`;
  return [
    "Current limits:",
    `  timeout: ${timeoutMs === 0 ? "none (WARNING: evaluations may run forever)" : `${timeoutMs / 1000} seconds`}`,
    `  max-output: ${outputChars} characters`,
    `  print-length: ${printLength} elements`,
    `  print-depth: ${printDepth} levels`,
    `  memory: ${memoryMb} MB${until}`,
  ].join("\n");
}

function listText(sessions: readonly Session[]): string {
  if (sessions.length === 0) return "There are no sessions yet; the first evaluation creates one.";
  return [`${sessions.length} ${sessions.length === 1 ? "session" : "sessions"}:`, ...sessions.map(sessionLine)].join(
    "\n",
  );
}

function sessionLine({ name, state, running, waiting, evaluations, version }: Session): string {
  const current = running === undefined ? "" : ` (${running.op} for ${Math.round(running.ms)} ms)`;
  const queue = waiting === 0 ? "" : `, ${waiting} waiting`;
  const runtime = version === "" ? "" : `, ${version}`;
  return `  ${name}: ${state}${current}${queue}, ${evaluations} ${evaluations === 1 ? "evaluation" : "evaluations"}${runtime}`;
}
