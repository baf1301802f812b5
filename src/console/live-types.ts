// The documents of the console's API about live sessions, as types alone. Apart from the other documents, which are about
// calls and servers.

/** A live session. */
export interface LiveSession {
  /** Server, name and owner together: what the routes of live sessions take. */
  readonly id: string;
  readonly server: string;
  /** Such as `js`, `lisp` or `smalltalk`. */
  readonly language: string;
  readonly name: string;
  /** The principal whose session it is; absent for callers without one. */
  readonly owner?: string;
  readonly state: "stopped" | "idle" | "starting" | "busy";
  /** What its process is, such as `SBCL 2.2.9`; empty if it has none. */
  readonly version: string;
  readonly pid?: number;
  /** How many processes it has had so far. Handles and definitions are those of one process. */
  readonly process: number;
  readonly memoryMb?: number;
  readonly evaluations: number;
  /** How many calls wait for the one that runs. */
  readonly waiting: number;
  /** In milliseconds since 1970. */
  readonly usedAt: number;
  /** While it is busy: since when, with which tool (`eval` evaluates), and if it is an evaluation, whose. */
  readonly busy?: { readonly op: string; readonly client?: string; readonly since: number; readonly code?: string };
  /** The clients that have used it, the last first. */
  readonly users: readonly string[];
  /** Whether an evaluation waits at an error, so that its restarts can be taken. */
  readonly holdsError: boolean;
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
  readonly definitions?: string | readonly { readonly name: string; readonly type?: string; readonly at: number }[];
  /** Those of the owner of the session, the newest first. */
  readonly checkpoints: readonly { readonly name: string; readonly at: number; readonly bytes: number }[];
  /** The libraries with tools of their own that are loaded. */
  readonly libraries: readonly string[];
}

/** An evaluation in a live session. */
export interface Turn {
  readonly turn: number;
  /** In milliseconds since 1970. */
  readonly at: number;
  /** `eval`, or the tool, such as `take-restart`. */
  readonly op: string;
  readonly code: string;
  /** The arguments of the tool, unless they are long, if it is not `eval`. */
  readonly args?: { readonly [name: string]: unknown };
  readonly client?: string;
  /** What it has printed so far, while it runs. */
  readonly output?: string;
  /** Absent while it runs. */
  readonly ended?: TurnEnd;
}

export interface TurnEnd {
  /** `ok`, `error`, `timeout`, `interrupted`, `lost`, or `refused` if it did not run. */
  readonly status: string;
  /** The result as a model reads it. */
  readonly text: string;
  readonly ms: number;
  /** The process in which it has ended, by its number. */
  readonly process: number;
  /** The result in parts; absent if it is no longer kept. */
  readonly evaluation?: { readonly [field: string]: unknown };
}

/** A page of the parts of a value in a live session. */
export interface LiveInspection {
  /** What the value is. With its parts as lines, if the language has them only so. */
  readonly text: string;
  readonly isError?: boolean;
  readonly parts?: readonly { readonly name: string; readonly text: string; readonly handle?: number }[];
  readonly total?: number;
}

/** What can stand at the end of some code. */
export interface LiveCompletion {
  /** The first character that the values replace. */
  readonly start: number;
  readonly values: readonly string[];
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
