// `catenary login TARGET`, `catenary logout TARGET` and `catenary auth`: sign in to a server, forget its tokens, and list
// the servers with stored tokens. All commands and gateways of the user share these tokens. No token is ever printed,
// and of a URL only its origin, since many servers have a key in the path.

import { signOut } from "../../auth/oauth/sign-out.ts";
import { hasStoredTokens, storedServers, type StoredServer } from "../../auth/oauth/stored-tokens.ts";
import { fileTokens, type FileTokenStore } from "../../auth/oauth/token-stores.ts";
import { signInAt } from "../../config/sign-ins.ts";
import { ConnectionError } from "../../core/errors.ts";
import { boolean } from "../../core/fields.ts";
import { defined } from "../../core/values.ts";
import { EXIT, Interruption, NotFoundError, UsageError } from "../command.ts";
import { command, type Command } from "../define.ts";
import { flag, type FlagValues, type ParsedLine } from "../flags.ts";
import { createAuthorizer, readSettings, withAdvice } from "../target/sign-in.ts";
import { CONFIG, isUrl, parseHeaders, parseUrl, requireConfig, SIGN_IN_FLAGS, URL_FLAGS } from "../target/target.ts";
import { printJson, printNotice, printStatus, printTrusted, terminalWidth } from "../terminal/output.ts";
import { formatTable, oneLine } from "../terminal/text.ts";

const TARGET_ABOUT = `TARGET is a URL, or the name of a server in a config: ./${CONFIG}, or that of --config.`;

const CONFIG_FLAG = { config: flag("CONFIG", "The config that has the server.") };
const LOGIN_FLAGS = {
  ...CONFIG_FLAG,
  header: URL_FLAGS.header,
  ...SIGN_IN_FLAGS,
  json: boolean('Prints `{"server", "status"}`; the status is `signed-in`, `already-signed-in` or `not-needed`.'),
};
const LOGOUT_FLAGS = {
  all: boolean("Deletes the tokens of all servers."),
  ...CONFIG_FLAG,
  json: boolean('Prints `{"removed": [...], "notRevoked": [{"server", "issuer", "reason"}]}`.'),
};

export const loginCommand: Command = command({
  name: "login",
  usage: "TARGET [--config CONFIG] [OPTIONS]",
  about: `Signs in to a server that asks for it (OAuth in the browser), and stores the tokens. All commands use and renew them,
and so do gateways that already run. ${TARGET_ABOUT}`,
  flags: LOGIN_FLAGS,
  exits: `0 ok; 1 wrong command line or config; 2 no such config or server; 3 not signed in; 4 server unreachable; 130
interrupted.`,
  words: Infinity,
  run: login,
});

export const logoutCommand: Command = command({
  name: "logout",
  usage: "TARGET [--config CONFIG] [--json]\n--all",
  about: `Deletes the stored tokens of a server, and the client that was registered for them, and revokes the tokens if the
authorization server can. Gateways that already run stop using them at once. ${TARGET_ABOUT} A URL without a path means all
servers of that host.`,
  flags: LOGOUT_FLAGS,
  exits: "0 ok; 1 wrong command line or config; 2 there are no such tokens.",
  words: Infinity,
  run: logout,
});

export const authCommand: Command = command({
  name: "auth",
  usage: "[--json]",
  about: `Lists the servers with stored tokens: who issued them, until when they are valid, and their scopes. Prints no
token.`,
  flags: {
    json: boolean(
      'Prints `{"servers": [...]}`; a server is `{"server", "issuer", "scopes", "expires", "expired", "renewable"}`, and `client` if it was registered by hand.',
    ),
  },
  exits: "0 ok; 1 wrong command line.",
  words: Infinity,
  async run({ words, values }) {
    if (words.length > 0) throw new UsageError(`auth takes no arguments\n\n${authCommand.usage}`);
    const servers = (await storedServers(openStore())).map(describe);
    if (values.json === true) printJson({ servers });
    else if (servers.length === 0)
      printStatus("There are no stored tokens; catenary login TARGET signs in to a server");
    else printTrusted(formatTable(servers.map(row), { width: terminalWidth(process.stdout) }));
    return EXIT.ok;
  },
});

/** The server that a TARGET means. */
async function findPlace(target: string, values: FlagValues<typeof LOGIN_FLAGS>) {
  const settings = readSettings(values);
  const headers = parseHeaders(values);
  if (isUrl(target)) return { url: parseUrl(target), headers, settings };
  const path = await requireConfig(values.config, "login");
  const { findServer, openConfig } = await import("../serve/gateway.ts");
  const { config } = await openConfig(path, false);
  const entry = findServer(config, path, target);
  const { target: address, options, signIn } = await entry.resolve();
  if (typeof address !== "string") {
    throw new UsageError(`The server ${target} has no URL, so there is nothing to sign in to`);
  }
  if (signIn === undefined) {
    throw new UsageError(`The server ${target} does not sign in: it has an Authorization header, or "auth": false`);
  }
  const url = new URL(address);
  return { url, headers: { ...options?.headers, ...headers }, settings: { ...signIn, ...settings } };
}

function openStore(): FileTokenStore {
  return fileTokens(undefined, { onNotice: printStatus });
}

async function login({ words: [target, ...more], values }: ParsedLine<typeof LOGIN_FLAGS>): Promise<number> {
  if (target === undefined || more.length > 0) throw new UsageError(`login takes one TARGET\n\n${loginCommand.usage}`);
  const { url, headers, settings } = await findPlace(target, values);
  const { host } = url;
  const interruption = new Interruption(printNotice);
  let hasSignedIn = false;
  const busy = (): void => void (hasSignedIn = true);
  try {
    const auth = await createAuthorizer(url, settings, {
      canSignIn: true,
      print: printNotice,
      note: printNotice,
      busy,
    });
    const { signal } = interruption;
    await signInAt(url, { auth, headers, signal });
  } catch (error) {
    if (interruption.signal.aborted) throw new ConnectionError("cancelled", "Cancelled", { cause: error });
    throw withAdvice(error, { canSignIn: true, hasToken: false });
  } finally {
    interruption.dispose();
  }
  const isStored = await hasStoredTokens(openStore(), url);
  const status = hasSignedIn ? "signed-in" : isStored ? "already-signed-in" : "not-needed";
  const text = {
    "signed-in": `Signed in to ${host}; commands and gateways use the tokens from now on`,
    "already-signed-in": `You are signed in to ${host} already; to sign in as another user, log out first`,
    "not-needed": `${host} did not ask for a sign-in`,
  }[status];
  if (values.json === true) printJson({ server: url.origin, status });
  else printStatus(text);
  return EXIT.ok;
}

async function logout({ words: [target, ...more], values }: ParsedLine<typeof LOGOUT_FLAGS>): Promise<number> {
  if (more.length > 0 || (target === undefined) !== (values.all === true)) {
    throw new UsageError(`logout takes one TARGET, or --all\n\n${logoutCommand.usage}`);
  }
  const store = openStore();
  const all = await storedServers(store);
  const place = target === undefined ? undefined : await findPlace(target, values);
  const wanted = place?.url;
  const isWanted = ({ url }: StoredServer): boolean =>
    wanted === undefined || url === wanted.href || (wanted.pathname === "/" && new URL(url).origin === wanted.origin);
  const stored = all.filter(isWanted);
  if (stored.length === 0) throw new NotFoundError(`There are no stored tokens for ${wanted?.host ?? "any server"}`);
  const { clientId: id, clientSecret: secret } = place?.settings ?? {};
  const client = id === undefined ? undefined : { id, ...defined({ secret }) };
  /** The tokens that the authorization server did not revoke. */
  const signOutOf = async (server: StoredServer) => {
    const reason = await signOut(store, server, { client });
    const { issuer } = server.tokens ?? {};
    if (reason === undefined || issuer === undefined) return [];
    return [{ server: new URL(server.url).origin, issuer: new URL(issuer).origin, reason: oneLine(reason) }];
  };
  const notRevoked = (await Promise.all(stored.map(signOutOf))).flat();
  const removed = [...new Set(stored.map(({ url }) => new URL(url).origin))];
  if (values.json === true) printJson({ removed, notRevoked });
  else {
    for (const origin of removed) printStatus(`Deleted the tokens of ${new URL(origin).host}`);
    for (const { server, issuer, reason } of notRevoked) {
      const what = `${new URL(server).host} may accept the deleted tokens until they expire`;
      printNotice(`${what}: they could not be revoked at ${new URL(issuer).host} (${reason})`);
    }
  }
  return EXIT.ok;
}

/** What `auth` says about a server. It has no `expires` if the authorization server did not say it. */
function describe({ url, client, tokens }: StoredServer) {
  const { issuer, granted, asked = [], expires, refresh } = tokens ?? {};
  return {
    server: new URL(url).origin,
    ...defined({ issuer: issuer && new URL(issuer).origin, client }),
    scopes: granted ?? asked,
    ...defined({ expires: expires === undefined ? undefined : new Date(expires).toISOString() }),
    expired: tokens === undefined || (expires !== undefined && expires <= Date.now()),
    // Without the user.
    renewable: refresh !== undefined,
  };
}

function row({ server, issuer, scopes, expires, expired, renewable }: ReturnType<typeof describe>): string[] {
  const until = expires === undefined ? "valid" : `valid until ${expires.slice(0, 16).replace("T", " ")} UTC`;
  const state = renewable ? "renewed when needed" : expired ? "expired: sign in again" : until;
  return [server, state, `by ${issuer ?? "?"}`, scopes.length === 0 ? "" : `scopes ${scopes.join(" ")}`].map(oneLine);
}
