// The authorizer behind `oauth()`: chooses the token for a request, and gets another when the MCP server refuses it. If
// several requests need a new token at once, it is obtained only once, and all of them use it. The lock of the store
// extends this to all processes that share the store. An authorizer works with one MCP server only: the first that it
// is used with.

import type { Authorizer, Challenge, OutgoingRequest } from "../../core/authentication.ts";
import { authorizationCode } from "./authorization-code.ts";
import { SingleFlight } from "../../core/async.ts";
import { coversUrl, type DiscoveryResult } from "./discovery.ts";
import { authFailure, reasonOf, redact, unauthorized } from "./errors.ts";
import type { DPoPKey } from "./keys.ts";
import { OAuthFetch } from "./oauth-fetch.ts";
import { isDue, isExpired, memoryTokens, StoredTokens, type Tokens } from "./stored-tokens.ts";
import { TokenSource } from "./token-source.ts";
import type { Grant, OAuthOptions } from "./types.ts";
import { type ChallengeParams, parseChallenge } from "./www-authenticate.ts";

/** The tokens in use. */
interface CurrentTokens {
  readonly tokens: Tokens;
  readonly key: DPoPKey | undefined;
  readonly from: "store" | "refresh" | "grant";
  /** Whether the MCP server has accepted them before. Assumed for tokens from the store. */
  isProven: boolean;
}

/** Everything that depends on the URL of the MCP server. */
interface Setup {
  readonly mcpServer: URL;
  readonly stored: StoredTokens;
  readonly source: TokenSource;
  readonly grant: Grant;
  /** Whether a token may be sent to the MCP server: its URL is https, or it is on this machine. */
  readonly isSecure: boolean;
}

const MAX_STEP_UPS = 3;
/** How often one request is sent again with a new DPoP nonce. */
const MAX_NONCE_RETRIES = 4;
/** How long to wait after a failed renewal before the next one. A token that is still valid is used meanwhile. */
const RENEWAL_PAUSE_MS = 10_000;

export class OAuthAuthorizer implements Authorizer {
  readonly #options: OAuthOptions;
  readonly #singleFlight = new SingleFlight();
  #setup: Setup | undefined;
  #loading: Promise<void> | undefined;
  #current: CurrentTokens | undefined;
  #pausedUntil = 0;

  constructor(options: OAuthOptions) {
    this.#options = options;
  }

  async authorize(request: OutgoingRequest): Promise<Readonly<Record<string, string>>> {
    const setup = this.#setupFor(request.url);
    if (!setup.isSecure) return {};
    const current = await this.#load(setup);
    const isMissing = current === undefined || isExpired(current.tokens);
    if (current !== undefined && this.#shouldRenew(current, setup.grant)) {
      await this.#singleFlight.join(request.signal, (signal) => this.#renew(setup, current, signal));
    } else if (isMissing && this.#singleFlight.isRunning) {
      await this.#singleFlight.join(request.signal);
    }
    return this.#headers(request);
  }

  async refused(challenge: Challenge): Promise<boolean> {
    const setup = this.#setupFor(challenge.url);
    const params = parseChallenge(challenge.headers["www-authenticate"]);
    if (challenge.status === 403 && params.error !== "insufficient_scope") return false;
    if (!setup.isSecure) throw insecure(setup);
    const current = await this.#load(setup);
    const hasNonce = current?.key?.storeNonce(challenge.url, challenge.headers) === true;
    if (hasNonce && params.error === "use_dpop_nonce" && challenge.attempt <= MAX_NONCE_RETRIES) return true;
    const isCurrent = current !== undefined && authorizationHeader(current.tokens) === challenge.sent["authorization"];
    // Another request got a new token meanwhile.
    if (current !== undefined && !isCurrent && !isExpired(current.tokens)) return true;
    this.#failIfUseless(setup, challenge, params, isCurrent ? current : undefined);
    try {
      await this.#singleFlight.join(challenge.signal, (signal) => this.#acquire(setup, challenge, params, signal));
    } catch (error) {
      throw authFailure(`getting a token for ${setup.mcpServer.origin}`, error);
    }
    return true;
  }

  answered({ url }: OutgoingRequest, headers: Readonly<Record<string, string>>): void {
    if (this.#current === undefined || url.origin !== this.#setup?.mcpServer.origin) return;
    this.#current.isProven = true;
    this.#current.key?.storeNonce(url, headers);
  }

  #setupFor(url: URL): Setup {
    this.#setup ??= createSetup(url, this.#options);
    const { mcpServer } = this.#setup;
    if (mcpServer.origin === url.origin) return this.#setup;
    const advice = "use one oauth() for each server, so that no token is sent to another";
    throw unauthorized(`This authorizer is for ${mcpServer.origin}, not for ${url.origin}: ${advice}`);
  }

  /** Loads the stored tokens once. */
  async #load(setup: Setup): Promise<CurrentTokens | undefined> {
    this.#loading ??= this.#loadStored(setup);
    try {
      await this.#loading;
    } catch (error) {
      this.#loading = undefined;
      throw error;
    }
    return this.#current;
  }

  async #loadStored({ stored, mcpServer }: Setup): Promise<void> {
    const tokens = await stored.last();
    if (tokens !== undefined && coversUrl(tokens.resource, mcpServer)) await this.#use(tokens, "store");
  }

  async #headers(request: OutgoingRequest): Promise<Readonly<Record<string, string>>> {
    const current = this.#current;
    if (current === undefined || isExpired(current.tokens)) return {};
    const authorization = authorizationHeader(current.tokens);
    if (current.key === undefined) return { authorization };
    return { authorization, dpop: await current.key.proof(request, current.tokens.access) };
  }

  #shouldRenew({ tokens }: CurrentTokens, grant: Grant): boolean {
    const canRenew = tokens.refresh !== undefined || !grant.interactive;
    return canRenew && isDue(tokens) && Date.now() >= this.#pausedUntil;
  }

  /** Never rejects. If renewal fails, the request is sent anyway, and if it is refused, `refused` gets a new token. */
  async #renew({ stored, source }: Setup, { tokens }: CurrentTokens, signal: AbortSignal): Promise<void> {
    const work = async (): Promise<void> => {
      const newest = (await stored.get(tokens)) ?? tokens;
      if (newest.access !== tokens.access && !isDue(newest)) return this.#use(newest, "store");
      const { refresh: _used, ...withoutRefresh } = newest;
      // Another process may have signed in again with another key.
      const key = await keyOf(newest, this.#current);
      const refreshed = await source.refresh(newest, key);
      if (refreshed !== undefined) return this.#save(stored, refreshed, "refresh");
      const repeated = await source.repeat(withoutRefresh, key, signal);
      await this.#save(stored, repeated ?? withoutRefresh, repeated === undefined ? "store" : "grant");
    };
    try {
      await stored.exclusively(tokens, work, signal);
    } catch (error) {
      this.#pausedUntil = Date.now() + RENEWAL_PAUSE_MS;
      this.#options.onNotice?.(`The access token could not be renewed yet: ${reasonOf(error)}`);
    }
  }

  async #acquire(setup: Setup, challenge: Challenge, params: ChallengeParams, signal: AbortSignal): Promise<void> {
    const { stored, source, grant } = setup;
    const current = this.#current;
    const found = await source.discover(params, current?.tokens.issuer, signal);
    const { server, resource } = found;
    const storageKey = { issuer: server.issuer, resource };
    const sent = challenge.sent["authorization"];
    const work = async (): Promise<void> => {
      const saved = await stored.get(storageKey);
      if (saved !== undefined && !isExpired(saved) && authorizationHeader(saved) !== sent) {
        return this.#use(saved, "store");
      }
      // If the refused token came from a refresh and was never accepted, another refresh would not help.
      const isRefreshUseless = current?.from === "refresh" && !current.isProven;
      if (saved !== undefined && challenge.status === 401 && !isRefreshUseless) {
        const refreshed = await source.refresh(saved, await keyOf(saved, current));
        if (refreshed !== undefined) return this.#save(stored, refreshed, "refresh");
      }
      const scopes = scopesToRequest({
        challenged: params.scopes,
        listed: found.scopes,
        requestedBefore: saved?.asked,
        configured: this.#options.scopes,
        serverSupports: server.scopes_supported,
        wantsRefreshToken: grant.interactive,
      });
      if (challenge.status === 403 && current?.from === "grant" && includesAll(current.tokens.asked, scopes)) {
        throw notGranted(setup, current.tokens, params);
      }
      const key = this.#needsKey(found, params) ? await keyForNewTokens(current) : undefined;
      await this.#save(stored, await source.obtain(found, scopes, key, signal), "grant");
    };
    await stored.exclusively(storageKey, work, signal);
    // Refused tokens of another issuer or resource than the new ones are still in the store. Delete them.
    const isOther = current?.tokens.issuer !== storageKey.issuer || current.tokens.resource !== resource;
    if (current !== undefined && isOther) await stored.delete(current.tokens);
  }

  async #save(stored: StoredTokens, tokens: Tokens, from: CurrentTokens["from"]): Promise<void> {
    await stored.save(tokens);
    await this.#use(tokens, from);
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
    { mcpServer }: Setup,
    challenge: Challenge,
    params: ChallengeParams,
    current: CurrentTokens | undefined,
  ): void {
    const { attempt, status, sent } = challenge;
    const maxAttempts = this.#options.maxStepUps ?? MAX_STEP_UPS;
    const name = `${mcpServer.origin}${mcpServer.pathname}`;
    const why = describeChallenge(params, sent["authorization"]);
    if (attempt > maxAttempts) {
      throw unauthorized(`${name} refused one request ${attempt} times with different tokens${why}; giving up`);
    }
    if (status === 401 && current?.from === "grant" && !current.isProven) {
      const { issuer, resource } = current.tokens;
      const advice = `the server must trust this issuer and accept tokens for ${resource}`;
      throw unauthorized(`${name} refused the access token that ${issuer} has just issued for it${why}: ${advice}`);
    }
  }
}

function createSetup(url: URL, options: OAuthOptions): Setup {
  const mcpServer = new URL(url);
  mcpServer.hash = "";
  const http = new OAuthFetch(mcpServer, options);
  const allows = (target: URL): boolean => http.allows(target);
  const grant = options.grant ?? authorizationCode({ redirect: options.redirect, allows });
  const owner = [grant.grantType, grant.identity ?? "", options.client?.id ?? ""].map(encodeURIComponent).join(" ");
  const onNotice = (text: string): void => options.onNotice?.(text);
  const shared = grant.memoryOnly === true ? undefined : options.store;
  const stored = new StoredTokens({ store: shared ?? memoryTokens(), mcpServer, owner, onNotice });
  const source = new TokenSource({ options, mcpServer, stored, http, grant });
  return { mcpServer, stored, grant, source, isSecure: allows(mcpServer) };
}

function authorizationHeader({ scheme, access }: Tokens): string {
  return `${scheme} ${access}`;
}

async function keyOf({ key }: Tokens, current: CurrentTokens | undefined): Promise<DPoPKey | undefined> {
  if (key === undefined) return undefined;
  if (current?.key !== undefined && current.tokens.key === key) return current.key;
  const { DPoPKey: Key } = await import("./keys.ts");
  return Key.create(key);
}

async function keyForNewTokens(current: CurrentTokens | undefined): Promise<DPoPKey> {
  if (current?.key !== undefined) return current.key;
  const { DPoPKey: Key } = await import("./keys.ts");
  return Key.create();
}

function notGranted({ mcpServer }: Setup, tokens: Tokens, { scopes = [] }: ChallengeParams): Error {
  const { issuer, asked, granted = asked } = tokens;
  const needs = `${mcpServer.origin}${mcpServer.pathname} requires the scope "${redact(scopes.join(" "))}"`;
  if (includesAll(granted, scopes)) return unauthorized(`${needs}, but refused a token of ${issuer} that has it`);
  const gave = `${issuer} was asked for it and granted only "${redact(granted.join(" "))}"`;
  return unauthorized(`${needs}: ${gave}; grant it there`);
}

function insecure({ mcpServer }: Setup): Error {
  const why = "others could read the token; use https";
  return unauthorized(`${mcpServer.origin} requires a token, but its URL is http: ${why}`);
}

function describeChallenge({ error, description, scopes }: ChallengeParams, sent: string | undefined): string {
  const words = [error, description, scopes === undefined ? undefined : `scope "${scopes.join(" ")}"`];
  // The server may quote the token that it refused.
  const secrets = sent?.split(" ").slice(1);
  const known = words.filter((word) => word !== undefined).map((word) => redact(word, secrets));
  return known.length === 0 ? "" : ` (${known.join(", ")})`;
}

export interface ScopeSources {
  /** The scopes in the refusal. */
  readonly challenged?: readonly string[] | undefined;
  /** The scopes in the resource metadata. */
  readonly listed?: readonly string[] | undefined;
  /** The scopes of the last request to the same authorization server. */
  readonly requestedBefore?: readonly string[] | undefined;
  /** The scopes that the program always wants. */
  readonly configured?: readonly string[] | undefined;
  /** The scopes that the authorization server lists. */
  readonly serverSupports?: readonly string[] | undefined;
  readonly wantsRefreshToken: boolean;
}

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

export function includesAll(scopes: readonly string[], wanted: readonly string[]): boolean {
  return wanted.every((scope) => scopes.includes(scope));
}
