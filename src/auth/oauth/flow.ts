// The authorizer behind `oauth()`: which token goes with a request, and what is done when the end is not content with
// it. Of all that is under way in this process, and with the store's lock in all processes, one gets or renews a
// token while the others wait for what it brings. It belongs to the end that it is first used with.

import type { Authorizer, Challenge, OutgoingRequest } from "../../core/authentication.ts";
import { type Told, toldBy } from "./challenges.ts";
import { covers as coversEnd, type Found } from "./discovery.ts";
import type { DPoPKey } from "./dpop.ts";
import { plain, reasonOf, refusal, unauthorized } from "./failures.ts";
import { Flight } from "./flight.ts";
import type { Grant } from "./grant.ts";
import { type Home, homeOf } from "./home.ts";
import type { OAuthOptions } from "./oauth.ts";
import { isDue, isExpired, type Tokens } from "./records.ts";
import { covers, scopesToAsk } from "./scopes.ts";
import type { Vault } from "./vault.ts";

/** The tokens in use. */
interface Held {
  readonly tokens: Tokens;
  readonly key: DPoPKey | undefined;
  readonly from: "store" | "refresh" | "grant";
  /** The end has taken them at least once, as far as we know. */
  proven: boolean;
}

const MOST_AUTHORIZATIONS = 3;
/** Refusals of one request that a new nonce is thought to help against. */
const MOST_NONCES = 4;
/** After a renewal that failed, a token that is still good is used for so long before the next try. */
const PAUSE_MS = 10_000;

export class Flow implements Authorizer {
  readonly #options: OAuthOptions;
  readonly #flight = new Flight();
  #home: Home | undefined;
  #loading: Promise<void> | undefined;
  #held: Held | undefined;
  #pausedUntil = 0;

  constructor(options: OAuthOptions) {
    this.#options = options;
  }

  async authorize(sending: OutgoingRequest): Promise<Readonly<Record<string, string>>> {
    const home = this.#at(sending.url);
    if (!home.isSafe) return {};
    const held = await this.#current(home);
    const lacks = held === undefined || isExpired(held.tokens);
    if (held !== undefined && this.#wantsRenewal(held, home.grant)) {
      await this.#flight.join(sending.signal, (signal) => this.#renew(home, held, signal));
    } else if (lacks && this.#flight.isUnderWay) {
      await this.#flight.join(sending.signal);
    }
    return this.#headers(sending);
  }

  async refused(challenge: Challenge): Promise<boolean> {
    const home = this.#at(challenge.url);
    const told = toldBy(challenge.headers["www-authenticate"]);
    if (challenge.status === 403 && told.error !== "insufficient_scope") return false;
    if (!home.isSafe) throw inTheOpen(home);
    const held = await this.#current(home);
    const hasNonce = held?.key?.heard(challenge.url, challenge.headers) === true;
    if (hasNonce && told.error === "use_dpop_nonce" && challenge.attempt <= MOST_NONCES) return true;
    const isCurrent = held !== undefined && authorizationOf(held.tokens) === challenge.sent["authorization"];
    // Somebody else got another one meanwhile.
    if (held !== undefined && !isCurrent && !isExpired(held.tokens)) return true;
    this.#giveUpWhereUseless(home, challenge, told, isCurrent ? held : undefined);
    try {
      await this.#flight.join(challenge.signal, (signal) => this.#acquire(home, challenge, told, signal));
    } catch (error) {
      throw refusal(`getting a token for ${home.end.origin}`, error);
    }
    return true;
  }

  answered({ url }: OutgoingRequest, headers: Readonly<Record<string, string>>): void {
    if (this.#held === undefined || url.origin !== this.#home?.end.origin) return;
    this.#held.proven = true;
    this.#held.key?.heard(url, headers);
  }

  #at(url: URL): Home {
    this.#home ??= homeOf(url, this.#options);
    const { end } = this.#home;
    if (end.origin === url.origin) return this.#home;
    const advice = "each end needs an oauth() of its own, so that no token is shown to another";
    throw unauthorized(`This authorizer is for ${end.origin}, not for ${url.origin}: ${advice}`);
  }

  async #current(home: Home): Promise<Held | undefined> {
    this.#loading ??= this.#load(home);
    try {
      await this.#loading;
    } catch (error) {
      this.#loading = undefined;
      throw error;
    }
    return this.#held;
  }

  async #load({ vault, end }: Home): Promise<void> {
    const tokens = await vault.last();
    if (tokens !== undefined && coversEnd(tokens.resource, end)) await this.#hold(tokens, "store");
  }

  async #headers(sending: OutgoingRequest): Promise<Readonly<Record<string, string>>> {
    const held = this.#held;
    if (held === undefined || isExpired(held.tokens)) return {};
    const authorization = authorizationOf(held.tokens);
    if (held.key === undefined) return { authorization };
    return { authorization, dpop: await held.key.proof(sending, held.tokens.access) };
  }

  #wantsRenewal({ tokens }: Held, grant: Grant): boolean {
    const canBe = tokens.refresh !== undefined || !grant.interactive;
    return canBe && isDue(tokens) && Date.now() >= this.#pausedUntil;
  }

  /** Never fails: without a token the end refuses, and then everything is looked up anew. */
  async #renew({ vault, source }: Home, { tokens }: Held, signal: AbortSignal): Promise<void> {
    const work = async (): Promise<void> => {
      const stored = (await vault.tokens(tokens)) ?? tokens;
      if (stored.access !== tokens.access && !isDue(stored)) return this.#hold(stored, "store");
      const { refresh: _gone, ...without } = stored;
      // Whoever signed in anew meanwhile did so with another key.
      const key = await keyOf(stored, this.#held);
      const next = await source.refresh(stored, key);
      if (next !== undefined) return this.#keep(vault, next, "refresh");
      const repeated = await source.repeat(without, key, signal);
      await this.#keep(vault, repeated ?? without, repeated === undefined ? "store" : "grant");
    };
    try {
      await vault.exclusively(tokens, work, signal);
    } catch (error) {
      this.#pausedUntil = Date.now() + PAUSE_MS;
      this.#options.onNotice?.(`The access token is not renewed yet: ${reasonOf(error)}`);
    }
  }

  async #acquire(home: Home, challenge: Challenge, told: Told, signal: AbortSignal): Promise<void> {
    const { vault, source, grant } = home;
    const held = this.#held;
    const found = await source.discover(told, held?.tokens.issuer, signal);
    const { server, resource, plain: isPlain } = found;
    const place = { issuer: server.issuer, resource };
    const sent = challenge.sent["authorization"];
    const work = async (): Promise<void> => {
      const stored = await vault.tokens(place);
      if (stored !== undefined && !isExpired(stored) && authorizationOf(stored) !== sent) {
        return this.#hold(stored, "store");
      }
      const isDoubtful = held?.from === "refresh" && !held.proven;
      if (stored !== undefined && challenge.status === 401 && !isDoubtful) {
        const next = await source.refresh(stored, await keyOf(stored, held));
        if (next !== undefined) return this.#keep(vault, next, "refresh");
      }
      const asked = scopesToAsk({
        challenged: told.scopes,
        listed: found.scopes,
        before: stored?.asked,
        wanted: this.#options.scopes,
        known: server.scopes_supported,
        lasting: grant.interactive,
      });
      if (challenge.status === 403 && held?.from === "grant" && covers(held.tokens.asked, asked)) {
        throw notGranted(home, held.tokens, told);
      }
      const key = this.#needsKey(found, told) ? await newKey(held) : undefined;
      await this.#keep(vault, await source.obtain({ server, resource, plain: isPlain, asked, key }, signal), "grant");
    };
    await vault.exclusively(place, work, signal);
    // What another server gave, or for another name of the end, is refused now, and nobody else is to see it.
    const isElsewhere = held?.tokens.issuer !== place.issuer || held.tokens.resource !== resource;
    if (held !== undefined && isElsewhere) await vault.drop(held.tokens);
  }

  async #keep(vault: Vault, tokens: Tokens, from: Held["from"]): Promise<void> {
    await vault.keep(tokens);
    await this.#hold(tokens, from);
  }

  async #hold(tokens: Tokens, from: Held["from"]): Promise<void> {
    const key = await keyOf(tokens, this.#held);
    this.#held = { tokens, key, from, proven: from === "store" };
  }

  #needsKey({ bound, server }: Found, { schemes }: Told): boolean {
    const { dpop } = this.#options;
    if (dpop === false && bound) {
      throw unauthorized(
        `The end takes only tokens of ${server.issuer} that are bound to a key, and \`dpop\` is false`,
      );
    }
    return dpop ?? (bound || (schemes.has("dpop") && !schemes.has("bearer")));
  }

  #giveUpWhereUseless({ end }: Home, challenge: Challenge, told: Told, held: Held | undefined): void {
    const { attempt, status, sent } = challenge;
    const most = this.#options.maxStepUps ?? MOST_AUTHORIZATIONS;
    const name = `${end.origin}${end.pathname}`;
    const why = said(told, sent["authorization"]);
    if (attempt > most) {
      throw unauthorized(`${name} refused one request ${attempt} times, whatever token it got${why}; given up`);
    }
    if (status === 401 && held?.from === "grant" && !held.proven) {
      const { issuer, resource } = held.tokens;
      const advice = `the end must trust that server and take tokens for ${resource}`;
      throw unauthorized(`${name} refused the access token that ${issuer} issued for it just now${why}: ${advice}`);
    }
  }
}

function authorizationOf({ scheme, access }: Tokens): string {
  return `${scheme} ${access}`;
}

async function keyOf({ key }: Tokens, held: Held | undefined): Promise<DPoPKey | undefined> {
  if (key === undefined) return undefined;
  if (held?.key !== undefined && held.tokens.key === key) return held.key;
  const { DPoPKey: Key } = await import("./dpop.ts");
  return Key.create(key);
}

async function newKey(held: Held | undefined): Promise<DPoPKey> {
  if (held?.key !== undefined) return held.key;
  const { DPoPKey: Key } = await import("./dpop.ts");
  return Key.create();
}

function notGranted({ end }: Home, { issuer, asked, granted = asked }: Tokens, told: Told): Error {
  const { scopes = [] } = told;
  const wants = `${end.origin}${end.pathname} wants the scope "${plain(scopes.join(" "))}" for this`;
  if (covers(granted, scopes)) return unauthorized(`${wants}, and refused the token in which ${issuer} gave it`);
  const gave = `${issuer} was asked for it and gave only "${plain(granted.join(" "))}"`;
  return unauthorized(`${wants}: ${gave}; it must be allowed there`);
}

function inTheOpen({ end }: Home): Error {
  const why = "anybody on the way could read a token for it, so none is got; connect by https";
  return unauthorized(`${end.origin} wants a token, but it is reached by http: ${why}`);
}

/** An end may repeat the token that it was shown. */
function said({ error, description, scopes }: Told, sent: string | undefined): string {
  const words = [error, description, scopes === undefined ? undefined : `scope "${scopes.join(" ")}"`];
  const known = words.filter((word) => word !== undefined).map((word) => plain(word, sent?.split(" ").slice(1)));
  return known.length === 0 ? "" : ` (${known.join(", ")})`;
}
