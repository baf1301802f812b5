// The tools that every live server has: list, interrupt, reset and close sessions, change their limits, and the usage
// guide. None of them waits for an evaluation. Also the `session` argument, which nearly every tool takes.

import type { ToolContext } from "../server/call-context.ts";
import type { Server } from "../server/server.ts";
import { LIMIT_BOUNDS, type Limits } from "./runtime.ts";
import type { Session } from "./session.ts";
import type { Sessions } from "./sessions.ts";
import { toolInput, type ArgumentSpecs, type Language, type ToolArguments } from "./tool.ts";

const DEFAULT_SESSION = "main";

export const SESSION_ARGUMENT: ArgumentSpecs = {
  session: { type: "string", description: "Name of the session; created on first use", default: DEFAULT_SESSION },
};

const LIMIT_ARGUMENTS: ArgumentSpecs = {
  timeout: { type: "number", description: "Seconds that an evaluation may take; 0 for no limit" },
  "max-output": { type: "integer", description: "Characters of output to keep, for stdout and stderr each" },
  "print-length": { type: "integer", description: "Elements of a collection to print" },
  "print-depth": { type: "integer", description: "How deep to print a value" },
  memory: { type: "integer", description: "Megabytes of heap; takes effect at the next reset" },
};

/** Accepted and ignored, since a model may pass `session` to every tool. */
const IGNORED_SESSION: ArgumentSpecs = {
  session: { type: "string", description: "Ignored: this tool applies to all sessions" },
};

const LIMIT_NAMES: readonly (readonly [argument: string, limit: keyof Limits, factor: number])[] = [
  ["timeout", "timeoutMs", 1000],
  ["max-output", "outputChars", 1],
  ["print-length", "printLength", 1],
  ["print-depth", "printDepth", 1],
  ["memory", "memoryMb", 1],
];

/** Returns the session that the call names, and creates it if there is none. */
export function getSession(sessions: Sessions, args: ToolArguments, context: ToolContext): Session {
  return sessions.get(ownerOf(context), sessionName(args));
}

function sessionName({ session }: ToolArguments): string {
  return (session as string | undefined) ?? DEFAULT_SESSION;
}

/** Sessions belong to the authenticated principal. Unauthenticated callers share theirs. */
function ownerOf({ caller }: ToolContext): string {
  return caller.principal ?? "";
}

const READ_ONLY = { annotations: { readOnlyHint: true, openWorldHint: false } } as const;

export function registerSessionTools(server: Server, { guide, title }: Language, sessions: Sessions): void {
  const all = toolInput(IGNORED_SESSION);
  const one = toolInput(SESSION_ARGUMENT);
  server.tool(
    "get-usage-guide",
    {
      title: "Usage guide",
      description: `How to work with these ${title} sessions. Read it first.`,
      ...all,
      ...READ_ONLY,
    },
    () => guide,
  );
  server.tool(
    "list-sessions",
    { title: "List sessions", description: "List the sessions and what each is doing.", ...all, ...READ_ONLY },
    (_args: ToolArguments, context: ToolContext) => listText(sessions.list(ownerOf(context))),
  );
  server.tool(
    "interrupt-session",
    {
      title: "Interrupt",
      description: "Stop what a session is evaluating. Its definitions are kept if possible.",
      ...one,
      annotations: { destructiveHint: false },
    },
    async (args: ToolArguments, context: ToolContext) => {
      const name = sessionName(args);
      const wasRunning = await sessions.find(ownerOf(context), name)?.interrupt();
      return wasRunning === true ? `Interrupted session ${name}.` : `Nothing is running in session ${name}.`;
    },
  );
  server.tool(
    "reset-session",
    {
      title: "Reset",
      description: "End the session's process. All definitions are lost, and the next evaluation starts a new process.",
      ...one,
      annotations: { destructiveHint: true },
    },
    async (args: ToolArguments, context: ToolContext) => {
      const name = sessionName(args);
      const session = sessions.find(ownerOf(context), name);
      // The default session counts as existing even before its first use.
      if (session === undefined && args["session"] !== undefined) return `There is no session ${name} to reset.`;
      await session?.end(undefined);
      return "Session reset successfully.";
    },
  );
  server.tool(
    "close-session",
    {
      title: "Close",
      description: "End a session's process and forget its name and limits.",
      ...one,
      annotations: { destructiveHint: true },
    },
    async (args: ToolArguments, context: ToolContext) => {
      const name = sessionName(args);
      const wasThere = await sessions.remove(ownerOf(context), name);
      return wasThere ? `Closed session ${name}.` : `There is no session ${name}.`;
    },
  );
  server.tool(
    "configure-limits",
    {
      title: "Limits",
      description: "Show the limits of a session, and change those that are given.",
      ...toolInput({ ...LIMIT_ARGUMENTS, ...SESSION_ARGUMENT }),
      annotations: { destructiveHint: false, idempotentHint: true },
    },
    (args: ToolArguments, context: ToolContext) => {
      const session = getSession(sessions, args, context);
      session.limits = changeLimits(session.limits, args);
      return limitsText(session);
    },
  );
}

function changeLimits(limits: Limits, args: ToolArguments): Limits {
  const changed: { -readonly [Key in keyof Limits]: number } = { ...limits };
  for (const [argument, limit, factor] of LIMIT_NAMES) {
    if (args[argument] === undefined) continue;
    const [min, max] = LIMIT_BOUNDS[limit];
    const value = Number(args[argument]) * factor;
    if (value < min || value > max)
      throw new Error(`${argument} must be from ${min / factor} to ${max / factor}; got ${value / factor}`);
    changed[limit] = value;
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
