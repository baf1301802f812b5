// Local errors: failures between us and the other side of a connection. Only McpErrors are sent to the other side.
// `kind` has a fixed set of values, so that code can switch over it. If `mayHaveRun` is false, the failed request can
// be sent again without running twice.

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
  /** False only if the server certainly has not begun to work on the request. */
  readonly mayHaveRun?: boolean;
  /** The status of the HTTP response, if there was one. */
  readonly status?: number | undefined;
  /** Output of the server's process, for its operator: added to the message, but never sent to callers. */
  readonly diagnostics?: string;
}

export class ConnectionError extends Error {
  readonly kind: ConnectionErrorKind;
  /** Whether the server may have begun to work on the request; true unless the contrary is certain. */
  readonly mayHaveRun: boolean;
  readonly status: number | undefined;
  /** The last part of the message, which callers must not see. */
  readonly diagnostics: string | undefined;

  constructor(kind: ConnectionErrorKind, message: string, options?: ConnectionErrorOptions) {
    super(`${message}${options?.diagnostics ?? ""}`, options);
    this.diagnostics = options?.diagnostics;
    this.name = "ConnectionError";
    this.kind = kind;
    this.mayHaveRun = options?.mayHaveRun ?? true;
    this.status = options?.status;
  }

  /** Whether the same request may succeed later. It cannot if rights are missing, or if the server does not speak MCP. */
  get isTemporary(): boolean {
    const { kind, status } = this;
    if (kind === "http") return status === undefined || status === 429 || status >= 500;
    return kind === "closed" || kind === "timeout" || kind === "spawn" || (kind === "refused" && status === undefined);
  }

  /** A copy with another message or `mayHaveRun`. This error becomes its cause. */
  with({ message, mayHaveRun }: { readonly message?: string; readonly mayHaveRun?: boolean }): ConnectionError {
    return new ConnectionError(this.kind, message ?? this.message, {
      cause: this,
      mayHaveRun: mayHaveRun ?? this.mayHaveRun,
      status: this.status,
    });
  }
}
