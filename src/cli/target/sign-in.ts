// Who we are toward an end over HTTP: the token that the person gave, or one that is had by signing in. The browser is
// opened only where there is a person to see it, and only after a word about it; elsewhere the tokens of an earlier
// time are used, or it is said what to do. No token, code or secret is ever printed.

import type { Authorizer } from "../../core/authentication.ts";
import { ConnectionError } from "../../core/errors.ts";
import { isLoopback } from "../../http/server/guard.ts";
import { UsageError } from "../exit-codes.ts";
import { harmless } from "../terminal/harmless.ts";
import type { TargetValues } from "./target.ts";

const TOKEN_VARIABLE = "CATENARY_TOKEN";

export interface SignIn {
  /** Whether there is a person who could sign in. */
  readonly isPerson: boolean;
  /** A line that the person must see. */
  readonly say: (text: string) => void;
  /** A line that may be left out. */
  readonly note: (text: string) => void;
  /** What is under way. */
  readonly busy: (text: string) => void;
}

/** Opens an address in the person's browser; false where that cannot be done. */
export async function openPage(url: URL): Promise<boolean> {
  const { openBrowser } = await import("../../auth/oauth/browser.ts");
  return openBrowser(url).catch(() => false);
}

/** The token in the environment. It is taken out of it: a program that we start has no business with it. */
export function takeToken(): string | undefined {
  const token = process.env[TOKEN_VARIABLE];
  delete process.env[TOKEN_VARIABLE];
  return token === "" ? undefined : token;
}

/** Undefined where the person has given a header that says it. */
export async function authorizerFor(
  url: URL,
  values: TargetValues,
  token: string | undefined,
  person: SignIn,
): Promise<Authorizer | undefined> {
  if (token !== undefined) {
    if (url.protocol === "http:" && !isLoopback(url.hostname)) {
      person.say(`Warning: the token goes to ${url.host} over http, and anybody on the way can read it`);
    }
    const { bearerToken } = await import("../../auth/oauth/bearer-token.ts");
    try {
      return bearerToken(token);
    } catch {
      const where = values.token === undefined ? TOKEN_VARIABLE : "--token";
      throw new UsageError(`${where} is no token: it has what cannot stand in a header`);
    }
  }
  if ((values.header ?? []).some((header) => /^authorization:/i.test(header))) return undefined;
  const [{ oauth }, { fileTokens }, { loopbackRedirect }] = await Promise.all([
    import("../../auth/oauth/oauth.ts"),
    import("../../auth/oauth/file-tokens.ts"),
    import("../../auth/oauth/loopback-redirect.ts"),
  ]);
  const { "client-metadata": metadataUrl, scope } = values;
  const client = clientOf(values);
  try {
    return oauth({
      store: fileTokens(undefined, { onNotice: person.note }),
      onNotice: person.note,
      ...(person.isPerson ? { redirect: loopbackRedirect({ open: (page) => send(page, url, person) }) } : undefined),
      ...(client === undefined ? undefined : { client }),
      ...(metadataUrl === undefined ? undefined : { metadataUrl }),
      ...(scope === undefined ? undefined : { scopes: scope.flatMap((words) => words.split(" ").filter(Boolean)) }),
    });
  } catch (error) {
    if (error instanceof TypeError && metadataUrl !== undefined) {
      throw new UsageError(
        "--client-metadata must be an https URL with a path, such as https://example.com/client.json",
      );
    }
    throw error;
  }
}

/** The person is told before anything opens, and can go there by hand. */
async function send(page: URL, url: URL, { say, busy }: SignIn): Promise<void> {
  say(`${url.host} wants you to sign in, at ${page.host}. The browser opens; if it does not, open this address:`);
  say(harmless(page.href));
  busy(`Waiting until you have signed in at ${page.host}`);
  await openPage(page);
}

function clientOf(values: TargetValues): { readonly id: string; readonly secret?: string } | undefined {
  const { "client-id": id, "client-secret-env": variable } = values;
  if (id === undefined && variable !== undefined) throw new UsageError("--client-secret-env goes with --client-id");
  if (id === undefined) return undefined;
  if (variable === undefined) return { id };
  const secret = process.env[variable];
  if (secret === undefined || secret === "")
    throw new UsageError(`--client-secret-env: there is no variable ${variable}`);
  return { id, secret };
}

/** What an end says of which we cannot find out who gives tokens for it. */
const NOWHERE = /^(\S+) says nowhere how to get a token, and the default way fails: /;
const PRINTED = "what catenary serves prints it when it is started";

/** An error for want of a proof, with what the person can do about it. */
export function withAdvice(error: unknown, { isPerson, hasToken }: { isPerson: boolean; hasToken: boolean }): unknown {
  if (!(error instanceof ConnectionError) || error.kind !== "unauthorized") return error;
  const told = (message: string): ConnectionError => new ConnectionError("unauthorized", message, { cause: error });
  const [start, end] = NOWHERE.exec(error.message) ?? [];
  if (start !== undefined) {
    const first = `${end} wants a token: give it in ${TOKEN_VARIABLE} (${PRINTED})`;
    // Where nobody could have signed in, that nobody has is no news.
    return told(isPerson ? `${first}\nNor could you sign in: ${error.message.slice(start.length)}` : first);
  }
  const advice = hasToken
    ? `bring another token (${PRINTED}), or, where one can sign in, leave it out and do so in a terminal`
    : isPerson
      ? `give a token in ${TOKEN_VARIABLE}, or a client by --client-id`
      : `sign in by running it in a terminal, without --no-login, or give a token in ${TOKEN_VARIABLE}`;
  return told(`${error.message}\nWhat you can do: ${advice}`);
}
