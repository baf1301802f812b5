// A server of live sessions as the operator of its process sees it: the sessions of all owners, their transcripts, and
// what happens in them now. It reads only, and what it asks of a guest runs no code of a call.

import type { LiveAction, LiveInspection, LivePart, LivePlace, LiveServer } from "../core/live-server.ts";
import { defined } from "../core/values.ts";
import { CheckpointStore } from "./checkpoints.ts";
import { ask, definitionsText } from "./resources.ts";
import type { Session } from "./session.ts";
import type { Sessions } from "./sessions.ts";
import { fits, type Language } from "./tool.ts";

const ACTIONS: Readonly<Record<Exclude<LiveAction, "evaluate">, string>> = {
  frame: "evaluate-in-frame",
  restart: "take-restart",
  interrupt: "interrupt-session",
  reset: "reset-session",
  save: "save-session",
  restore: "restore-session",
};
/** How long the guest may take to list its definitions. */
const LIST_TIMEOUT_MS = 5_000;

const string = { type: "string" } as const;
const integer = { type: "integer" } as const;
const PARTS = {
  type: "object",
  properties: {
    text: string,
    isError: { type: ["boolean", "null"] },
    total: integer,
    parts: {
      type: "array",
      items: {
        type: "object",
        properties: { name: string, text: string, handle: { type: ["integer", "null"] } },
        required: ["name", "text"],
      },
    },
  },
} as const;
const COMPLETION = {
  type: "object",
  properties: { start: integer, values: { type: "array", items: string } },
  required: ["start", "values"],
} as const;

/** `isOnlyTool`: callers have no tool but the one that evaluates. */
export function liveServer(
  { runtime, title, evaluate, hasDebugger }: Language,
  sessions: Sessions,
  isOnlyTool: boolean,
): LiveServer {
  const has = (action: string): boolean => (action === "frame" || action === "restart" ? hasDebugger === true : true);
  const others = isOnlyTool ? [] : Object.entries(ACTIONS).filter(([action]) => has(action));
  const find = ({ owner, session }: LivePlace): Session | undefined => sessions.find(owner, session);
  return {
    language: runtime.language,
    title,
    tools: { evaluate: evaluate.name, ...Object.fromEntries(others) },
    sessions: () => sessions.status(),
    turns: (at, count) => {
      const session = find(at);
      return session?.log.turns(count, session.output) ?? [];
    },
    definitions: async (at) => {
      const session = find(at);
      const known = session?.definitions ?? [];
      // A session that was restored from an image knows more than its host.
      if (session === undefined || known.length > 0 || session.state === "stopped") return known;
      if (session.state !== "idle") return undefined;
      return definitionsText(session, { signal: AbortSignal.timeout(LIST_TIMEOUT_MS) });
    },
    checkpoints: (owner) => new CheckpointStore(runtime, owner).list(),
    complete: async (at, code) => {
      const session = find(at);
      if (session?.state !== "idle") return { start: code.length, values: [] };
      const reply = await ask(session, "complete", { code, position: code.length });
      if (!fits(reply, COMPLETION)) return { start: code.length, values: [] };
      const { start, values } = reply as unknown as { start: number; values: readonly string[] };
      return { start, values };
    },
    inspect: async (at, handle, start, count) => {
      const session = find(at);
      return session?.state === "idle" ? inspected(session, handle, start, count) : undefined;
    },
    follow: (listener) => sessions.follow(listener),
  };
}

async function inspected(session: Session, handle: number, start: number, count: number): Promise<LiveInspection> {
  const reply = await ask(session, "inspect", { handle, start, count, parts: true });
  if (!fits(reply, PARTS)) return { text: "The session did not answer", isError: true };
  const { text = "", isError, parts, total } = reply as Partial<LiveInspection>;
  // Lisp has one value for false and nothing.
  const shown = parts?.map(({ name, text: value, handle: inner }: LivePart) => {
    const part = { name, text: value };
    return typeof inner === "number" ? { ...part, handle: inner } : part;
  });
  return { text, ...defined({ isError: isError === true ? true : undefined, parts: shown, total }) };
}
