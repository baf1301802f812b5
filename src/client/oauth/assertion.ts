// What others vouch for: a text that a platform or an identity provider made, given as it is, or by a function that
// brings a fresh one each time, because such texts expire soon. It is as secret as a password.

import { unauthorized } from "./failures.ts";

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
  try {
    const [, payload = ""] = assertion.split(".");
    const { iss, sub } = JSON.parse(Buffer.from(payload, "base64url").toString()) as Record<string, unknown>;
    return typeof sub === "string" ? `${sub} of ${String(iss)}` : undefined;
  } catch {
    return undefined;
  }
}
