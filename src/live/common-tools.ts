// The tools that the live servers of all languages have: those that the guest implements for errors and values, and
// those of the host for its sessions, none of which waits for an evaluation.

import { readFile } from "node:fs/promises";
import { callerKey } from "../core/caller-key.ts";
import { packageFile } from "../core/files.ts";
import type { ToolAnnotations } from "../protocol/model/index.ts";
import type { ToolContext } from "../server/call-context.ts";
import type { Server } from "../server/server.ts";
import { type GuestText, LIMIT_BOUNDS, type Limits } from "./runtime.ts";
import type { Session } from "./session.ts";
import type { Sessions } from "./sessions.ts";
import {
  type ArgumentSpecs,
  count,
  type GuestTool,
  type KeptTexts,
  type Language,
  required,
  text,
  type ToolArguments,
  toolInput,
} from "./tool.ts";

/** For languages whose guest keeps errors open and gives values a handle. */
export const DEBUGGER_TOOLS: readonly GuestTool[] = [
  {
    name: "list-restarts",
    title: "List restarts",
    description: "List the ways to go on after the error that is open.",
    arguments: {},
    readOnly: true,
  },
  {
    name: "take-restart",
    title: "Take a restart",
    description: "Go on with the evaluation that waits at an error, by one of its restarts.",
    arguments: {
      restart: required("Name or number"),
      value: text("Code whose value it gets, if it takes one"),
    },
    runsCode: true,
    isEvaluation: true,
  },
  {
    name: "evaluate-in-frame",
    title: "Evaluate in a frame",
    description: "Evaluate code with the variables of a frame in the backtrace.",
    arguments: { frame: count(0), code: { type: "string", required: true } },
    runsCode: true,
    isEvaluation: true,
  },
  {
    name: "inspect",
    title: "Inspect a value",
    description: "Show the parts of a value by its handle, or characters of a long output by its number.",
    arguments: {
      handle: { type: "integer", minimum: 0 },
      output: { type: "integer", minimum: 0 },
      start: { ...count(0), minimum: 0 },
      count: { ...count(50), minimum: 1 },
    },
    readOnly: true,
    answer: inspectOutput,
  },
];

/** The host keeps the outputs that were too long for a result; values are in the guest. */
function inspectOutput(session: KeptTexts, args: ToolArguments): GuestText | undefined {
  const { handle, output, start = 0, count: wanted } = args as Readonly<Record<string, number | undefined>>;
  if (output !== undefined) {
    const { outputChars } = session.limits;
    return session.log.page(output, start, Math.min(wanted ?? outputChars, outputChars));
  }
  if (handle !== undefined) return undefined;
  return { text: "Give the handle of a value, or the number of a long output as `output`", isError: true };
}

export const READ_ONLY: ToolAnnotations = { readOnlyHint: true };

export const DEFAULT_SESSION = "main";

/** Explained at the tool that evaluates code, and the same for all. */
export const SESSION_ARGUMENT: ArgumentSpecs = { session: { type: "string" } };
/** Ignored by tools for all sessions, but a model may pass it. */
const UNLISTED_SESSION: ArgumentSpecs = { session: { type: "string", unlisted: true } };

const LIMIT_ARGUMENTS: ArgumentSpecs = {
  timeout: { type: "number", description: "Seconds; 0: no limit" },
  "max-output": { type: "integer" },
  "max-value": { type: "integer" },
  "print-length": { type: "integer" },
  "print-depth": { type: "integer" },
  "error-hold": { type: "number", description: "Seconds" },
  memory: { type: "integer", description: "Megabytes, from the next reset on" },
};

const LIMIT_NAMES: Readonly<Record<string, keyof Limits>> = {
  timeout: "timeoutMs",
  "max-output": "outputChars",
  "max-value": "valueChars",
  "print-length": "printLength",
  "print-depth": "printDepth",
  "error-hold": "errorHoldMs",
  memory: "memoryMb",
};

/** The name of the session that the call is for. */
export function sessionName({ session }: ToolArguments): string {
  return (session as string | undefined) ?? DEFAULT_SESSION;
}

interface SessionToolOptions {
  readonly description: string;
  readonly specs?: ArgumentSpecs;
  readonly annotations?: ToolAnnotations;
}

export function registerSessionTools(server: Server, { title, runtime }: Language, sessions: Sessions): void {
  const add = (
    name: string,
    options: SessionToolOptions,
    answer: (name: string, owner: string, args: ToolArguments) => string | Promise<string>,
  ): void => {
    const { specs = SESSION_ARGUMENT, ...texts } = options;
    server.tool(name, { ...texts, ...toolInput(specs) }, (args: ToolArguments, context: ToolContext) =>
      answer(sessionName(args), callerKey(context.caller, "sessions"), args),
    );
  };
  const forAll = { specs: UNLISTED_SESSION, annotations: READ_ONLY };
  const description = `How to work with these ${title} sessions. Read it first.`;
  add("get-usage-guide", { description, ...forAll }, () =>
    // Like the Lisp sources, it ships in src/.
    readFile(packageFile(`src/live/${runtime.language}/guide.md`), "utf8"),
  );
  add("list-sessions", { description: "List the sessions and what each is doing.", ...forAll }, (_name, owner) =>
    listText(sessions.list(owner)),
  );
  add(
    "interrupt-session",
    {
      description: "Stop what a session is evaluating.",
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
      description: "End the process of a session. All definitions are lost.",
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
      description: "End a session, and forget its limits.",
    },
    async (name, owner) =>
      (await sessions.remove(owner, name)) ? `Closed session ${name}.` : `There is no session ${name}.`,
  );
  add(
    "configure-limits",
    {
      description: "Show the limits of a session (characters, seconds, levels), and change some.",
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
    const factor = limit.endsWith("Ms") ? 1000 : 1;
    const [least, most] = LIMIT_BOUNDS[limit];
    // For the timeout, 0 means no limit.
    const ceiling = (limit === "timeoutMs" ? ceilings[limit] || undefined : ceilings[limit]) ?? Infinity;
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
  const { timeoutMs, outputChars, valueChars, printLength, printDepth, errorHoldMs, memoryMb } = limits;
  const until = state === "stopped" || current === memoryMb ? "" : ` from the next reset on; ${current} MB until then`;
  return [
    "Current limits:",
    `  timeout: ${timeoutMs === 0 ? "none (WARNING: evaluations may run forever)" : `${timeoutMs / 1000} seconds`}`,
    `  max-output: ${outputChars} characters`,
    `  max-value: ${valueChars} characters`,
    `  print-length: ${printLength} elements`,
    `  print-depth: ${printDepth} levels`,
    `  error-hold: ${errorHoldMs / 1000} seconds`,
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
