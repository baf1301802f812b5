// Errors that are sent to the other side, and their codes. The code follows from the kind of the error and the caller's
// revision (older revisions list their differences). What compat.ts loads may replace it for session-style callers.

import { ConnectionError, isMarked } from "../core/errors.ts";
import { errorMessage } from "../core/values.ts";
import type { ErrorBody } from "../jsonrpc/message.ts";

const CODES = {
  parse_error: -32700,
  invalid_request: -32600,
  method_not_found: -32601,
  invalid_params: -32602,
  internal_error: -32603,
  not_initialized: -32600,
  shutting_down: -32600,
  tool_not_found: -32602,
  resource_not_found: -32602,
  prompt_not_found: -32602,
  execution_failed: -32603,
  access_denied: -32603,
  unauthorized: -32600,
  // Not within -32768 to -32000, which is reserved for codes that the newest revision or JSON-RPC defines.
  rate_limited: -31429,
  user_rejected: -1,
  header_mismatch: -32020,
  missing_capability: -32021,
  unsupported_revision: -32022,
  url_elicitation_required: -32603,
  timeout: -32603,
  unreachable: -32603,
} as const;

/** What went wrong. The code of an error follows from its kind and the caller's revision. */
export type ErrorKind = keyof typeof CODES;
/** Codes that differ in an older revision, or in another document. */
export type CodeChanges = Partial<Record<ErrorKind, number>>;

function isKind(value: unknown): value is ErrorKind {
  return typeof value === "string" && Object.hasOwn(CODES, value);
}

export function codeOf(kind: ErrorKind, { codes }: { readonly codes: CodeChanges }): number {
  return codes[kind] ?? CODES[kind];
}

const MCP_ERROR = Symbol.for("catenary.McpError");

/** The only error that is sent to the other side. */
export class McpError extends Error {
  static {
    Object.defineProperty(this.prototype, MCP_ERROR, { value: true });
  }

  /** Also true for errors of another copy of this package. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return isMarked(this, McpError, MCP_ERROR, value);
  }

  /** The JSON-RPC code. */
  readonly code: number;
  /** What the error says beside its message; often an object with `kind`. */
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "McpError";
    this.code = code;
    this.data = data;
  }

  /** The kind of failure, if `data` names it. */
  get kind(): ErrorKind | undefined {
    try {
      // Without a helper, so that a bundle of the classes of errors stays small.
      const kind = (this.data as { readonly kind?: unknown } | undefined)?.kind;
      return isKind(kind) ? kind : undefined;
    } catch {
      // `data` may come from user code, and its getters may throw.
      return undefined;
    }
  }

  /** Creates an error of a kind. Its code is the one that the caller's revision has for the kind. */
  static of(
    kind: ErrorKind,
    message: string,
    data?: Readonly<Record<string, unknown>>,
    options?: { cause?: unknown },
  ): McpError {
    return new McpError(CODES[kind], message, { kind, ...data }, options);
  }

  /** The error that a JSON-RPC error response describes. */
  static fromBody(body: ErrorBody): McpError {
    return new McpError(body.code, body.message, body.data);
  }

  /** The field `error` of a JSON-RPC response. */
  toBody(): ErrorBody {
    const { code, message, data } = this;
    return data === undefined ? { code, message } : { code, message, data };
  }
}

// The codes of JSON-RPC, to recognize errors of other implementations, which have no kind.
export const METHOD_NOT_FOUND: number = CODES.method_not_found;
export const INVALID_PARAMS: number = CODES.invalid_params;
export const INTERNAL_ERROR: number = CODES.internal_error;

export function methodNotFound(method: string): McpError {
  return McpError.of("method_not_found", `Method not found: ${method}`, { method });
}

export function invalidParams(message: string, data?: Readonly<Record<string, unknown>>): McpError {
  return McpError.of("invalid_params", message, data);
}

/** A ConnectionError becomes an error of the kind `timeout` or `unreachable`, any other exception an internal error. */
export function toMcpError(error: unknown): McpError {
  if (error instanceof McpError) return error;
  if (error instanceof ConnectionError) {
    const kind: ErrorKind = error.kind === "timeout" ? "timeout" : "unreachable";
    const { kind: connection, mayHaveRun } = error;
    return McpError.of(kind, withoutFolders(withoutDiagnostics(error)), { connection, mayHaveRun }, { cause: error });
  }
  const message = withoutFolders(withoutDiagnostics(error));
  return McpError.of("internal_error", `Internal error: ${message}`, undefined, { cause: error });
}

/** The folders of an absolute path, but not of a URL. */
const FOLDERS = /(?<![\w:/.~-])(?:\/|[A-Z]:\\)([^\s/\\'";:,]+[/\\])+/g;

/** The message without the output of a program, which is meant for the operator and may concern another client. */
export function withoutDiagnostics(thrown: unknown): string {
  let message = errorMessage(thrown);
  for (let cause = thrown; cause instanceof ConnectionError; cause = cause.cause) {
    message = message.replaceAll(cause.diagnostics ?? "", "");
  }
  return LOADING.test(message) ? withoutFolders(message) : message;
}

/** Errors that occur when code is loaded. Their messages name files of the installation. */
const LOADING = /^(?:EMFILE|ENFILE|Cannot find (?:module|package))\b/;

/**
 * The message without the folders of absolute paths. For errors that we did not expect: callers need not know where our
 * files are. What a tool throws is left as it is, since the model may have named the path itself.
 */
export function withoutFolders(message: string): string {
  return message.replace(FOLDERS, ".../");
}

/** The kind of an McpError. Never throws, even for a value whose prototype cannot be read. */
export function errorKind(error: unknown): ErrorKind | undefined {
  try {
    return error instanceof McpError ? error.kind : undefined;
  } catch {
    return undefined;
  }
}

/** Kinds of errors after which another attempt may succeed. */
const TEMPORARY: ReadonlySet<ErrorKind | undefined> = new Set<ErrorKind>([
  "timeout",
  "unreachable",
  "rate_limited",
  "shutting_down",
]);

/** Whether another attempt may succeed. */
export function isTemporary(error: unknown): boolean {
  return TEMPORARY.has(errorKind(error));
}

/** The result for arguments that do not match a tool's schema. The model can read it and correct them. */
export function invalidArguments(
  toolName: string,
  issues: readonly string[],
): { readonly content: readonly { readonly type: "text"; readonly text: string }[]; readonly isError: true } {
  const lines = issues.map((issue) => `\n- ${issue}`).join("");
  return { content: [{ type: "text", text: `Invalid arguments for the tool ${toolName}:${lines}` }], isError: true };
}

/** The same as a protocol error, for older revisions. */
export function invalidArgumentsError(toolName: string, issues: readonly string[]): McpError {
  const details = issues.map((issue) => issue.replace(/: (?=is |must )/, " ")).join("; ");
  return McpError.of("invalid_params", `Invalid params for the tool ${toolName}: ${details}`, { toolName, details });
}
