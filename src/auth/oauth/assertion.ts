// What others vouch for: a text that a platform or an identity provider made, given as it is, or by a function that
// brings a fresh one each time, because such texts expire soon. It is as secret as a password.

import type { AuthorizationServer } from "oauth4webapi";
import { plain, unauthorized } from "./failures.ts";
import { sameIssuer } from "./issuer-bond.ts";

/** For what an assertion is needed. */
export interface AssertionWanted {
  /** Who will read it: the issuer of the authorization server, or of the identity provider. */
  readonly audience: string;
  /** The end that it is all for. */
  readonly resource: string;
  readonly signal: AbortSignal;
}

export type Assertion = string | ((wanted: AssertionWanted) => Promise<string> | string);

/** @param what What it is called when there is none. */
export async function assertionFor(assertion: Assertion, wanted: AssertionWanted, what: string): Promise<string> {
  let text: unknown = assertion;
  if (typeof assertion === "function") {
    try {
      text = await assertion(wanted);
    } catch (error) {
      wanted.signal.throwIfAborted();
      const failure = unauthorized(`The program's function for ${what} failed`);
      failure.cause = error;
      throw failure;
    }
  }
  // Files that hold one often end with a newline.
  const trimmed = typeof text === "string" ? text.trim() : "";
  if (trimmed === "") throw unauthorized(`There is no ${what}: what the program gives is empty`);
  return trimmed;
}

/** Whom a JWT is about; undefined where it does not say, or is brought by a function. Nothing is verified. */
export function subjectOf(assertion: Assertion): string | undefined {
  if (typeof assertion === "function") return undefined;
  const { iss, sub } = claimsOf(assertion);
  return typeof sub === "string" ? `${sub} of ${String(iss)}` : undefined;
}

/**
 * Throws where a JWT is for somebody else than this server: it is the end that names the server, and one that should
 * not have the JWT could show it to those that it is for. A JWT that does not say for whom it is may be for anybody.
 */
export function heldToAudience(text: string, { issuer, token_endpoint: endpoint }: AuthorizationServer): void {
  const { aud } = claimsOf(text);
  const named = (Array.isArray(aud) ? aud : [aud]).filter((one) => typeof one === "string");
  const isFor = (one: string): boolean => one === endpoint || sameIssuer(one, issuer);
  if (named.length === 0 || named.some(isFor)) return;
  const advice = "name the `issuer` that may see it, if that is the one";
  throw unauthorized(`The JWT is for ${plain(named.join(", "))} and is not shown to ${issuer}: ${advice}`);
}

/** Nothing is verified. */
function claimsOf(jwt: string): Readonly<Record<string, unknown>> {
  try {
    const [, payload = ""] = jwt.split(".");
    const claims: unknown = JSON.parse(Buffer.from(payload, "base64url").toString());
    return typeof claims === "object" && claims !== null ? (claims as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
