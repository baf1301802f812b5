// Asks the authenticator of the user who a caller is, for at most ten seconds.

import { AuthError, type Authenticator, type Credentials, type Identity } from "../../core/authentication.ts";
import { checkIdentity, type ErrorReporter } from "./admission.ts";
import { HttpError } from "./http-request.ts";

const AUTH_TIMEOUT_MS = 10_000;

/** Throws an AuthError if the caller is not authenticated, and a 503 if the authenticator fails. */
export async function authenticate(
  auth: Authenticator,
  credentials: Credentials,
  report: ErrorReporter,
): Promise<Identity> {
  let identity: Identity | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${AUTH_TIMEOUT_MS} ms`)), AUTH_TIMEOUT_MS);
  });
  try {
    identity = checkIdentity(await Promise.race([auth.authenticate(credentials), timeout]));
  } catch (error) {
    if (error instanceof AuthError) throw error;
    report(error, "the authenticator failed");
    throw new HttpError(503, "Authentication is not available; try again later", { "retry-after": "5" });
  } finally {
    clearTimeout(timer);
  }
  if (identity !== undefined) return identity;
  throw new AuthError(401, "The caller is not authenticated", "Bearer");
}
