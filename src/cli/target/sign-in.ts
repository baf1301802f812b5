// Gets the credentials for a URL: a token that the user passed, or one from signing in with OAuth. The browser is
// opened only if a user is at the terminal, after a message. If there is no user, a saved token is used; without a
// saved token, the error says what to do. No token, authorization code or secret is ever printed.

import { NoSignInError } from "../../auth/oauth/errors.ts";
import type { SignInSettings } from "../../config/index.ts";
import type { Authorizer } from "../../core/authentication.ts";
import { ConnectionError } from "../../core/errors.ts";
import { defined } from "../../core/values.ts";
import { isLoopback } from "../../core/hosts.ts";
import { UsageError } from "../command.ts";
import { sanitize } from "../terminal/text.ts";
import type { SIGN_IN_FLAGS, TargetValues } from "./target.ts";

/** The variable with the token for a URL. */
export const TOKEN_VARIABLE = "CATENARY_TOKEN";

export interface SignInOptions {
  /** Whether a user is at the terminal and --no-login is not set. */
  readonly canSignIn: boolean;
  /** Prints a line that the user must see. */
  readonly print: (text: string) => void;
  /** Prints a line that --quiet suppresses. */
  readonly note: (text: string) => void;
  readonly busy: (text: string) => void;
}

/** Opens a URL in the browser; false if that is not possible. */
export async function openPage(url: URL): Promise<boolean> {
  const { openBrowser } = await import("../../auth/oauth/browser.ts");
  return openBrowser(url).catch(() => false);
}

/** Takes the token out of the environment, so that programs we start do not inherit it. */
export function takeToken(): string | undefined {
  const token = process.env[TOKEN_VARIABLE];
  delete process.env[TOKEN_VARIABLE];
  return token === "" ? undefined : token;
}

/** Returns undefined if the user passed an Authorization header and no token. */
export async function findAuthorizer(
  url: URL,
  values: TargetValues,
  token: string | undefined,
  options: SignInOptions,
): Promise<Authorizer | undefined> {
  if (token !== undefined) return bearerAuthorizer(url, token, values, options.print);
  if ((values.header ?? []).some((header) => /^authorization:/i.test(header))) return undefined;
  return createAuthorizer(url, readSettings(values), options);
}

/** Sends a token that the user passed. */
export async function bearerAuthorizer(
  url: URL,
  token: string,
  values: Pick<TargetValues, "token">,
  print: (text: string) => void,
): Promise<Authorizer> {
  if (url.protocol === "http:" && !isLoopback(url.hostname)) {
    print(`Warning: the token is sent to ${url.host} unencrypted (http); others on the network can read it`);
  }
  const { tokenAuthorizer } = await import("../../auth/oauth/authorizers.ts");
  try {
    return tokenAuthorizer(token);
  } catch {
    const source = values.token === undefined ? TOKEN_VARIABLE : "--token";
    throw new UsageError(`${source} is not a valid token: it contains characters that a header cannot have`);
  }
}

/**
 * Sends the token that a gateway of this user has generated, once the gateway asks for it, and the next one if it was
 * restarted. Anything else is left to `auth`.
 */
export function withLocalToken({ href, hostname }: URL, auth: Authorizer): Authorizer {
  if (!isLoopback(hostname)) return auth;
  let token: string | undefined;
  return {
    ...auth,
    authorize: async (request) =>
      token === undefined ? auth.authorize(request) : { authorization: `Bearer ${token}` },
    refused: async (challenge) => {
      const { tokenOf } = await import("../serve/control.ts");
      const current = await tokenOf(href);
      if (current === undefined || current === token) return auth.refused(challenge);
      token = current;
      return true;
    },
  };
}

/** Uses stored tokens, or lets the user sign in. */
export async function createAuthorizer(
  url: URL,
  settings: SignInSettings,
  options: SignInOptions,
): Promise<Authorizer> {
  const [{ createOAuth }, { loopbackRedirect }] = await Promise.all([
    import("../../config/sign-in.ts"),
    import("../../auth/oauth/loopback-redirect.ts"),
  ]);
  const open = (page: URL): Promise<void> => openSignIn(page, url, options);
  const redirect = options.canSignIn
    ? loopbackRedirect({ open, ...defined({ port: settings.callbackPort }) })
    : undefined;
  try {
    return (await createOAuth(settings, options.note, redirect)).auth;
  } catch (error) {
    if (error instanceof TypeError && settings.metadataUrl !== undefined) {
      throw new UsageError(
        "--client-metadata must be an https URL with a path, such as https://example.com/client.json",
      );
    }
    throw error;
  }
}

/** Prints the address before the browser opens, so that the user can also open it by hand. */
export async function openSignIn(
  page: URL,
  url: URL,
  { print, busy }: Pick<SignInOptions, "print" | "busy">,
): Promise<void> {
  print(`${url.host} asks you to sign in at ${page.host}. If the browser does not open, visit this address:`);
  print(sanitize(page.href));
  busy(`Waiting for you to sign in at ${page.host}`);
  await openPage(page);
}

export function readSettings(values: Pick<TargetValues, keyof typeof SIGN_IN_FLAGS>): SignInSettings {
  const { "client-id": clientId, "client-secret-env": variable, "client-metadata": metadataUrl, scope } = values;
  if (clientId === undefined && variable !== undefined) throw new UsageError("--client-secret-env needs --client-id");
  const clientSecret = variable === undefined ? undefined : process.env[variable];
  if (variable !== undefined && (clientSecret === undefined || clientSecret === "")) {
    throw new UsageError(`--client-secret-env: the variable ${variable} is not set`);
  }
  const scopes = scope?.flatMap((words) => words.split(" ").filter(Boolean));
  return defined({ clientId, clientSecret, metadataUrl, scopes });
}

const TOKEN_SOURCE = "a gateway prints the one that it makes itself; others are in its config: listen.token, callers";

/** Adds advice for the user to an authentication error. */
export function withAdvice(
  error: unknown,
  { canSignIn, hasToken }: { canSignIn: boolean; hasToken: boolean },
): unknown {
  if (!(error instanceof ConnectionError) || error.kind !== "unauthorized") return error;
  const reworded = (message: string): ConnectionError => new ConnectionError("unauthorized", message, { cause: error });
  const noSignIn = NoSignInError.in(error);
  if (noSignIn !== undefined) {
    const advice = `${noSignIn.server} needs a token: set it in ${TOKEN_VARIABLE}, or give --header 'Authorization: Bearer TOKEN' (${TOKEN_SOURCE})`;
    // Only a user who could have signed in needs to know why that failed.
    return reworded(canSignIn ? `${advice}\nSigning in failed too: ${noSignIn.cause.message}` : advice);
  }
  const advice = hasToken
    ? `use another token (${TOKEN_SOURCE}); if the server offers a sign-in, leave the token out and sign in from a terminal`
    : canSignIn
      ? `set a token in ${TOKEN_VARIABLE}, or a client with --client-id`
      : `sign in from a terminal, without --no-login, or set a token in ${TOKEN_VARIABLE}`;
  return reworded(`${error.problem}\nWhat you can do: ${advice}`);
}
