// How the operator of a process looks at its servers of live sessions: the sessions of all owners, what they have
// evaluated, and what happens in them now. In core because live/ has it, chain/ passes it on and console/ shows it.
// It only reads. What acts in a session is a call of a tool, for the owner of the session (`Caller.actsFor`).

/** The name under which the operator sees the sessions of code mode. No upstream has such a name. */
export const CODE_MODE = "code mode";

/** A server of live sessions, as its operator sees it. Callers have no way to it. */
export interface LiveServer {
  /** The name of the language, such as "js". */
  readonly language: string;
  /** The display name, such as "JavaScript". */
  readonly title: string;
  /** The names of its tools by what they are for; absent for what it has no tool for. */
  readonly tools: Readonly<Partial<Record<LiveAction, string>>>;
  sessions(): readonly LiveStatus[];
  /** The last evaluations, the oldest first; those that run now come last. Empty if there is no such session. */
  turns(at: LivePlace, count: number): readonly LiveTurn[];
  /**
   * What the session has defined, as far as it is remembered, or says so itself while it is idle. Undefined if only a
   * session that is busy knows.
   */
  definitions(at: LivePlace): Promise<readonly LiveDefinition[] | string | undefined>;
  /** The checkpoints of an owner, the newest first. */
  checkpoints(owner: string): Promise<readonly LiveCheckpoint[]>;
  /** What can stand at the end of the code. Nothing unless the session is idle. */
  complete(at: LivePlace, code: string): Promise<LiveCompletion>;
  /** The parts of a value by its handle. Undefined unless the session is idle. */
  inspect(at: LivePlace, handle: number, start: number, count: number): Promise<LiveInspection | undefined>;
  /** Calls back when an evaluation begins, prints or ends. Returns a function that stops this. */
  follow(listener: (event: LiveEvent) => void): () => void;
}

/** What an operator does with the tools of a server. */
export type LiveAction = "evaluate" | "frame" | "restart" | "interrupt" | "reset" | "save" | "restore";

/** A session of an owner. The owner of callers without a principal is "". */
export interface LivePlace {
  readonly owner: string;
  readonly session: string;
}

export interface LiveStatus extends LivePlace {
  readonly state: "stopped" | "idle" | "starting" | "busy";
  /** What the process says about itself, such as its version. Empty if there is none. */
  readonly version: string;
  readonly pid?: number;
  /** How many processes it has had so far. Handles and definitions are those of one process. */
  readonly process: number;
  /** As last measured, with the programs that it has started. */
  readonly memoryMb?: number;
  readonly evaluations: number;
  /** How many calls wait for the one that runs. */
  readonly waiting: number;
  /** In milliseconds since 1970. */
  readonly usedAt: number;
  /** While it is busy: the tool, since when, and with which evaluation, if it is one. */
  readonly busy?: { readonly op: string; readonly since: number; readonly turn?: number };
  /** What the clients that have used it call themselves, the last first. */
  readonly users: readonly string[];
  /** Whether an evaluation waits at an error, so that its restarts can be taken. */
  readonly holdsError: boolean;
  /** The libraries with tools of their own that are loaded. */
  readonly libraries: readonly string[];
}

/** An evaluation. */
export interface LiveTurn {
  /** In the order in which evaluations of this session began. */
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
  readonly ended?: LiveEnd;
}

export interface LiveEnd {
  readonly status: "ok" | "error" | "timeout" | "interrupted" | "lost" | "refused";
  /** The result as a model reads it. */
  readonly text: string;
  readonly ms: number;
  /** The process in which it has ended, by its number. */
  readonly process: number;
  /** The result in parts (`EvaluationRecord` in live/evaluation.ts). Absent if it was refused, or is no longer kept. */
  readonly evaluation?: { readonly [field: string]: unknown };
}

export type LiveEvent = LivePlace & { readonly at: number; readonly turn: number } & (
    | ({ readonly type: "began" } & Pick<LiveTurn, "op" | "code" | "args" | "client">)
    | { readonly type: "output"; readonly text: string }
    | ({ readonly type: "ended" } & LiveEnd)
  );

export interface LiveDefinition {
  readonly name: string;
  /** Such as `function`; in the words of the language. */
  readonly type?: string;
  /** In milliseconds since 1970. */
  readonly at: number;
}

export interface LiveCheckpoint {
  readonly name: string;
  /** In milliseconds since 1970. */
  readonly at: number;
  readonly bytes: number;
}

export interface LiveCompletion {
  /** The first character that the values replace. */
  readonly start: number;
  readonly values: readonly string[];
}

/** A page of the parts of a value. */
export interface LiveInspection {
  /** For people, and for languages that do not list parts. */
  readonly text: string;
  readonly isError?: boolean;
  readonly parts?: readonly LivePart[];
  /** How many parts there are. */
  readonly total?: number;
}

export interface LivePart {
  readonly name: string;
  readonly text: string;
  /** Absent if the text shows all of it. */
  readonly handle?: number;
}
