// The local error: what went wrong between us and the other side of a wire. It never crosses a wire
// itself (McpError does). Its `kind` is a closed list, so that callers can switch over it.

export type LinkErrorKind =
  | "closed"
  | "timeout"
  | "cancelled"
  | "refused"
  | "spawn"
  | "http"
  | "unauthorized"
  | "protocol";

export class LinkError extends Error {
  readonly kind: LinkErrorKind;
  constructor(kind: LinkErrorKind, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "LinkError";
    this.kind = kind;
  }
}
