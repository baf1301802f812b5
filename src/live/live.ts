// A language as an MCP server: its own tools, and those that every live server has. A call names a session, or means
// the one called main; an evaluation's output goes out as progress while it runs, and cancelling the call stops it.

import { LIVE } from "../core/live.ts";
import { createServer, type Server } from "../server/server.ts";
import type { ToolContext } from "../server/call-context.ts";
import { MadeResult } from "../server/tool-result.ts";
import type { ToolAnswer } from "../server/tools.ts";
import { camel, checked, type Given } from "./arguments.ts";
import { registerCommon } from "./common-tools.ts";
import { evaluationOf, evaluationText, EVALUATION_SCHEMA, stopText } from "./evaluation.ts";
import type { Filled } from "./guest.ts";
import { DEFAULT_LIMITS, type GuestText, type Limits } from "./runtime.ts";
import { SESSION, sessionOf } from "./session-argument.ts";
import type { Ran } from "./ran.ts";
import type { Session } from "./session.ts";
import { Sessions } from "./sessions.ts";
import type { Arguments, GuestTool, Language } from "./tool.ts";

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

/** A server that evaluates code. Closing it ends all its processes. */
export interface Live extends Server {
  readonly [LIVE]: true;
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
  const sessions = new Sessions({
    runtime,
    limits: { ...DEFAULT_LIMITS, ...options.limits },
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
  const closeServer = server.close.bind(server);
  const live: Live = Object.defineProperties(server, {
    [LIVE]: { value: true },
    close: {
      value: async (): Promise<void> => {
        await Promise.all([closeServer(), sessions.close()]);
        await runtime.close?.();
      },
    },
  }) as Live;
  return live;
}

function registerEvaluate(server: Server, tool: GuestTool, sessions: Sessions): void {
  const { input, inputSchema } = checked({ ...tool.arguments, ...TIMEOUT, ...SESSION });
  const evaluate = async (args: Given, context: ToolContext): Promise<ToolAnswer | MadeResult> => {
    const begun = performance.now();
    const session = sessionOf(sessions, args, context);
    const ran = await run(session, "eval", args, context);
    if (ran.end === "refused") return { content: [{ type: "text", text: String(ran.why) }], isError: true };
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
  if (ran.end === "answered") return textAnswer(ran.reply, ran);
  const text = ran.end === "refused" ? String(ran.why) : stopText(ran);
  return { content: [{ type: "text", text }], isError: true };
}

function textAnswer(said: Partial<GuestText>, ran?: Ran): ToolAnswer {
  const notice = ran?.notice === undefined ? "" : `[Notice] ${ran.notice}\n`;
  return {
    content: [{ type: "text", text: notice + (said.text ?? "") }],
    ...(said.data === undefined ? undefined : { structuredContent: said.data }),
    isError: said.isError === true,
  };
}
