// Signing in to the servers of a config: the keys `auth` and `oauth` of an entry with a URL, and the authorizer that is
// made of them. Tokens are in the same file as those of the commands, so one sign-in is enough for all of them.

import { NoSignInError } from "../auth/oauth/errors.ts";
import type { FileTokenStore } from "../auth/oauth/token-stores.ts";
import type { Redirect } from "../auth/oauth/types.ts";
import type { Authorizer } from "../core/authentication.ts";
import { ConnectionError } from "../core/errors.ts";
import { number, strings, text, type OptionsOf } from "../core/fields.ts";
import { defined } from "../core/values.ts";
import * as read from "./readers.ts";

const SETTINGS = {
  clientId: text("The id of a client that is already registered. Default: one is registered automatically."),
  clientSecret: text("The secret of that client, such as ${CLIENT_SECRET}."),
  scopes: strings("Scopes to ask for, in addition to those that the server names."),
  metadataUrl: text("The https URL of the client's metadata document, for servers that read such documents."),
  callbackPort: number("The port on this machine that the browser comes back to. Default: a free one.", [1, 65_535]),
};

/** How to sign in to one server. */
export type SignInSettings = OptionsOf<typeof SETTINGS>;

/** A server that a user may have to sign in to. */
export interface SignInTarget {
  /** Its name in the config; absent if it is not in a config. */
  readonly name?: string;
  /** Its URL. */
  readonly url: URL;
  /** How to sign in to it. */
  readonly settings: SignInSettings;
}

/** Lets a user sign in to an upstream. Returns undefined if no user can be asked. */
export type SignIn = (target: SignInTarget) => Redirect | undefined | Promise<Redirect | undefined>;

const scopeList = read.arrayOf(read.nonEmptyString, 'an array of strings, such as ["notes:read"]');

const FIELDS = {
  ...read.readersOf(SETTINGS),
  scopes: read
    .reader({ anyOf: [scopeList.schema, read.nonEmptyString.schema] }, (cursor) =>
      cursor.kind === "string" ? read.nonEmptyString(cursor)?.split(/\s+/).filter(Boolean) : scopeList(cursor),
    )
    .describe(SETTINGS.scopes.description),
  metadataUrl: read
    .stringThat(
      (text) => URL.canParse(text) && new URL(text).protocol === "https:" && new URL(text).pathname !== "/",
      "not the URL of a metadata document",
      "write an https URL with a path, such as https://example.com/client.json",
      "^https://|\\$\\{",
    )
    .describe(SETTINGS.metadataUrl.description),
} as const satisfies read.Fields;

/** Cursor's names of two keys. */
const CURSOR_FIELDS = { CLIENT_ID: FIELDS.clientId, CLIENT_SECRET: FIELDS.clientSecret } as const;

const EXPECTED = 'an object, such as {"clientId": "..."}, or false';

function settingsReader(
  onUnknown?: (unknown: read.Cursor, known: readonly string[]) => void,
): read.Reader<SignInSettings | false> {
  const fields = { ...FIELDS, ...CURSOR_FIELDS };
  const objectSchema = { properties: read.schemasOf(FIELDS), additionalProperties: false };
  return read.reader({ type: ["object", "boolean"], ...(onUnknown === undefined && objectSchema) }, (cursor) => {
    if (cursor.kind === "boolean") return cursor.value === true ? {} : false;
    if (cursor.kind !== "object") return read.wrongType(cursor, EXPECTED);
    const { CLIENT_ID, CLIENT_SECRET, ...written } = read.readFields(cursor, fields, onUnknown);
    const settings = { ...defined({ clientId: CLIENT_ID, clientSecret: CLIENT_SECRET }), ...written };
    if (
      settings.clientSecret !== undefined &&
      settings.clientId === undefined &&
      cursor.get("clientId") === undefined
    ) {
      return cursor.error("has a clientSecret without a clientId", "add the clientId, or remove the clientSecret");
    }
    return settings;
  });
}

/** The keys of an entry. Other clients call the first one `oauth`, and have keys in it that are not needed here. */
export const SIGN_IN_FIELDS: Readonly<Record<"auth" | "oauth", read.Reader<SignInSettings | false>>> = {
  auth: settingsReader().describe(
    "How to sign in to the server with OAuth, if it asks for it. false: send no stored token. Default: tokens of catenary login are used.",
  ),
  oauth: settingsReader((unknown) => unknown.warnAtKey("ignored", "it is found automatically")).describe(
    "Same as auth, by the name that some clients use.",
  ),
};

export interface AuthorizerOptions {
  readonly signIn?: SignIn | undefined;
  readonly onNotice: (text: string) => void;
}

/**
 * Uses stored tokens, renews them, and lets the user sign in if the server asks for it. While the server asks for
 * nothing, no OAuth code is loaded and requests stay as they are.
 */
export async function createAuthorizer(
  target: SignInTarget,
  { signIn, onNotice }: AuthorizerOptions,
): Promise<Authorizer> {
  const { url, settings } = target;
  const { hasStoredTokens } = await import("../auth/oauth/stored-tokens.ts");
  const { auth, store } = await createOAuth(settings, onNotice, (await signIn?.(target)) ?? noRedirect(target));
  let isNeeded: boolean | undefined;
  return {
    authorize: async (request) => {
      // A file that cannot be read is reported when the server asks for a token, and not before.
      isNeeded ??= await hasStoredTokens(store, url).catch(() => false);
      return isNeeded ? auth.authorize(request) : {};
    },
    refused: async (challenge) => {
      isNeeded = true;
      try {
        return await auth.refused(challenge);
      } catch (error) {
        throw NoSignInError.in(error) === undefined ? error : tokenNeeded(target);
      }
    },
    answered: (request, headers) => (isNeeded === true ? auth.answered?.(request, headers) : undefined),
  };
}

/** An authorizer with the tokens that all commands and gateways of the user share. */
export async function createOAuth(
  { clientId, clientSecret: secret, scopes, metadataUrl }: SignInSettings,
  onNotice: (text: string) => void,
  redirect: Redirect | undefined,
): Promise<{ readonly auth: Authorizer; readonly store: FileTokenStore }> {
  const [{ oauth }, { fileTokens }] = await Promise.all([
    import("../auth/oauth/authorizers.ts"),
    import("../auth/oauth/token-stores.ts"),
  ]);
  const store = fileTokens(undefined, { onNotice });
  const client = clientId === undefined ? undefined : { id: clientId, ...defined({ secret }) };
  return { auth: oauth({ store, onNotice, ...defined({ redirect, client, metadataUrl, scopes }) }), store };
}

/** Refuses before a client is registered for the sign-in. */
function noRedirect(target: SignInTarget): Redirect {
  return {
    get uri(): never {
      throw signInNeeded(target);
    },
    visit: () => Promise.reject(signInNeeded(target)),
  };
}

/** The error if the server wants a token and does not say where to sign in. */
function tokenNeeded({ name, url }: SignInTarget): ConnectionError {
  const where = name === undefined ? "send it in the header Authorization" : `write it in "headers" of ${name}`;
  const example = '{"Authorization": "Bearer ${TOKEN}"}';
  const message = `${url.host} needs a token: ${where}${name === undefined ? "" : ` in the config, ${example}`}`;
  return new ConnectionError("unauthorized", message, { mayHaveRun: false });
}

/** The error for callers, who may be on another machine. It names the host alone. */
export function signInNeeded({ name, url }: SignInTarget, why = "asks for a sign-in or a token"): ConnectionError {
  const quotedName = name === undefined || /^[\w.-]+$/.test(name) ? name : JSON.stringify(name);
  const command = quotedName === undefined ? "`catenary login` with its URL" : `\`catenary login ${quotedName}\``;
  const text = `run ${command} where the gateway runs, or set an Authorization header for it`;
  return new ConnectionError("unauthorized", `${url.host} ${why}`, {
    mayHaveRun: false,
    hint: { text, action: "sign-in" },
  });
}
