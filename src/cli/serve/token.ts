// Decides who may call over HTTP. If the config has a token or callers, callers must send a token of these. If it has
// none, a server that runs code requires a generated token, unless --no-token is given. Any other server requires no
// token, unless --require-token is given.

import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { link, rm } from "node:fs/promises";
import { join } from "node:path";
import { AuthError, TOKEN_PRINCIPAL, type Authenticator } from "../../core/authentication.ts";
import type { Handler } from "../../core/handler.ts";
import { evaluatesCode } from "../../core/handler-marks.ts";
import { defined, errorMessage } from "../../core/values.ts";
import type { ServeHttpOptions } from "../../http/server/mount.ts";
import { UsageError } from "../command.ts";
import { printStatus } from "../terminal/output.ts";

/** What the banner says about tokens. */
export interface TokenBanner {
  /** The path of the config whose token callers must send; the token itself is not printed. */
  readonly tokenIn?: string | undefined;
  /** What the token is there. Default: the value of listen.token. */
  readonly tokenKey?: string | undefined;
  /** The generated token that callers must send; printed here and nowhere else. */
  readonly token?: string | undefined;
  /** The generated token is the same at the next start. */
  readonly isTokenKept?: boolean | undefined;
  /** Callers can run code. */
  readonly evaluatesCode?: boolean | undefined;
  /** How to require a token, where none is required and that was not asked for. */
  readonly howToRequire?: string | undefined;
  /** No token is required although callers can run code. */
  readonly isOpen?: boolean | undefined;
}

export interface TokenSetup {
  readonly http: Pick<ServeHttpOptions, "auth">;
  readonly banner: TokenBanner;
}

export interface TokenOptions {
  /** The token of the config. */
  readonly token?: string | undefined;
  /** The current callers of the config, by name. */
  readonly callers?: (() => ReadonlyMap<string, { readonly token: string }>) | undefined;
  /** The token for a server that has no other. Default: the one that is kept in a file, or a new one. */
  readonly generated?: string | undefined;
  /** The path of the config. */
  readonly path?: string | undefined;
  /** The token of the starter is kept in a file, and so is that of --require-token. */
  readonly isStarter?: boolean;
  /** --require-token is given. */
  readonly isRequired?: boolean;
  /** --no-token is given. */
  readonly noToken: boolean;
}

export async function setUpToken(
  handler: Handler,
  { token, callers = () => new Map(), path, isStarter = false, isRequired = false, noToken, ...others }: TokenOptions,
): Promise<TokenSetup> {
  if (isRequired && noToken) throw new UsageError("Give --require-token or --no-token, not both");
  const isLive = evaluatesCode(handler);
  if (token !== undefined || callers().size > 0) {
    const key = token === undefined ? "callers" : "listen.token";
    if (noToken) throw new UsageError(`--no-token contradicts ${key} in ${path}; remove one of them`);
    const auth = await acceptTokens(CONFIG_HINT, () => [
      ...(token === undefined ? [] : [[TOKEN_PRINCIPAL, token] as const]),
      ...[...callers()].map(([name, caller]) => [name, caller.token] as const),
    ]);
    const tokenKey = token === undefined ? "the token of a caller" : undefined;
    return {
      http: { auth },
      banner: { tokenIn: path, ...defined({ tokenKey }), evaluatesCode: isLive },
    };
  }
  if (!isLive && !isRequired) {
    return { http: {}, banner: noToken ? {} : { howToRequire: "--require-token" } };
  }
  if (noToken) return { http: { auth: false }, banner: { evaluatesCode: true, isOpen: true } };
  const isKept = isStarter || !isLive;
  const stored = isKept ? () => storedSecret("starter.token", "the token is only for this run") : () => undefined;
  const kept = others.generated ?? (await stored());
  const generated = kept ?? randomBytes(KEY_BYTES).toString("base64url");
  const auth = await acceptTokens("it was printed when the server was started", () => [[TOKEN_PRINCIPAL, generated]]);
  return { http: { auth }, banner: { token: generated, isTokenKept: kept !== undefined, evaluatesCode: isLive } };
}

const CONFIG_HINT =
  "send the header Authorization: Bearer TOKEN, with a token of the gateway's config (listen.token, callers)";

/**
 * `known` returns the tokens with the principals that have them. `hint` says where to find a token: it is in the error
 * message, because many clients show only that.
 */
async function acceptTokens(
  hint: string,
  known: () => readonly (readonly [principal: string, token: string])[],
): Promise<Authenticator> {
  const { bearer } = await import("../../auth/bearer/bearer.ts");
  const auth = bearer({
    verify: (sent) => {
      const sum = digest(sent);
      let owner: string | undefined;
      // Digests have equal lengths, and all are compared, so the time tells neither a length nor which one fits.
      for (const [principal, token] of known()) if (timingSafeEqual(sum, digest(token))) owner = principal;
      return owner === undefined ? undefined : { principal: owner };
    },
  });
  return {
    authenticate: (credentials) =>
      auth.authenticate(credentials).catch((error: unknown) => {
        if (!(error instanceof AuthError) || error.status !== 401) throw error;
        throw new AuthError(401, `${error.message}; ${hint}`, error.challenge);
      }),
  };
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** Of a generated token, and of a secret that is kept. */
const KEY_BYTES = 32;

/**
 * A secret of the user that is the same at each start, kept in a file. Returns undefined, and prints what follows from
 * that, if the file cannot be used.
 */
export async function storedSecret(name: string, otherwise: string): Promise<string | undefined> {
  const { makePrivateDirectory, readPrivate, stateDirectory, writePrivate } =
    await import("../../core/private-files.ts");
  const file = join(stateDirectory(), name);
  try {
    const known = await readPrivate(file);
    if (known !== undefined && known !== "") return known;
    await makePrivateDirectory(stateDirectory());
    const draft = `${file}.${randomBytes(6).toString("hex")}`;
    await writePrivate(draft, randomBytes(KEY_BYTES).toString("base64url"));
    // Fails if another process has written the key meanwhile; that one is used then.
    const linked = await Promise.allSettled([link(draft, file)]);
    await rm(draft);
    const key = await readPrivate(file);
    if (key === undefined) throw (linked[0] as PromiseRejectedResult).reason;
    return key;
  } catch (error) {
    printStatus(`catenary: ${otherwise}: ${errorMessage(error)}`);
    return undefined;
  }
}
