// Turns a language into an MCP server, with the language's tools and those that every live server has. Output goes to
// the caller as progress while the code runs, and cancelling the call interrupts the code.

import { EVALUATES_CODE } from "../core/handler.ts";
import type { ToolContext } from "../server/call-context.ts";
import { createServer, type Server } from "../server/server.ts";
import { TrustedResult } from "../server/tool-result.ts";
import type { ToolAnswer } from "../server/tools.ts";
import { EVALUATION_SCHEMA, evaluationText, stoppedText, toEvaluation, withNotices } from "./evaluation.ts";
import type { GuestParams } from "./guest.ts";
import { DEFAULT_LIMITS, type GuestText, type Limits } from "./runtime.ts";
import { getSession, registerSessionTools, SESSION_ARGUMENT } from "./session-tools.ts";
import type { RunResult, Session } from "./session.ts";
import { closedError, Sessions } from "./sessions.ts";
import {
  toCamelCase,
  toolInput,
  type ArgumentSpecs,
  type GuestTool,
  type Language,
  type ToolArguments,
} from "./tool.ts";

export interface LiveOptions {
  /** The name of the server. */
  readonly name?: string;
  /** The limits of each session; see `Limits`. */
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

const TIMEOUT_ARGUMENT: ArgumentSpecs = {
  timeout: {
    type: "number",
    min: 0,
    description: "Time limit in seconds, instead of the session's limit; 0 for no limit",
  },
};

export function createLiveServer(language: Language, options: LiveOptions): Live {
  const { runtime, title, instructions } = language;
  const given = Object.entries(options.limits ?? {}).filter(([, value]) => value !== undefined);
  const sessions = new Sessions({
    runtime,
    limits: { ...DEFAULT_LIMITS, ...Object.fromEntries(given) },
    maxSessions: options.maxSessions ?? MAX_SESSIONS,
    idleMs: options.idleMs ?? IDLE_MS,
  });
  const info = { name: options.name ?? `catenary-${runtime.language}`, version: "1", title };
  const server = createServer({ ...info, instructions, listChanged: false });
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

function registerEvaluate(server: Server, tool: GuestTool, sessions: Sessions): void {
  const { input, inputSchema } = toolInput({ ...tool.arguments, ...TIMEOUT_ARGUMENT, ...SESSION_ARGUMENT });
  const evaluate = async (args: ToolArguments, context: ToolContext): Promise<ToolAnswer | TrustedResult> => {
    const startedAt = performance.now();
    const session = getSession(sessions, args, context);
    const result = await run(session, "eval", args, context);
    if (result.outcome === "refused") return errorAnswer(withNotices(result, String(result.reason)));
    const evaluation = toEvaluation(session.name, result, performance.now() - startedAt);
    const text = evaluationText(evaluation, {
      withTiming: args["capture-time"] === true,
      timeoutMs: result.timeoutMs,
    });
    const isError = evaluation.status !== "ok";
    return new TrustedResult(text, evaluation, isError);
  };
  server.tool(
    tool.name,
    {
      title: tool.title,
      description: tool.description,
      input,
      inputSchema,
      output: UNCHECKED,
      outputSchema: EVALUATION_SCHEMA,
      annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
      task: "optional",
    },
    evaluate,
  );
}

/** Our own code builds the result of an evaluation, so it need not be validated. */
const UNCHECKED = {
  "~standard": { version: 1, vendor: "catenary", validate: (value: unknown) => ({ value }) },
} as const;

function registerTool(server: Server, tool: GuestTool, sessions: Sessions): void {
  const { input, inputSchema } = toolInput({
    ...tool.arguments,
    ...(tool.runsCode === true ? TIMEOUT_ARGUMENT : undefined),
    ...SESSION_ARGUMENT,
  });
  const annotations = tool.readOnly === true ? { readOnlyHint: true, openWorldHint: false } : { destructiveHint: true };
  server.tool(
    tool.name,
    {
      title: tool.title,
      description: tool.description,
      input,
      inputSchema,
      annotations,
      ...(tool.runsCode === true ? { task: "optional" } : undefined),
    },
    async (args: ToolArguments, context: ToolContext): Promise<ToolAnswer> => {
      const session = getSession(sessions, args, context);
      if (tool.whileBusy === true && session.state === "starting") return textAnswer(STARTING);
      if (tool.whileBusy === true && session.state === "busy") {
        const reply = await session.control(tool.name, guestParams(args));
        if (reply !== undefined) return textAnswer(reply);
      }
      return toolAnswer(await run(session, tool.name, args, context));
    },
  );
}

const STARTING: GuestText = { text: "The session's process is starting." };

/** Returns the arguments for the guest, without `session` and `timeout`, which are for the host. */
function guestParams(args: ToolArguments): GuestParams {
  const params: GuestParams = {};
  for (const name of Object.keys(args)) {
    if (name !== "session" && name !== "timeout") params[name.includes("-") ? toCamelCase(name) : name] = args[name];
  }
  return params;
}

function run(session: Session, op: string, args: ToolArguments, context: ToolContext): Promise<RunResult> {
  const { timeout } = args;
  return session.run(op, guestParams(args), {
    context,
    timeoutMs: typeof timeout === "number" ? timeout * 1000 : undefined,
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
    ...(reply.data === undefined ? undefined : { structuredContent: reply.data }),
    isError: reply.isError === true,
  };
}
