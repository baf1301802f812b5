// The two headers of bearer tokens (RFC 6750): Authorization as it comes in, WWW-Authenticate as it goes out. What
// comes in is anybody's, and so may be what goes out with it: nothing leaves here that could end a header or a
// quoted string. What a token is worth is for others.

export type Brought =
  | { readonly kind: "none" }
  | { readonly kind: "malformed"; readonly why: string }
  | { readonly kind: "token"; readonly token: string };

/** RFC 6750, 2.1. */
const TOKEN = /^[A-Za-z0-9\-._~+/]+=*$/;

/** What the value of Authorization brings. The name of a scheme has no case. */
export function tokenOf(authorization: string | undefined): Brought {
  if (authorization === undefined) return { kind: "none" };
  const [scheme = "", ...rest] = authorization.trim().split(" ");
  if (scheme.toLowerCase() !== "bearer") {
    // Several headers of one name arrive as one value.
    if (!/,\s*bearer(?:\s|$)/i.test(authorization)) return { kind: "none" };
    return { kind: "malformed", why: "Authorization has more than one scheme" };
  }
  const token = rest.join(" ").trim();
  // No token is no attempt: a caller that is told so gets itself one.
  if (token === "") return { kind: "none" };
  if (TOKEN.test(token)) return { kind: "token", token };
  return { kind: "malformed", why: "Authorization must have the form: Bearer, one blank, one token" };
}

export interface Challenge {
  readonly error?: "invalid_request" | "invalid_token" | "insufficient_scope";
  readonly description?: string;
  /** What a token must allow for this call. */
  readonly scopes?: readonly string[];
  /** Where it stands how to get a token. */
  readonly metadata?: string | undefined;
}

/** The value of WWW-Authenticate. */
export function challengeText({ error, description, scopes = [], metadata }: Challenge): string {
  const fields = {
    error,
    error_description: description,
    scope: scopes.length === 0 ? undefined : scopes.join(" "),
    resource_metadata: metadata,
  };
  const said = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : `${name}=${quoted(value)}`,
  );
  return said.length === 0 ? "Bearer" : `Bearer ${said.join(", ")}`;
}

function quoted(text: string): string {
  return `"${text.replaceAll(/[^\x20-\x7e]/g, "?").replaceAll(/["\\]/g, "\\$&")}"`;
}
