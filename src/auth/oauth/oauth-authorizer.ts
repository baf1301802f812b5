// The authorizer behind `oauth()`: chooses the token for a request, and gets another when the MCP server refuses it. If
// several requests need a new token at once, it is obtained only once, and all of them use it. The lock of the store
// extends this to all processes that share the store. An authorizer works with one MCP server only: the first that it
// is used with.

import type * as oauth from "oauth4webapi";
import { callListener } from "../../core/listeners.ts";
import { SingleFlight } from "../../core/async.ts";
import type { Authorizer, Challenge, OutgoingRequest } from "../../core/authentication.ts";
import type { ConnectionError } from "../../core/errors.ts";
import { hidePaths, redactConnectionError } from "../../core/secrets.ts";
import { defined, type Optional } from "../../core/values.ts";
import { ClientRegistry } from "./client-registry.ts";
import { coversUrl, discover, type DiscoveryResult, fetchKnownServer } from "./discovery.ts";
import type { TokenTarget } from "./discovery.ts";
import {
  attempting,
  authFailure,
  type ChallengeParams,
  challengeWords,
  NoSignInError,
  parseChallenge,
} from "./errors.ts";
import { reasonOf, redact, unauthorized } from "./errors.ts";
import { isSameIssuer } from "./grants.ts";
import type { DPoPKey } from "./keys.ts";
import { OAuthFetch } from "./oauth-fetch.ts";
import { isDue, isExpired, memoryTokens, StoredTokens, type Tokens, toTokens } from "./stored-tokens.ts";
import { authorizationCode, isFinalRefusal, requestOptions, requestToken, revokeTokens } from "./token-request.ts";
import type { Grant, OAuthClient, OAuthOptions } from "./types.ts";

interface CurrentTokens {
  readonly tokens: Tokens;
  readonly key: DPoPKey | undefined;
  readonly from: "store" | "refresh" | "grant";
  /** Whether the MCP server has accepted them before. Assumed for tokens from the store. */
  isProven: boolean;
}

/** How many authorizations one request may trigger: the user is not asked forever by a server that is never satisfied. */
const MAX_STEP_UPS = 3;
/** How often one request is sent again with a new DPoP nonce. */
const MAX_NONCE_RETRIES = 4;
/** How long to wait after a failed renewal before the next one. A token that is still valid is used meanwhile. */
const RENEWAL_PAUSE_MS = 10_000;

export class OAuthAuthorizer implements Authorizer {
  readonly #options: OAuthOptions;
  readonly #mcpServer: URL;
  readonly #http: OAuthFetch;
  readonly #grant: Grant;
  readonly #stored: StoredTokens;
  readonly #clients: ClientRegistry;
  readonly #singleFlight = new SingleFlight();
  #server: oauth.AuthorizationServer | undefined;
  #current: CurrentTokens | undefined;
  #pausedUntil = 0;

  constructor(url: URL, options: OAuthOptions) {
    const mcpServer = new URL(url);
    mcpServer.hash = "";
    const http = new OAuthFetch(mcpServer, options);
    const grant = options.grant ?? authorizationCode(options.redirect, (target) => http.allows(target));
    const owner = [grant.grantType, grant.identity ?? "", options.client?.id ?? ""].map(encodeURIComponent).join(" ");
    const onNotice = (text: string): void => callListener("onNotice", options.onNotice, [text]);
    const shared = grant.memoryOnly === true ? undefined : options.store;
    this.#options = options;
    this.#mcpServer = mcpServer;
    this.#http = http;
    this.#grant = grant;
    this.#stored = new StoredTokens({ store: shared ?? memoryTokens(), mcpServer, owner, onNotice });
    this.#clients = new ClientRegistry(options, this.#stored, grant.grantType);
  }

  async authorize(request: OutgoingRequest): Promise<Readonly<Record<string, string>>> {
    this.#checkOrigin(request.url);
    if (!this.#http.allows(this.#mcpServer)) return {};
    const current = await this.#load();
    const isMissing = current === undefined || isExpired(current.tokens);
    if (current !== undefined && this.#shouldRenew(current.tokens)) {
      await this.#singleFlight.join(request.signal, (signal) => this.#renew(current, signal));
    } else if (isMissing && this.#singleFlight.isRunning) {
      await this.#singleFlight.join(request.signal);
    }
    return this.#headers(request);
  }

  async refused(challenge: Challenge): Promise<boolean> {
    this.#checkOrigin(challenge.url);
    const { origin } = this.#mcpServer;
    const params = parseChallenge(challenge.headers["www-authenticate"]);
    if (challenge.status === 403 && params.error !== "insufficient_scope") return false;
    if (!this.#http.allows(this.#mcpServer)) {
      throw unauthorized(`${origin} requires a token, but its URL is http: others could read the token; use https`);
    }
    const current = await this.#load();
    const hasNonce = current?.key?.storeNonce(challenge.url, challenge.headers) === true;
    if (hasNonce && params.error === "use_dpop_nonce" && challenge.attempt <= MAX_NONCE_RETRIES) return true;
    const isCurrent = current !== undefined && authorizationHeader(current.tokens) === challenge.sent["authorization"];
    // Another request got a new token meanwhile.
    if (current !== undefined && !isCurrent && !isExpired(current.tokens)) return true;
    this.#failIfUseless(challenge, params, isCurrent ? current : undefined);
    await attempting(`getting a token for ${origin}`, [], () =>
      this.#singleFlight.join(challenge.signal, (signal) => this.#acquire(challenge, params, signal)),
    ).catch((error: ConnectionError) => {
      const hide = (text: string): string => hidePaths(text, this.#mcpServer);
      throw error instanceof NoSignInError ? error.hide(hide) : redactConnectionError(error, hide, false);
    });
    return true;
  }

  answered({ url }: OutgoingRequest, headers: Readonly<Record<string, string>>): void {
    if (this.#current === undefined || url.origin !== this.#mcpServer.origin) return;
    this.#current.isProven = true;
    this.#current.key?.storeNonce(url, headers);
  }

  #checkOrigin({ origin }: URL): void {
    if (origin === this.#mcpServer.origin) return;
    const advice = "use one oauth() for each server, so that no token is sent to another";
    throw unauthorized(`This authorizer is for ${this.#mcpServer.origin}, not for ${origin}: ${advice}`);
  }

  /**
   * The tokens as the store has them now: another process may have renewed them, or deleted them (`catenary logout`).
   * If the store cannot be read, those that are in use stay in use.
   */
  async #load(): Promise<CurrentTokens | undefined> {
    const before = this.#current;
    const stored = await this.#loadStored(before).catch((error: unknown) => {
      if (before === undefined) throw error;
      return before.tokens;
    });
    const isSame = stored?.access === before?.tokens.access && stored?.refresh === before?.tokens.refresh;
    const key = stored === undefined || isSame ? undefined : await keyOf(stored, before);
    // Another request may have got new tokens meanwhile.
    if (isSame || this.#current !== before) return this.#current;
    this.#current = stored && { tokens: stored, key, from: "store", isProven: true };
    return this.#current;
  }

  async #loadStored(current: CurrentTokens | undefined): Promise<Tokens | undefined> {
    const renewed = current && (await this.#stored.get(current.tokens));
    if (renewed !== undefined) return renewed;
    const last = await this.#stored.last();
    return last !== undefined && coversUrl(last.resource, this.#mcpServer) ? last : undefined;
  }

  async #headers(request: OutgoingRequest): Promise<Readonly<Record<string, string>>> {
    const current = this.#current;
    if (current === undefined || isExpired(current.tokens)) return {};
    const authorization = authorizationHeader(current.tokens);
    if (current.key === undefined) return { authorization };
    return { authorization, dpop: await current.key.proof(request, current.tokens.access) };
  }

  #shouldRenew(tokens: Tokens): boolean {
    const canRenew = tokens.refresh !== undefined || !this.#grant.interactive;
    return canRenew && isDue(tokens) && Date.now() >= this.#pausedUntil;
  }

  /** Never rejects. If renewal fails, the request is sent anyway, and if it is refused, `refused` gets a new token. */
  async #renew({ tokens }: CurrentTokens, signal: AbortSignal): Promise<void> {
    const work = async (): Promise<void> => {
      const newest = await this.#stored.get(tokens);
      // Without tokens in the store, the user has signed out.
      if (newest === undefined) return void (this.#current = undefined);
      if (newest.access !== tokens.access && !isDue(newest)) return this.#use(newest, "store");
      // Another process may have signed in again with another key.
      const key = await keyOf(newest, this.#current);
      const refreshed = await this.#refresh(newest, key);
      if (refreshed !== undefined) return this.#replace(newest, refreshed, "refresh");
      const { refresh: _used, ...withoutRefresh } = newest;
      if (this.#grant.interactive) return this.#replace(newest, withoutRefresh, "store");
      await this.#save(await this.#obtain(await this.#targetOf(newest), newest.asked, key, signal), "grant");
    };
    try {
      await this.#stored.exclusively(tokens, work, signal);
    } catch (error) {
      this.#pausedUntil = Date.now() + RENEWAL_PAUSE_MS;
      const reason = hidePaths(reasonOf(error), this.#mcpServer);
      callListener("onNotice", this.#options.onNotice, [`The access token could not be renewed yet: ${reason}`]);
    }
  }

  async #acquire(challenge: Challenge, params: ChallengeParams, signal: AbortSignal): Promise<void> {
    const current = this.#current;
    const discovered = await discover({
      mcpServer: this.#mcpServer,
      challenge: params,
      http: this.#http,
      signal,
      lastIssuer: current?.tokens.issuer,
      rejectServer: (server) => this.#rejectServer(server),
    });
    const { server, resource } = discovered;
    this.#server = server;
    const storageKey = { issuer: server.issuer, resource };
    const work = async (): Promise<void> => {
      const saved = await this.#stored.get(storageKey);
      if (saved !== undefined && !isExpired(saved) && authorizationHeader(saved) !== challenge.sent["authorization"]) {
        return this.#use(saved, "store");
      }
      // If the refused token came from a refresh and was never accepted, another refresh would not help.
      const isRefreshUseless = current?.from === "refresh" && !current.isProven;
      if (saved !== undefined && challenge.status === 401 && !isRefreshUseless) {
        const refreshed = await this.#refresh(saved, await keyOf(saved, current));
        if (refreshed !== undefined) return this.#replace(saved, refreshed, "refresh");
      }
      const scopes = scopesToRequest({
        challenged: params.scopes,
        listed: discovered.scopes,
        requestedBefore: saved?.asked,
        configured: this.#options.scopes,
        serverSupports: server.scopes_supported,
        wantsRefreshToken: this.#grant.interactive,
      });
      if (challenge.status === 403 && current?.from === "grant" && includesAll(current.tokens.asked, scopes)) {
        throw notGranted(this.#mcpServer, current.tokens, params);
      }
      const key = this.#needsKey(discovered, params) ? (current?.key ?? (await createKey())) : undefined;
      await this.#save(await this.#obtain(discovered, scopes, key, signal), "grant");
    };
    await this.#stored.exclusively(storageKey, work, signal);
    // Refused tokens of another issuer or resource than the new ones are still in the store. Delete them.
    const isOther = current?.tokens.issuer !== storageKey.issuer || current.tokens.resource !== resource;
    if (current !== undefined && isOther) await this.#stored.delete(current.tokens);
  }

  /** Returns why an authorization server cannot be used, as the end of a sentence; undefined if it can. */
  #rejectServer(server: oauth.AuthorizationServer): string | undefined {
    const { issuer = server.issuer } = this.#options.client ?? {};
    if (isSameIssuer(server.issuer, issuer)) return this.#grant.rejectServer?.(server);
    return `the client is registered with ${issuer}, and its credentials are sent to no other server`;
  }

  /** Uses the refresh token (OAuth 2.1, 4.3). Returns undefined if there is none, or if it is no longer valid. */
  async #refresh(tokens: Tokens, key: DPoPKey | undefined): Promise<Tokens | undefined> {
    const { refresh, issuer, registered } = tokens;
    if (refresh === undefined) return undefined;
    const { server, resource } = await this.#targetOf(tokens);
    const client = server.issuer === issuer ? await this.#clients.find(server, tokens) : undefined;
    if (client === undefined) return undefined;
    // The request gets no signal: the server may already have replaced the refresh token when the abort comes, and the
    // new refresh token would be lost.
    const http = requestOptions(this.#http, undefined, key?.handle);
    const parameters = { grant_type: "refresh_token", refresh_token: refresh, resource };
    try {
      return checkTokens(toTokens(await requestToken(server, client, parameters, http), tokens));
    } catch (error) {
      if (isFinalRefusal(error)) return undefined;
      if (await this.#clients.forgetIfUnknown(error, server, resource, registered)) return undefined;
      throw authFailure(`refreshing the access token at ${issuer}`, error, [refresh, client.secret]);
    }
  }

  async #obtain(
    { server, resource, usesDefaultEndpoints }: TokenTarget,
    askedScopes: readonly string[],
    key: DPoPKey | undefined,
    signal: AbortSignal,
  ): Promise<Tokens> {
    const { issuer } = server;
    const http = requestOptions(this.#http, signal, key?.handle);
    let binding: Pick<Tokens, "client" | "registered"> = { client: this.#grant.identity ?? "" };
    const client = async (): Promise<OAuthClient> => {
      const { registered, ...current } = await this.#clients.current(server, resource, http);
      binding = { client: current.client.client_id, ...defined({ registered }) };
      return current;
    };
    const scope = askedScopes.length === 0 ? undefined : askedScopes.join(" ");
    const attempt = (): Promise<oauth.TokenEndpointResponse> =>
      this.#grant.obtain({ server, resource, http, signal, client, ...defined({ scope }) });
    let response: oauth.TokenEndpointResponse;
    try {
      response = await attempt().catch(async (error: unknown) => {
        if (await this.#clients.forgetIfUnknown(error, server, resource)) return attempt();
        throw error;
      });
    } catch (error) {
      const failure = authFailure(`getting an access token from ${issuer}`, error);
      if (!usesDefaultEndpoints || failure.kind === "cancelled") throw failure;
      throw new NoSignInError(resource, failure);
    }
    const more = { key: await key?.export(), plain: usesDefaultEndpoints || undefined };
    return checkTokens(toTokens(response, { issuer, resource, ...binding, asked: askedScopes, ...defined(more) }));
  }

  async #targetOf({ issuer, resource, plain = false }: Tokens): Promise<TokenTarget> {
    if (this.#server?.issuer !== issuer) this.#server = await fetchKnownServer(issuer, plain, this.#http);
    return { server: this.#server, resource, usesDefaultEndpoints: plain };
  }

  async #save(tokens: Tokens, from: CurrentTokens["from"]): Promise<void> {
    await this.#stored.save(tokens);
    await this.#use(tokens, from);
  }

  /** Saves new tokens in place of `before`, unless these are gone: the user may sign out while a refresh runs. */
  async #replace(before: Tokens, after: Tokens, from: CurrentTokens["from"]): Promise<void> {
    const stored = await this.#stored.get(before);
    if (stored?.access === before.access) return this.#save(after, from);
    this.#current = undefined;
    if (stored !== undefined) await this.#use(stored, "store");
    if (after.access !== before.access) void this.#revoke(after).catch(() => undefined);
  }

  async #revoke(tokens: Tokens): Promise<void> {
    const { server } = await this.#targetOf(tokens);
    const client = await this.#clients.find(server, tokens);
    if (client !== undefined) await revokeTokens(server, client, tokens, requestOptions(this.#http, undefined));
  }

  async #use(tokens: Tokens, from: CurrentTokens["from"]): Promise<void> {
    const key = await keyOf(tokens, this.#current);
    this.#current = { tokens, key, from, isProven: from === "store" };
  }

  #needsKey({ requiresDpop, server }: DiscoveryResult, { schemes }: ChallengeParams): boolean {
    const { dpop } = this.#options;
    if (dpop === false && requiresDpop) {
      throw unauthorized(
        `The MCP server requires tokens of ${server.issuer} that are bound with DPoP, but \`dpop\` is false`,
      );
    }
    return dpop ?? (requiresDpop || (schemes.has("dpop") && !schemes.has("bearer")));
  }

  /** Throws if another token would not help. */
  #failIfUseless(
    { attempt, status, sent }: Challenge,
    params: ChallengeParams,
    current: CurrentTokens | undefined,
  ): void {
    // Without the path, which may contain a key.
    const name = this.#mcpServer.origin;
    const scope = params.scopes && `scope "${params.scopes.join(" ")}"`;
    const words = challengeWords(params, sent["authorization"], scope).join(", ");
    const why = words === "" ? "" : ` (${words})`;
    if (attempt > MAX_STEP_UPS) {
      throw unauthorized(`${name} refused one request ${attempt} times with different tokens${why}; giving up`);
    }
    if (status === 401 && current?.from === "grant" && !current.isProven) {
      const { issuer, resource } = current.tokens;
      const advice = `the server must trust this issuer and accept tokens for ${new URL(resource).origin}`;
      throw unauthorized(`${name} refused the access token that ${issuer} has just issued for it${why}: ${advice}`);
    }
  }
}

/** Rejects tokens that cannot be used, or that are not bound to the key although they should be. */
function checkTokens(tokens: Tokens): Tokens {
  const { issuer, access, scheme, key } = tokens;
  if (!/^[\x21-\x7e]+$/.test(access)) {
    throw unauthorized(`${issuer} issued an access token that a header cannot carry`);
  }
  const isBound = key !== undefined;
  if (isBound === (scheme === "DPoP")) return tokens;
  throw unauthorized(
    isBound
      ? `${issuer} issued an access token that is not bound to our key, though DPoP is needed; it may not support DPoP`
      : `${issuer} issued an access token for DPoP, though no key was used; try oauth({ dpop: true })`,
  );
}

function authorizationHeader({ scheme, access }: Tokens): string {
  return `${scheme} ${access}`;
}

async function keyOf({ key }: Tokens, current: CurrentTokens | undefined): Promise<DPoPKey | undefined> {
  if (key === undefined) return undefined;
  return current?.key !== undefined && current.tokens.key === key ? current.key : createKey(key);
}

async function createKey(stored?: string): Promise<DPoPKey> {
  const { DPoPKey: Key } = await import("./keys.ts");
  return Key.create(stored);
}

function notGranted(
  mcpServer: URL,
  { issuer, asked, granted = asked }: Tokens,
  { scopes = [] }: ChallengeParams,
): Error {
  const needs = `${mcpServer.origin} requires the scope "${redact(scopes.join(" "))}"`;
  if (includesAll(granted, scopes)) return unauthorized(`${needs}, but refused a token of ${issuer} that has it`);
  const gave = `${issuer} was asked for it and granted only "${redact(granted.join(" "))}"`;
  return unauthorized(`${needs}: ${gave}; grant it there`);
}

/** Lists of scopes: those of the refusal, of the resource, of the request before, of the options, and of the server. */
type ScopeSources = { readonly wantsRefreshToken: boolean } & Optional<
  Record<"challenged" | "listed" | "requestedBefore" | "configured" | "serverSupports", readonly string[]>
>;

const OFFLINE_ACCESS = "offline_access";

/**
 * Chooses the scopes to request (specification: basic/authorization, "Scope Selection Strategy" and "Step-Up
 * Authorization Flow"): those in the refusal, or else those in the resource metadata. Scopes of earlier requests are
 * added, so that a new token can do everything that the old one could. If the list is empty, the parameter is omitted.
 */
export function scopesToRequest(sources: ScopeSources): readonly string[] {
  const { challenged, listed, requestedBefore, configured, serverSupports, wantsRefreshToken } = sources;
  const supportsOffline = serverSupports?.includes(OFFLINE_ACCESS) === true;
  const named = [...(requestedBefore ?? []), ...(challenged ?? listed ?? [])];
  // offline_access asks for a refresh token. The MCP server may name it, but the authorization server must support it.
  const scopes = new Set([
    ...named.filter((scope) => scope !== OFFLINE_ACCESS || supportsOffline),
    ...(configured ?? []),
  ]);
  // Not added to an empty list: the server would then grant only offline_access, instead of its default scopes.
  if (wantsRefreshToken && supportsOffline && scopes.size > 0) scopes.add(OFFLINE_ACCESS);
  return [...scopes].filter((scope) => /^[\x21\x23-\x5b\x5d-\x7e]+$/.test(scope));
}

export function includesAll(scopes: readonly string[], wantedScopes: readonly string[]): boolean {
  return wantedScopes.every((scope) => scopes.includes(scope));
}
