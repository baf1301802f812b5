// Where one end's tokens come from: the server that the end names, as the client that this server knows, by the grant
// that the program chose. Whether a token is needed, and which is kept, is decided elsewhere (flow.ts).

import type * as oauth from "oauth4webapi";
import type { Told } from "./challenges.ts";
import { discover, type Found, knownServer } from "./discovery.ts";
import type { DPoPKey } from "./dpop.ts";
import { refusal, unauthorized } from "./failures.ts";
import type { Grant, KnownClient } from "./grant.ts";
import type { OAuthOptions } from "./oauth.ts";
import type { Reach } from "./reach.ts";
import { type Tokens, tokensOf } from "./records.ts";
import { refreshed } from "./refresh.ts";
import { clientBefore, forgotten, ourClient, type Registrar } from "./registration.ts";
import type { Vault } from "./vault.ts";

export interface TokenSourceOptions {
  readonly options: OAuthOptions;
  readonly end: URL;
  readonly vault: Vault;
  readonly reach: Reach;
  readonly grant: Grant;
}

/** What is asked for, of whom. */
export interface Wish {
  readonly server: oauth.AuthorizationServer;
  readonly resource: string;
  readonly plain: boolean;
  readonly asked: readonly string[];
  readonly key: DPoPKey | undefined;
}

export class TokenSource {
  readonly #options: TokenSourceOptions;
  readonly #registrar: Registrar;
  /** The last one that was looked up. */
  #server: oauth.AuthorizationServer | undefined;

  constructor(options: TokenSourceOptions) {
    this.#options = options;
    this.#registrar = { options: options.options, vault: options.vault, grantType: options.grant.kind };
  }

  async discover(told: Told, before: string | undefined, signal: AbortSignal): Promise<Found> {
    const { end, reach, grant, options } = this.#options;
    const found = await discover({
      end,
      told,
      reach,
      signal,
      before,
      only: options.client?.issuer,
      fits: (server) => grant.fits?.(server),
    });
    this.#server = found.server;
    return found;
  }

  /** By the refresh token; undefined where there is none that is good for anything. */
  async refresh(tokens: Tokens, key: DPoPKey | undefined): Promise<Tokens | undefined> {
    if (tokens.refresh === undefined) return undefined;
    const server = await this.#serverOf(tokens);
    const place = { server, resource: tokens.resource };
    const client = await clientBefore(this.#registrar, place, tokens.client);
    if (client === undefined) return undefined;
    // Not given up when nobody waits for it any more: the server may have replaced the refresh token already, and the
    // new one would be lost.
    const http = this.#options.reach.options(undefined, key?.handle);
    const next = await refreshed(tokens, server, client, http).catch(async (error: unknown) => {
      if (await forgotten(this.#registrar, place, error)) return undefined;
      throw refusal(`refreshing the access token at ${server.issuer}`, error, [tokens.refresh, client.secret]);
    });
    return next && checked(next);
  }

  /** Once more what was had before, where that takes nobody's consent. */
  async repeat(tokens: Tokens, key: DPoPKey | undefined, signal: AbortSignal): Promise<Tokens | undefined> {
    if (this.#options.grant.interactive) return undefined;
    const { resource, asked, plain = false } = tokens;
    return this.obtain({ server: await this.#serverOf(tokens), resource, plain, asked, key }, signal);
  }

  async obtain(wish: Wish, signal: AbortSignal): Promise<Tokens> {
    const { server, resource, plain, asked, key } = wish;
    const { grant, reach } = this.#options;
    const { issuer } = server;
    const http = reach.options(signal, key?.handle);
    let client = grant.identity ?? "";
    const known = async (): Promise<KnownClient> => {
      const ours = await ourClient(this.#registrar, { server, resource }, http);
      client = ours.client.client_id;
      return ours;
    };
    const scope = asked.length === 0 ? undefined : { scope: asked.join(" ") };
    const attempt = (): Promise<oauth.TokenEndpointResponse> =>
      grant.obtain({ server, resource, http, signal, client: known, ...scope });
    let answer: oauth.TokenEndpointResponse;
    try {
      answer = await attempt().catch(async (error: unknown) => {
        if (await forgotten(this.#registrar, { server, resource }, error)) return attempt();
        throw error;
      });
    } catch (error) {
      const failure = refusal(`getting an access token from ${issuer}`, error);
      if (!plain || failure.kind === "cancelled") throw failure;
      throw unauthorized(`${resource} says nowhere how to get a token, and the default way fails: ${failure.message}`);
    }
    return checked(tokensOf(answer, { issuer, resource, client, asked, plain, key: await key?.export() }));
  }

  async #serverOf({ issuer, plain = false }: Tokens): Promise<oauth.AuthorizationServer> {
    if (this.#server?.issuer === issuer) return this.#server;
    this.#server = await knownServer(issuer, plain, this.#options.reach);
    return this.#server;
  }
}

/** Nothing is kept that could not be used, or that whoever sees it could use. */
function checked(tokens: Tokens): Tokens {
  const { issuer, access, scheme, key } = tokens;
  if (!/^[\x21-\x7e]+$/.test(access)) {
    throw unauthorized(`${issuer} gave an access token that cannot stand in a header`);
  }
  const isBound = key !== undefined;
  if (isBound === (scheme === "DPoP")) return tokens;
  throw unauthorized(
    isBound
      ? `${issuer} gave an access token that is not bound to our key, though DPoP is needed; it may not support DPoP`
      : `${issuer} gave an access token for DPoP, though no key was shown to it; try oauth({ dpop: true })`,
  );
}
