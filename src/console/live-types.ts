// The documents of the console's API about live sessions, as types alone. Apart from the other documents, which are about
// calls and servers. Much of them is what a server of live sessions says itself (core/live-server.ts).

import type {
  LiveCheckpoint,
  LiveCompletion,
  LiveDefinition,
  LiveEnd,
  LiveInspection,
  LiveStatus,
  LiveTurn,
} from "../core/live-server.ts";

export type { LiveCompletion, LiveInspection };

/** An evaluation in a live session, and how it has ended. */
export type Turn = LiveTurn;
export type TurnEnd = LiveEnd;

/** What a session says of itself. */
type SessionStatus = Pick<
  LiveStatus,
  "state" | "version" | "pid" | "process" | "memoryMb" | "evaluations" | "waiting" | "usedAt" | "users" | "holdsError"
>;

/** A live session. */
export interface LiveSession extends SessionStatus {
  /** Server, name and owner together: what the routes of live sessions take. */
  readonly id: string;
  readonly server: string;
  /** Such as `js`, `lisp` or `smalltalk`. */
  readonly language: string;
  readonly name: string;
  /** The principal whose session it is; absent for callers without one. */
  readonly owner?: string;
  /** While it is busy: since when, with which tool (`eval` evaluates), and if it is an evaluation, whose. */
  readonly busy?: { readonly op: string; readonly client?: string; readonly since: number; readonly code?: string };
}

/** A server of live sessions. */
export interface LiveServerView {
  readonly name: string;
  readonly language: string;
  /** Such as `Common Lisp`. */
  readonly title: string;
  /** What can be done in its sessions: `evaluate`, `frame`, `restart`, `interrupt`, `reset`, `save`, `restore`. */
  readonly can: readonly string[];
}

export interface LiveOverview {
  readonly servers: readonly LiveServerView[];
  readonly sessions: readonly LiveSession[];
  /** Whose sessions those are that the page starts; absent for callers without a principal. */
  readonly owner?: string;
}

/** What is known of one live session. */
export interface LiveDetail {
  readonly session: LiveSession;
  readonly server: LiveServerView;
  /** The last evaluations, the oldest first; those that run come last. */
  readonly turns: readonly Turn[];
  /** As far as they are remembered; as a text if only the session knows them, and absent while it is too busy to say. */
  readonly definitions?: string | readonly LiveDefinition[];
  /** Those of the owner of the session, the newest first. */
  readonly checkpoints: readonly LiveCheckpoint[];
  /** The libraries with tools of their own that are loaded. */
  readonly libraries: readonly string[];
}

/** What an action in a live session has answered. */
export interface LiveAnswer {
  /** The session. */
  readonly session: string;
  readonly isError: boolean;
  /** Whether nothing was done, such as in a frame of an error that is not open any more. */
  readonly isRefused?: true;
  readonly text: string;
}

/** One thing that happened in a live session. */
export type TranscriptEvent = { readonly session: string; readonly at: number; readonly turn: number } & (
  | ({ readonly type: "began" } & Pick<Turn, "op" | "code" | "args" | "client">)
  | { readonly type: "output"; readonly text: string }
  | ({ readonly type: "ended" } & TurnEnd)
);
