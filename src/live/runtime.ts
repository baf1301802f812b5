// A language, as the rest of the live room sees it: how its guest is started, how a request is written for it, and how
// far it can be stopped without being ended. What a guest answers is the same in all languages, and is written down
// here too. No language is named here.

/** What one session may take. */
export interface Limits {
  /** Milliseconds for one evaluation; 0: as long as it takes. */
  readonly timeoutMs: number;
  readonly memoryMb: number;
  /** Characters of output that are kept, of stdout and of stderr each. */
  readonly outputChars: number;
  /** Elements of a collection that are printed. */
  readonly printLength: number;
  /** How deep a value is printed. */
  readonly printDepth: number;
}

export const DEFAULT_LIMITS: Limits = {
  timeoutMs: 30_000,
  memoryMb: 512,
  outputChars: 100_000,
  printLength: 100,
  printDepth: 10,
};

/** What they may be set to. */
export const BOUNDS: Readonly<Record<keyof Limits, readonly [least: number, most: number]>> = {
  timeoutMs: [0, 24 * 3_600_000],
  memoryMb: [64, 16_384],
  outputChars: [1, 1_000_000],
  printLength: [1, 100_000],
  printDepth: [1, 1_000],
};

export interface GuestCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

export interface GuestRequest {
  readonly id: number;
  readonly op: string;
  readonly [param: string]: unknown;
}

/** A way to stop what runs and keep the rest: the evaluation alone, or the evaluator with it. */
export type Rung = "interrupt" | "renew";

export interface Runtime {
  readonly language: string;
  /** The gentlest first. */
  readonly ladder: readonly Rung[];
  /** Rejects with a ConnectionError that says what to install where it cannot be had. */
  start(limits: Limits): Promise<GuestCommand>;
  /** What its runtime says on stderr of itself, and nobody needs to know; with a g. */
  readonly noise?: RegExp;
  /** The payload of a frame. */
  encode(request: GuestRequest): string;
  /**
   * A guest ended before it was ready, by itself or because it was given up. True: it was not the fault of the language,
   * and another start is worth it.
   */
  failed?(command: GuestCommand, isGivenUp: boolean): Promise<boolean>;
  /** A guest is ready: the time for what makes the next one start sooner. */
  settled?(): void;
  close?(): Promise<void>;
}

export interface Restart {
  readonly name: string | null;
  readonly description: string;
}

export interface Frame {
  readonly number: number;
  readonly text: string;
}

export interface Condition {
  readonly type: string;
  readonly message: string;
  readonly restarts: readonly Restart[];
  readonly frames: readonly Frame[];
}

export interface Timing {
  readonly realMs: number;
  readonly runMs?: number;
  readonly gcMs?: number;
  readonly bytes?: number;
}

export interface Definition {
  readonly type: string;
  readonly name: string;
}

/** What a guest answers to `eval`. */
export interface GuestEvaluation {
  readonly status: "ok" | "error" | "interrupted";
  readonly values: readonly string[];
  readonly warnings: readonly { readonly type: string; readonly message: string }[];
  readonly condition?: Condition;
  readonly package?: string;
  readonly timing: Timing;
  /** Characters that were not sent because there were too many. */
  readonly dropped?: { readonly stdout?: number; readonly stderr?: number };
  readonly defined: readonly Definition[];
  /** It cannot be trusted any more, and is to be ended. */
  readonly damaged?: boolean;
}

/** What a guest answers to any other tool. */
export interface GuestText {
  readonly text: string;
  readonly isError?: boolean;
  readonly data?: { readonly [key: string]: unknown };
}
