// The tools that every live server has: its sessions listed, interrupted, reset, closed, their limits, and how to use
// the whole. None of them waits for an evaluation.

import type { ToolContext } from "../server/call-context.ts";
import type { Server } from "../server/server.ts";
import { checked, type Given, type Arguments, type Language } from "./tool.ts";
import { BOUNDS, type Limits } from "./runtime.ts";
import type { Session } from "./session.ts";
import type { Sessions } from "./sessions.ts";

const LIMITS: Arguments = {
  timeout: { type: "number", description: "Seconds that an evaluation may take; 0: no end" },
  "max-output": { type: "integer", description: "Characters of output that are kept, of stdout and stderr each" },
  "print-length": { type: "integer", description: "Elements of a collection that are printed" },
  "print-depth": { type: "integer", description: "How deep a value is printed" },
  memory: { type: "integer", description: "Megabytes of heap; holds from the next reset on" },
};

/** A model that gives `session` to every tool is not to be refused for it. */
const ALL: Arguments = {
  session: { type: "string", description: "Passed over: this is about all sessions" },
};

const NAMES: readonly (readonly [string, keyof Limits, number])[] = [
  ["timeout", "timeoutMs", 1000],
  ["max-output", "outputChars", 1],
  ["print-length", "printLength", 1],
  ["print-depth", "printDepth", 1],
  ["memory", "memoryMb", 1],
];

export function registerCommon(server: Server, { guide, title }: Language, sessions: Sessions): void {
  const all = checked(ALL);
  const one = checked(SESSION);
  server.tool(
    "get-usage-guide",
    { title: "Usage guide", description: `How to work with these ${title} sessions; read it first`, ...all, ...READS },
    () => guide,
  );
  server.tool(
    "list-sessions",
    { title: "List sessions", description: "The sessions there are, and what each does now", ...all, ...READS },
    (_args: Given, context: ToolContext) => listText(sessions.list(ownerOf(context))),
  );
  server.tool(
    "interrupt-session",
    {
      title: "Interrupt",
      description: "Stops what a session evaluates now; what was defined in it is kept wherever that is possible",
      ...one,
      annotations: { destructiveHint: false },
    },
    async (args: Given, context: ToolContext) => {
      const name = nameOf(args);
      const found = await sessions.find(ownerOf(context), name)?.interrupt();
      return found === true ? `Interrupted what ran in ${name}.` : `Nothing runs in ${name}.`;
    },
  );
  server.tool(
    "reset-session",
    {
      title: "Reset",
      description:
        "Ends the session's process: the next evaluation finds a fresh one, and all that was defined is gone",
      ...one,
      annotations: { destructiveHint: true },
    },
    async (args: Given, context: ToolContext) => {
      const name = nameOf(args);
      const session = sessions.find(ownerOf(context), name);
      // The one that everybody has is fresh until it is used.
      if (session === undefined && args["session"] !== undefined) return `There is no session ${name} to reset.`;
      await session?.end(undefined);
      return "Session reset successfully.";
    },
  );
  server.tool(
    "close-session",
    {
      title: "Close",
      description: "Ends a session's process and forgets its name and its limits",
      ...one,
      annotations: { destructiveHint: true },
    },
    async (args: Given, context: ToolContext) => {
      const name = nameOf(args);
      return (await sessions.remove(ownerOf(context), name)) ? `Closed ${name}.` : `There is no session ${name}.`;
    },
  );
  server.tool(
    "configure-limits",
    {
      title: "Limits",
      description: "Shows what a session may take, and changes it where a number is given",
      ...checked({ ...LIMITS, ...SESSION }),
      annotations: { destructiveHint: false, idempotentHint: true },
    },
    (args: Given, context: ToolContext) => {
      const session = sessionOf(sessions, args, context);
      session.limits = changed(session.limits, args);
      return limitsText(session);
    },
  );
}

const READS = { annotations: { readOnlyHint: true, openWorldHint: false } } as const;

function changed(limits: Limits, args: Given): Limits {
  const next: { -readonly [Key in keyof Limits]: number } = { ...limits };
  for (const [name, key, factor] of NAMES) {
    if (args[name] === undefined) continue;
    const [least, most] = BOUNDS[key];
    const value = Number(args[name]) * factor;
    if (value < least || value > most)
      throw new Error(`${name} must be from ${least / factor} to ${most / factor}; got ${value / factor}`);
    next[key] = value;
  }
  return next;
}

function limitsText({ limits, memoryMb: has, state }: Session): string {
  const { timeoutMs, outputChars, printLength, printDepth, memoryMb } = limits;
  const until = state === "asleep" || has === memoryMb ? "" : ` from the next reset on; ${has} MB until then`;
  const timeout = timeoutMs === 0 ? "disabled seconds (WARNING: no timeout)" : `${timeoutMs / 1000} seconds`;
  return [
    "Current limits:",
    `  timeout: ${timeout}`,
    `  max-output: ${outputChars} characters`,
    `  print-length: ${printLength} elements`,
    `  print-depth: ${printDepth} levels`,
    `  memory: ${memoryMb} MB${until}`,
  ].join("\n");
}

function listText(sessions: readonly Session[]): string {
  if (sessions.length === 0) return "There are no sessions yet; the first evaluation begins one.";
  return [`${sessions.length} ${sessions.length === 1 ? "session" : "sessions"}:`, ...sessions.map(line)].join("\n");
}

function line(session: Session): string {
  const { name, state, runningFor, waiting, evaluations, version } = session;
  const running = runningFor === undefined ? "" : ` (${runningFor.op} for ${Math.round(runningFor.ms)} ms)`;
  const queue = waiting === 0 ? "" : `, ${waiting} waiting`;
  const process = version === "" ? "" : `, ${version}`;
  return `  ${name}: ${state}${running}${queue}, ${evaluations} ${evaluations === 1 ? "evaluation" : "evaluations"}${process}`;
}

// The argument by which a call names a session, and whose session that is: one of the same person, as far as the wire
// proves who calls.

/** The session of who names none. */
const MAIN = "main";

export const SESSION: Arguments = {
  session: { type: "string", description: "Name of the session; made where there is none", default: MAIN },
};

export function nameOf({ session }: Given): string {
  return (session as string | undefined) ?? MAIN;
}

export function ownerOf({ caller }: ToolContext): string {
  return caller.principal ?? "";
}

/** Made where there is none. */
export function sessionOf(sessions: Sessions, args: Given, context: ToolContext): Session {
  return sessions.get(ownerOf(context), nameOf(args));
}
