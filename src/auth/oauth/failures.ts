// What goes wrong on the way to a token, as the one error that leaves this room. The errors of oauth4webapi carry what
// they stumbled over (answers with tokens, addresses with codes) as their cause: nothing of that is passed on, only
// what they say, and of what a server said itself only a line without what looks like a secret.

import { ConnectionError } from "../../core/errors.ts";
import { errorMessage } from "../../core/text.ts";

/** The end has not begun with a request that it refused. */
export function unauthorized(message: string): ConnectionError {
  return new ConnectionError("unauthorized", message, { mayHaveRun: false });
}

/** What must not be shown, even where a server repeats it; those that are not there, or too short to be one, are none. */
export type Secrets = readonly (string | undefined)[];

/** What was thrown while `doing` (a clause without a full stop), made safe to show. */
export function refusal(doing: string, error: unknown, secrets: Secrets = []): ConnectionError {
  if (error instanceof ConnectionError && (error.kind === "unauthorized" || error.kind === "cancelled")) return error;
  const { name } = (error ?? {}) as { name?: unknown };
  if (name === "AbortError") return new ConnectionError("cancelled", `Given up: ${doing}`, { mayHaveRun: false });
  if (name === "TimeoutError") return unauthorized(`It took too long: ${doing}`);
  return unauthorized(`Failed: ${doing}: ${reasonOf(error, secrets)}`);
}

/** What an error of oauth4webapi or of `fetch` says, without what it carries. */
export function reasonOf(error: unknown, secrets: Secrets = []): string {
  if (error instanceof ConnectionError) return error.message;
  const { code, status, cause } = (error ?? {}) as { code?: unknown; status?: unknown; cause?: unknown };
  const said = oauthError(error, secrets);
  if (said !== undefined) return said;
  if (code === "OAUTH_WWW_AUTHENTICATE_CHALLENGE") return `it answered HTTP ${String(status)}`;
  if (cause instanceof Response) return answered(cause);
  // What `fetch` knows of a connection stands in the cause; elsewhere a cause may hold anything.
  if (error instanceof TypeError && cause instanceof Error) return plain(`${error.message}: ${causeText(cause)}`);
  return plain(errorMessage(error), secrets);
}

/** The `error` that a server named, in its answer or on the way back from it. */
export function errorCode(error: unknown): string | undefined {
  const { error: named } = (error ?? {}) as { error?: unknown };
  return typeof named === "string" ? named : undefined;
}

function oauthError(error: unknown, secrets: Secrets): string | undefined {
  const named = errorCode(error);
  if (named === undefined) return undefined;
  const { error_description: description } = error as { error_description?: unknown };
  const more = typeof description === "string" && description !== "" ? ` (${plain(description, secrets)})` : "";
  return `${plain(named, secrets)}${more}`;
}

/** What an answer's head says, for people. */
export function answered({ status, headers }: Response): string {
  const elsewhere = status >= 300 && status < 400 && headers.has("location");
  return `it answered HTTP ${status}${elsewhere ? ", a redirect, which is not followed here" : ""}`;
}

function causeText(cause: Error): string {
  // Several addresses were tried: the message is empty, the code is not.
  const { code } = cause as { code?: unknown };
  return cause.message === "" && typeof code === "string" ? code : cause.message;
}

const LONGEST = 200;
/** Less than that is a word, not a secret. */
const SHORTEST = 3;

/** On one line, without what writes on terminals, without what might be a token. */
export function plain(text: string, secrets: Secrets = []): string {
  const known = secrets.filter((secret) => secret !== undefined && secret.length > SHORTEST);
  const line = known
    .reduce<string>((rest, secret) => rest.replaceAll(String(secret), "..."), text)
    .replaceAll(/[\s\p{Cc}\p{Cf}]+/gu, " ")
    .replaceAll(/[\w-]{28,}(?:\.[\w-]+)*/g, "...")
    .trim();
  return line.length > LONGEST ? `${line.slice(0, LONGEST)}...` : line;
}
