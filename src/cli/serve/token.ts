// Decides who may call over HTTP. With a token in the config, callers must send it. Without one, callers that can run code
// must send a generated token, and all others may call freely.

import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { AuthError, type Authenticator } from "../../core/authentication.ts";
import { evaluatesCode, type Handler } from "../../core/handler.ts";
import type { ServeHttpOptions } from "../../http/server/mount.ts";
import { UsageError } from "../command.ts";
import type { Banner } from "./start.ts";

export interface TokenSetup {
  readonly http: Pick<ServeHttpOptions, "auth">;
  readonly banner: Pick<Banner, "tokenIn" | "token" | "evaluatesCode" | "isOpen">;
}

export interface TokenOptions {
  /** The token of the config. */
  readonly token?: string | undefined;
  /** The path of the config. */
  readonly path?: string | undefined;
  /** --no-token is given. */
  readonly noToken: boolean;
}

const TOKEN_BYTES = 32;

/** All callers with the token are the same principal. */
const PRINCIPAL = "bearer of the token";

export async function setUpToken(handler: Handler, { token, path, noToken }: TokenOptions): Promise<TokenSetup> {
  const isLive = evaluatesCode(handler);
  if (token !== undefined) {
    if (noToken) throw new UsageError(`--no-token contradicts listen.token in ${path}; remove one of them`);
    return { http: { auth: await acceptToken(token) }, banner: { tokenIn: path, evaluatesCode: isLive } };
  }
  if (!isLive) return { http: {}, banner: {} };
  if (noToken) return { http: { auth: false }, banner: { evaluatesCode: true, isOpen: true } };
  const generated = randomBytes(TOKEN_BYTES).toString("base64url");
  return { http: { auth: withHint(await acceptToken(generated)) }, banner: { token: generated, evaluatesCode: true } };
}

/** Adds where to find the token: many clients show nothing but this message. */
function withHint(auth: Authenticator): Authenticator {
  return {
    authenticate: (credentials) =>
      auth.authenticate(credentials).catch((error: unknown) => {
        if (!(error instanceof AuthError) || error.status !== 401) throw error;
        throw new AuthError(401, `${error.message}; it was printed when the server was started`, error.challenge);
      }),
  };
}

async function acceptToken(token: string): Promise<Authenticator> {
  const { bearer } = await import("../../auth/bearer/bearer.ts");
  const expected = digest(token);
  // Digests have equal lengths, so the comparison does not leak the length of the token.
  return bearer({
    verify: (given) => (timingSafeEqual(digest(given), expected) ? { principal: PRINCIPAL } : undefined),
  });
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
