// Who is let in over HTTP: whoever brings the token of the config; where code can be evaluated, whoever brings a token,
// which is made here if the config has none; otherwise everybody. What a person is told of it is in announcement.ts.

import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { type Authenticator, AuthError } from "../../core/authentication.ts";
import type { Handler } from "../../core/handler.ts";
import { evaluatesCode } from "../../core/evaluates-code.ts";
import type { ServeHttpOptions } from "../../http/server/mount.ts";
import type { Ready } from "./announcement.ts";
import { UsageError } from "../exit-codes.ts";

export interface Admission {
  /** For the front. */
  readonly http: Pick<ServeHttpOptions, "auth">;
  /** For the person. */
  readonly told: Pick<Ready, "tokenIn" | "token" | "isLive" | "isOpen">;
}

export interface Wishes {
  /** The token of the config, and where that is. */
  readonly token?: string | undefined;
  readonly path?: string | undefined;
  /** Nobody shall be asked for one. */
  readonly isUnasked: boolean;
}

/** Bytes of a token that is made; nobody guesses so many. */
const TOKEN_BYTES = 32;

/** Whoever brings the token is one and the same, as far as anybody can tell. */
const BEARER = "bearer of the token";

export async function admission(handler: Handler, { token, path, isUnasked }: Wishes): Promise<Admission> {
  if (token !== undefined) {
    if (isUnasked) throw new UsageError(`--no-token: ${path} asks for one, under listen.token; take it out there`);
    return { http: { auth: await tokenBearer(token) }, told: { tokenIn: path, evaluatesCode: evaluatesCode(handler) } };
  }
  if (!evaluatesCode(handler)) return { http: {}, told: {} };
  if (isUnasked) return { http: { auth: false }, told: { evaluatesCode: true, isOpen: true } };
  const made = randomBytes(TOKEN_BYTES).toString("base64url");
  return { http: { auth: told(await tokenBearer(made)) }, told: { token: made, evaluatesCode: true } };
}

/** Whoever is refused hears where the token is found: many programs show nothing else than this. */
function told(auth: Authenticator): Authenticator {
  return {
    authenticate: (credentials) =>
      auth.authenticate(credentials).catch((error: unknown) => {
        if (!(error instanceof AuthError) || error.status !== 401) throw error;
        throw new AuthError(401, `${error.message}; it was printed when the server was started`, error.challenge);
      }),
  };
}

/** Lets in whoever brings this token, and nobody else. */
async function tokenBearer(token: string): Promise<Authenticator> {
  const { bearer } = await import("../../auth/bearer/bearer.ts");
  const wanted = digest(token);
  // Of digests, because the comparison takes equal lengths, and the length would be told by how long it takes.
  return bearer({ verify: (given) => (timingSafeEqual(digest(given), wanted) ? { principal: BEARER } : undefined) });
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
