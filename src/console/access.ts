// Who may use the console over HTTP: the operator, who got a link from the terminal. Its token is exchanged for a cookie
// once. Cookies are kept in memory, so they end with the gateway, and are never shown again.

import { createHash, randomBytes } from "node:crypto";

/** How many links that were not opened yet, and how many browsers, are remembered; the oldest are forgotten. */
const MAX_TOKENS = 32;
const MAX_BROWSERS = 64;

const KEY_BYTES = 32;

export class ConsoleAccess {
  readonly #tokens = new Set<string>();
  readonly #cookies = new Set<string>();

  /** A new token for one browser. */
  createToken(): string {
    const token = randomBytes(KEY_BYTES).toString("base64url");
    remember(this.#tokens, digest(token), MAX_TOKENS);
    return token;
  }

  /** Returns the value of a new cookie; undefined if the token is wrong, or was used before. */
  exchange(token: string): string | undefined {
    // Looked up by its digest, so that the time of the comparison says nothing about tokens.
    if (!this.#tokens.delete(digest(token))) return undefined;
    const value = randomBytes(KEY_BYTES).toString("base64url");
    remember(this.#cookies, digest(value), MAX_BROWSERS);
    return value;
  }

  /** Whether one of the values of a cookie is ours. */
  isKnown(values: readonly string[]): boolean {
    return values.some((value) => this.#cookies.has(digest(value)));
  }

  /** Forgets the browser with this cookie. */
  forget(values: readonly string[]): void {
    for (const value of values) this.#cookies.delete(digest(value));
  }
}

function remember(all: Set<string>, entry: string, max: number): void {
  const [oldest] = all;
  if (all.size >= max && oldest !== undefined) all.delete(oldest);
  all.add(entry);
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("base64url");
}

/**
 * The values of a cookie in a `Cookie` header. There may be several, since a server at another port of this host can set a
 * cookie of the same name.
 */
export function cookieValues(header: string | undefined, name: string): readonly string[] {
  return (header ?? "").split(";").flatMap((part) => {
    const [key, value] = part.trim().split("=", 2);
    return key === name && value !== undefined ? [value] : [];
  });
}
