// The local error: what went wrong between us and the other side of a wire. It never crosses a wire
// itself (McpError does). Its `kind` is a closed list, so that callers can switch over it; `mayHaveRun` says
// whether the request that failed so can be sent again without running twice.

export type ConnectionErrorKind =
  | "closed"
  | "timeout"
  | "cancelled"
  | "refused"
  | "spawn"
  | "http"
  | "unauthorized"
  | "protocol";

export interface ConnectionErrorOptions {
  readonly cause?: unknown;
  /** False where the end has surely not begun with it. */
  readonly mayHaveRun?: boolean;
  /** The status of the HTTP answer, where one came. */
  readonly status?: number;
  /** What a program behind the end has said itself, for whoever runs it: added to the message, and never told to callers. */
  readonly evidence?: string;
}

export class ConnectionError extends Error {
  readonly kind: ConnectionErrorKind;
  /** Whether the end may have begun with the request; true unless the contrary is certain. */
  readonly mayHaveRun: boolean;
  readonly status: number | undefined;
  /** The part of the message that is for whoever runs the end, and for nobody else. */
  readonly evidence: string | undefined;

  constructor(kind: ConnectionErrorKind, message: string, options?: ConnectionErrorOptions) {
    super(`${message}${options?.evidence ?? ""}`, options);
    this.evidence = options?.evidence;
    this.name = "ConnectionError";
    this.kind = kind;
    this.mayHaveRun = options?.mayHaveRun ?? true;
    this.status = options?.status;
  }
}
