// One end's part of a token store. Every key says for whom (the grant and the client), from whom (the issuer) and for
// what (the end): what one authorization server gave is never found when another is asked, and two programs with one
// store only share what is meant for both.

import type { ConnectionError } from "../../core/errors.ts";
import { reasonOf, unauthorized } from "./failures.ts";
import { readRegistered, readTokens, readTrace, type Registered, type Tokens, type Trace } from "./records.ts";
import type { TokenStore } from "./token-store.ts";

export interface VaultOptions {
  readonly store: TokenStore;
  readonly end: URL;
  /** For whom. */
  readonly who: string;
  /** Told where something could not be kept; the work goes on without. */
  readonly onNotice: (text: string) => void;
}

type Place = Pick<Tokens, "issuer" | "resource">;

/** What the store did not take, and what it has instead. */
interface Unkept {
  readonly text: string | undefined;
  readonly instead: string | undefined;
}

export class Vault {
  readonly #options: VaultOptions;
  /** The old refresh token, out of a store that takes no new one, would be good for nothing but to end everything. */
  readonly #unkept = new Map<string, Unkept>();

  constructor(options: VaultOptions) {
    this.#options = options;
  }

  /** What the last run left, found without asking anybody. */
  async last(): Promise<Tokens | undefined> {
    const trace = await this.trace();
    return trace === undefined ? undefined : this.tokens(trace);
  }

  async trace(): Promise<Trace | undefined> {
    return readTrace(await this.#get(this.#traceKey()));
  }

  async tokens(place: Place): Promise<Tokens | undefined> {
    const found = readTokens(await this.#get(this.#key("tokens", place)));
    // A store that mixes up its keys must not make us show a token to the wrong one.
    return found?.issuer === place.issuer && found.resource === place.resource ? found : undefined;
  }

  async keep(tokens: Tokens): Promise<void> {
    const { issuer, resource, client } = tokens;
    await this.#set(this.#key("tokens", tokens), tokens);
    await this.#set(this.#traceKey(), { issuer, resource, client } satisfies Trace);
  }

  async drop(place: Place): Promise<void> {
    await this.#set(this.#key("tokens", place), undefined);
  }

  async registered(place: Place): Promise<Registered | undefined> {
    return readRegistered(await this.#get(this.#key("client", place)));
  }

  async keepRegistered(place: Place, client: Registered | undefined): Promise<void> {
    await this.#set(this.#key("client", place), client);
  }

  /** While it runs, nobody else with this store gets or renews the same tokens. */
  exclusively<T>(place: Place, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#options.store.exclusively(this.#key("tokens", place), work, signal);
  }

  async #get(key: string): Promise<string | undefined> {
    let found: string | undefined;
    try {
      found = await this.#options.store.get(key);
    } catch (error) {
      throw unread(error);
    }
    const unkept = this.#unkept.get(key);
    // Where somebody else has written since, that counts.
    return unkept !== undefined && unkept.instead === found ? unkept.text : found;
  }

  async #set(key: string, value: object | undefined): Promise<void> {
    const { store, end, onNotice } = this.#options;
    const text = value === undefined ? undefined : JSON.stringify(value);
    try {
      await store.set(key, text);
      this.#unkept.delete(key);
    } catch (error) {
      const instead = await store.get(key).catch(() => undefined);
      this.#unkept.set(key, { text, instead });
      onNotice(`The token store cannot keep what ${end.origin} needs: ${reasonOf(error)}`);
    }
  }

  #key(what: "tokens" | "client", { issuer, resource }: Place): string {
    return `${what} ${this.#options.who} ${issuer} ${resource}`;
  }

  #traceKey(): string {
    return `end ${this.#options.who} ${this.#options.end.href}`;
  }
}

function unread(error: unknown): ConnectionError {
  return unauthorized(`The token store cannot be read: ${reasonOf(error)}`);
}
