// Turns failures of the OAuth flow into ConnectionErrors that are safe to show. The cause of an oauth4webapi error may
// be a response with tokens, or a URL with a code. So only the message is kept, and text from a server is redacted.

import { ConnectionError } from "../../core/errors.ts";
import { errorMessage } from "../../core/values.ts";

export function unauthorized(message: string): ConnectionError {
  // The MCP server refused the request, so it has not run.
  return new ConnectionError("unauthorized", message, { mayHaveRun: false });
}

/** Strings that no message may contain, even if a server repeats them. Undefined and very short ones are ignored. */
export type Secrets = readonly (string | undefined)[];

/**
 * Converts an error into one that is safe to show.
 *
 * @param doing What was attempted, such as "getting a token".
 */
export function authFailure(doing: string, error: unknown, secrets: Secrets = []): ConnectionError {
  if (error instanceof ConnectionError && (error.kind === "unauthorized" || error.kind === "cancelled")) return error;
  const { name } = (error ?? {}) as { name?: unknown };
  if (name === "AbortError") return new ConnectionError("cancelled", `Cancelled: ${doing}`, { mayHaveRun: false });
  if (name === "TimeoutError") return unauthorized(`Timed out: ${doing}`);
  return unauthorized(`Failed: ${doing}: ${reasonOf(error, secrets)}`);
}

/** The message of an error of oauth4webapi or `fetch`, without the other data of the error. */
export function reasonOf(error: unknown, secrets: Secrets = []): string {
  if (error instanceof ConnectionError) return error.message;
  const { code, status, cause } = (error ?? {}) as { code?: unknown; status?: unknown; cause?: unknown };
  const named = oauthError(error, secrets);
  if (named !== undefined) return named;
  if (code === "OAUTH_WWW_AUTHENTICATE_CHALLENGE") return `it answered HTTP ${String(status)}`;
  if (cause instanceof Response) return describeResponse(cause);
  // `fetch` describes a failed connection in the cause. Other causes may contain secrets.
  if (error instanceof TypeError && cause instanceof Error) return redact(`${error.message}: ${causeText(cause)}`);
  return redact(errorMessage(error), secrets);
}

/** The OAuth error code that the server sent in its response or redirect. */
export function errorCode(error: unknown): string | undefined {
  const { error: code } = (error ?? {}) as { error?: unknown };
  return typeof code === "string" ? code : undefined;
}

function oauthError(error: unknown, secrets: Secrets): string | undefined {
  const code = errorCode(error);
  if (code === undefined) return undefined;
  const { error_description: description } = error as { error_description?: unknown };
  const more = typeof description === "string" && description !== "" ? ` (${redact(description, secrets)})` : "";
  return `${redact(code, secrets)}${more}`;
}

export function describeResponse({ status, headers }: Response): string {
  const isRedirect = status >= 300 && status < 400 && headers.has("location");
  return `it answered HTTP ${status}${isRedirect ? ", a redirect, which is not followed here" : ""}`;
}

function causeText(cause: Error): string {
  // If a host has several addresses and all fail, the cause is an AggregateError with a code and an empty message.
  const { code } = cause as { code?: unknown };
  return cause.message === "" && typeof code === "string" ? code : cause.message;
}

const MAX_TEXT_LENGTH = 200;
/** Secrets up to this length are not redacted, since they would match parts of ordinary words. */
const MAX_WORD_LENGTH = 3;

/** Makes a server's text safe to show: one short line without control characters, secrets and token-like strings. */
export function redact(text: string, secrets: Secrets = []): string {
  const known = secrets.filter((secret) => secret !== undefined && secret.length > MAX_WORD_LENGTH);
  const line = known
    .reduce<string>((rest, secret) => rest.replaceAll(String(secret), "..."), text)
    .replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, " ")
    .replaceAll(/[\w-]{28,}(?:\.[\w-]+)*/g, "...")
    .trim();
  return line.length > MAX_TEXT_LENGTH ? `${line.slice(0, MAX_TEXT_LENGTH)}...` : line;
}
