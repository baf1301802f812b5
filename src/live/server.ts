// A language as an MCP server: its own tools, and those that every live server has. A call names a session, or means
// the one called main; an evaluation's output goes out as progress while it runs, and cancelling the call stops it.

import { EVALUATES_CODE } from "../core/evaluates-code.ts";
import { createServer, type Server } from "../server/server.ts";
import type { ToolContext } from "../server/call-context.ts";
import { MadeResult } from "../server/tool-result.ts";
import type { ToolAnswer } from "../server/tools.ts";
import { camel, checked, type Given, type Arguments, type GuestTool, type Language } from "./tool.ts";
import { registerCommon, SESSION, sessionOf } from "./session-tools.ts";
import { answerText, evaluationOf, evaluationText, EVALUATION_SCHEMA, stopText } from "./evaluation.ts";
import type { Filled } from "./guest.ts";
import { DEFAULT_LIMITS, type GuestText, type Limits } from "./runtime.ts";
import type { Ran, Session } from "./session.ts";
import { closed, Sessions } from "./sessions.ts";

export interface LiveOptions {
  /** What the server is called. */
  readonly name?: string;
  /** What each session may take; see `Limits`. */
  readonly limits?: Partial<Limits>;
  /** Sessions at once; 32. */
  readonly sessions?: number;
  /** Milliseconds of rest after which a session's process is ended; 30 minutes, and 0 means never. */
  readonly idle?: number;
}

/** A server that evaluates code. Closing it ends all its processes, and it is of no use after that. */
export interface Live extends Server {
  readonly [EVALUATES_CODE]: true;
}

const MOST_SESSIONS = 32;
const IDLE_MS = 30 * 60_000;

const TIMEOUT: Arguments = {
  timeout: {
    type: "number",
    least: 0,
    description: "Seconds that it may take, in the place of the session's limit; 0: no end",
  },
};

export function liveServer(language: Language, options: LiveOptions): Live {
  const { runtime, title, instructions } = language;
  const said = Object.entries(options.limits ?? {}).filter(([, value]) => value !== undefined);
  const sessions = new Sessions({
    runtime,
    limits: { ...DEFAULT_LIMITS, ...Object.fromEntries(said) },
    most: options.sessions ?? MOST_SESSIONS,
    idleMs: options.idle ?? IDLE_MS,
  });
  const server = createServer({
    name: options.name ?? `catenary-${runtime.language}`,
    version: "1",
    title,
    instructions,
    listChanged: false,
  });
  registerEvaluate(server, language.evaluate, sessions);
  for (const tool of language.tools) registerTool(server, tool, sessions);
  registerCommon(server, language, sessions);
  return closing(server, async () => {
    await Promise.all([server.close(), sessions.close()]);
    await runtime.close?.();
  });
}

/** The server, until it is closed: what came later would start processes that nobody ends. */
function closing(server: Server, close: () => Promise<void>): Live {
  let isClosed = false;
  const live = ((request, context) =>
    // Whoever waits for a task is still told what became of it.
    isClosed && !request.method.startsWith("tasks/") ? Promise.reject(closed()) : server(request, context)) as Live;
  const own = Object.entries(server).map(([name, method]: [string, (...args: unknown[]) => unknown]) => {
    const value = (...args: unknown[]): unknown => {
      const answer = method(...args);
      return answer === server ? live : answer;
    };
    return [name, { value }] as const;
  });
  const end = async (): Promise<void> => {
    isClosed = true;
    await close();
  };
  return Object.defineProperties(live, { ...Object.fromEntries(own), [EVALUATES_CODE]: { value: true }, close: { value: end } });
}

function registerEvaluate(server: Server, tool: GuestTool, sessions: Sessions): void {
  const { input, inputSchema } = checked({ ...tool.arguments, ...TIMEOUT, ...SESSION });
  const evaluate = async (args: Given, context: ToolContext): Promise<ToolAnswer | MadeResult> => {
    const begun = performance.now();
    const session = sessionOf(sessions, args, context);
    const ran = await run(session, "eval", args, context);
    if (ran.end === "refused") return failed(answerText(ran, String(ran.why)));
    const evaluation = evaluationOf(session.name, ran, performance.now() - begun);
    const text = evaluationText(evaluation, { withTiming: args["capture-time"] === true, timeoutMs: ran.timeoutMs });
    const isError = evaluation.status !== "ok";
    return new MadeResult(text, evaluation, isError);
  };
  server.tool(
    tool.name,
    {
      title: tool.title,
      description: tool.description,
      input,
      inputSchema,
      output: ANYTHING,
      outputSchema: EVALUATION_SCHEMA,
      annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: true },
      task: "optional",
    },
    evaluate,
  );
}

/** What we have made ourselves need not be checked. */
const ANYTHING = {
  "~standard": { version: 1, vendor: "catenary", validate: (value: unknown) => ({ value }) },
} as const;

function registerTool(server: Server, tool: GuestTool, sessions: Sessions): void {
  const { input, inputSchema } = checked({
    ...tool.arguments,
    ...(tool.runsCode === true ? TIMEOUT : undefined),
    ...SESSION,
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
    async (args: Given, context: ToolContext): Promise<ToolAnswer> => {
      const session = sessionOf(sessions, args, context);
      if (tool.atOnce === true && session.state === "starting") return textAnswer(STARTING);
      if (tool.atOnce === true && session.state === "busy") {
        const said = await session.aside(tool.name, params(args));
        if (said !== undefined) return textAnswer(said);
      }
      return ranAnswer(await run(session, tool.name, args, context));
    },
  );
}

const STARTING: GuestText = { text: "The session's process is starting." };

/** The arguments that are the guest's own. */
function params(args: Given): Filled {
  const own: Filled = {};
  for (const name of Object.keys(args)) {
    if (name !== "session" && name !== "timeout") own[name.includes("-") ? camel(name) : name] = args[name];
  }
  return own;
}

function run(session: Session, op: string, args: Given, context: ToolContext): Promise<Ran> {
  const { timeout } = args;
  return session.run(op, params(args), {
    context,
    timeoutMs: typeof timeout === "number" ? timeout * 1000 : undefined,
    tell: (text, total) => context.progress(total, undefined, text),
  });
}

function ranAnswer(ran: Ran): ToolAnswer {
  const { text = "" } = ran.reply as Partial<GuestText>;
  if (ran.end === "answered") return textAnswer({ ...ran.reply, text: answerText(ran, text) });
  return failed(ran.end === "refused" ? answerText(ran, String(ran.why)) : stopText(ran));
}

function failed(text: string): ToolAnswer {
  return { content: [{ type: "text", text }], isError: true };
}

function textAnswer(said: Partial<GuestText>): ToolAnswer {
  return {
    content: [{ type: "text", text: said.text ?? "" }],
    ...(said.data === undefined ? undefined : { structuredContent: said.data }),
    isError: said.isError === true,
  };
}
