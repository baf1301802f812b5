// Reads and writes the tokens and client registrations of one MCP server in a token store; also the in-memory store.
// A key consists of the grant, client, issuer and resource. So tokens of one authorization server are never used with
// another, and programs that share a store share only tokens that both may use. An entry that cannot be parsed counts
// as missing, since a store may be a file that was edited by hand.

import type * as oauth from "oauth4webapi";
import { KeyedMutex } from "../../core/async.ts";
import { defined, isObject } from "../../core/values.ts";
import { reasonOf, unauthorized } from "./errors.ts";
import type { TokenStore } from "./types.ts";

/** Tokens with everything that they are bound to. */
export interface Tokens {
  readonly issuer: string;
  readonly resource: string;
  /** The ID of the client that they were issued to. */
  readonly client: string;
  /** The client, if it was registered dynamically. */
  readonly registered?: RegisteredClient;
  readonly access: string;
  readonly scheme: "Bearer" | "DPoP";
  readonly refresh?: string;
  /** The requested scopes. */
  readonly asked: readonly string[];
  /** The granted scopes, if the server named them. */
  readonly granted?: readonly string[];
  /** Milliseconds since the epoch. */
  readonly expires?: number;
  /** When to renew them, in milliseconds since the epoch: a little before they expire. */
  readonly renew?: number;
  /** The DPoP key that they are bound to. */
  readonly key?: string;
  /** The authorization server publishes no metadata, so its endpoints are the default ones. */
  readonly plain?: boolean;
}

/** The part of a key that varies within one StoredTokens. The grant and the client are the same in all its keys. */
export type StorageKey = Pick<Tokens, "issuer" | "resource">;
/** The key and client last used for an MCP server. */
export type LastUsed = Pick<Tokens, "issuer" | "resource" | "client">;

/** A client that an authorization server registered, with the field names of RFC 7591. */
export interface RegisteredClient {
  readonly client_id: string;
  readonly client_secret?: string;
  /** Seconds since the epoch; 0 means never. */
  readonly client_secret_expires_at?: number;
  readonly token_endpoint_auth_method: string;
  readonly redirect_uris: readonly string[];
}

/** Keeps tokens in memory, so they are lost when the process ends, and no other process sees them. */
export function memoryTokens(): TokenStore {
  const values = new Map<string, string>();
  const mutex = new KeyedMutex();
  return {
    get: (key) => Promise.resolve(values.get(key)),
    set: (key, value) => {
      if (value === undefined) values.delete(key);
      else values.set(key, value);
      return Promise.resolve();
    },
    exclusively: (key, work, signal) => mutex.run(key, work, signal),
  };
}

export interface StoredTokensOptions {
  readonly store: TokenStore;
  readonly mcpServer: URL;
  /** The grant and client that the tokens belong to. */
  readonly owner: string;
  /** Called if an entry could not be written. The flow goes on without the store. */
  readonly onNotice: (text: string) => void;
}

export class StoredTokens {
  readonly #options: StoredTokensOptions;
  /**
   * Values that could not be saved, and the values that the store had at that time. They are used instead of those,
   * because using an old refresh token again may revoke all tokens.
   */
  readonly #unsaved = new Map<string, { readonly text: string | undefined; readonly stored: string | undefined }>();

  constructor(options: StoredTokensOptions) {
    this.#options = options;
  }

  async last(): Promise<Tokens | undefined> {
    const lastUsed = await this.lastUsed();
    return lastUsed === undefined ? undefined : this.get(lastUsed);
  }

  async lastUsed(): Promise<LastUsed | undefined> {
    const value = parse(await this.#read(this.#lastUsedKey()));
    return hasStrings(value, BINDING) ? value : undefined;
  }

  async get(key: StorageKey): Promise<Tokens | undefined> {
    const tokens = readTokens(await this.#read(this.#key("tokens", key)));
    // A store that mixes up its keys must not make us send a token to the wrong server.
    return tokens?.issuer === key.issuer && tokens.resource === key.resource ? tokens : undefined;
  }

  async save(tokens: Tokens): Promise<void> {
    const { issuer, resource, client } = tokens;
    await this.#write(this.#key("tokens", tokens), tokens);
    await this.#write(this.#lastUsedKey(), { issuer, resource, client } satisfies LastUsed);
  }

  async delete(key: StorageKey): Promise<void> {
    await this.#write(this.#key("tokens", key), undefined);
  }

  async client(key: StorageKey): Promise<RegisteredClient | undefined> {
    return readRegisteredClient(await this.#read(this.#key("client", key)));
  }

  async saveClient(key: StorageKey, client: RegisteredClient | undefined): Promise<void> {
    await this.#write(this.#key("client", key), client);
  }

  /** While `work` runs, no other user of the store obtains or renews the same tokens. */
  exclusively<T>(key: StorageKey, work: () => Promise<T>, signal: AbortSignal): Promise<T> {
    return this.#options.store.exclusively(this.#key("tokens", key), work, signal);
  }

  async #read(key: string): Promise<string | undefined> {
    const stored = await this.#options.store.get(key).catch((error: unknown) => {
      throw unauthorized(`The token store cannot be read: ${reasonOf(error)}`);
    });
    const unsaved = this.#unsaved.get(key);
    // If another process has written a value since the failed write, that value is used.
    return unsaved !== undefined && unsaved.stored === stored ? unsaved.text : stored;
  }

  async #write(key: string, value: object | undefined): Promise<void> {
    const { store, mcpServer, onNotice } = this.#options;
    const text = value === undefined ? undefined : JSON.stringify(value);
    try {
      await store.set(key, text);
      this.#unsaved.delete(key);
    } catch (error) {
      const stored = await store.get(key).catch(() => undefined);
      this.#unsaved.set(key, { text, stored });
      onNotice(`The token store could not save the tokens for ${mcpServer.origin}: ${reasonOf(error)}`);
    }
  }

  #key(kind: "tokens" | "client", { issuer, resource }: StorageKey): string {
    return `${kind} ${this.#options.owner} ${issuer} ${resource}`;
  }

  #lastUsedKey(): string {
    return `server ${this.#options.owner} ${this.#options.mcpServer.href}`;
  }
}

export interface StoredServer {
  readonly url: string;
  /** The id of the client that the tokens were asked for with, if it was registered by hand. */
  readonly client?: string;
  readonly tokens?: Tokens;
  readonly keys: readonly string[];
}

/** The store of the commands can list its keys. */
interface ListableStore extends Pick<TokenStore, "get"> {
  keys(): Promise<readonly string[]>;
}

/** Whether a user has signed in to this server before. */
export async function hasStoredTokens(store: ListableStore, url: URL): Promise<boolean> {
  const [end] = url.href.split("#");
  return (await store.keys()).some((key) => key.startsWith("server ") && key.endsWith(` ${end}`));
}

/** All servers in the store, sorted by URL. See `StoredTokens.#key` for the form of a key. */
export async function storedServers(store: ListableStore): Promise<readonly StoredServer[]> {
  const all = await store.keys();
  const servers = all.flatMap((key) => {
    const [kind, grant, identity, client = "", url] = key.split(" ");
    return kind === "server" && url !== undefined
      ? [{ key, owner: `${grant} ${identity} ${client}`, client, url }]
      : [];
  });
  const read = async ({ key, owner, client, url }: (typeof servers)[number]): Promise<StoredServer> => {
    const last = parse(await store.get(key));
    const end = hasStrings(last, BINDING) ? `${owner} ${last.issuer} ${last.resource}` : undefined;
    const keys = all.filter((stored) => stored === key || stored === `tokens ${end}` || stored === `client ${end}`);
    const tokens = end === undefined ? undefined : readTokens(await store.get(`tokens ${end}`));
    return { url, keys, ...defined({ tokens, client: client === "" ? undefined : decodeURIComponent(client) }) };
  };
  return (await Promise.all(servers.map(read))).toSorted((one, other) => (one.url < other.url ? -1 : 1));
}

export function readTokens(text: string | undefined): Tokens | undefined {
  const value = parse(text);
  if (!hasStrings(value, [...BINDING, "access"], "asked")) return undefined;
  const { scheme, registered } = value;
  const isValid = scheme === "Bearer" || scheme === "DPoP";
  return isValid && (registered === undefined || isRegisteredClient(registered))
    ? (value as unknown as Tokens)
    : undefined;
}

export function readRegisteredClient(text: string | undefined): RegisteredClient | undefined {
  const value = parse(text);
  return isRegisteredClient(value) ? value : undefined;
}

function isRegisteredClient(value: unknown): value is RegisteredClient {
  return hasStrings(value, ["client_id", "token_endpoint_auth_method"], "redirect_uris");
}

const BINDING = ["issuer", "resource", "client"] as const;

function parse(text: string | undefined): unknown {
  try {
    return JSON.parse(text ?? "");
  } catch {
    return undefined;
  }
}

/** Whether the value is an object with these strings, and with an array of strings under the name `list`. */
function hasStrings<Name extends string, List extends string = never>(
  value: unknown,
  names: readonly Name[],
  list?: List,
): value is Readonly<Record<string, unknown> & Record<Name, string> & Record<List, readonly string[]>> {
  const isString = (item: unknown): boolean => typeof item === "string";
  if (!isObject(value) || !names.every((name) => isString(value[name]))) return false;
  const items: unknown = list === undefined ? [] : value[list];
  return Array.isArray(items) && items.every(isString);
}

/** A token is renewed at most this long before it expires. */
const RENEWAL_MARGIN_MS = 60_000;

/** @param binding What the tokens are bound to; for a refresh, the tokens before. */
export function toTokens(
  response: oauth.TokenEndpointResponse,
  binding: Omit<Tokens, "access" | "scheme">,
  now: number = Date.now(),
): Tokens {
  const expiresInMs = (response.expires_in ?? 0) * 1000;
  // Some servers send 0 if they do not know the lifetime.
  const lifetime = expiresInMs > 0 && Number.isFinite(expiresInMs) ? expiresInMs : undefined;
  const expires = lifetime && now + lifetime;
  const tokens = {
    ...binding,
    access: response.access_token,
    scheme: response.token_type === "dpop" ? "DPoP" : "Bearer",
    // The refresh token that was used stays valid if the response has no new one, and so do the scopes.
    refresh: response.refresh_token ?? binding.refresh,
    granted: response.scope?.split(/\s+/).filter(Boolean) ?? binding.granted,
    expires,
    renew: expires && lifetime && expires - Math.min(RENEWAL_MARGIN_MS, lifetime / 10),
  } as const;
  return defined(tokens);
}

export function isDue({ renew = Infinity }: Tokens, now: number = Date.now()): boolean {
  return now >= renew;
}

export function isExpired({ expires = Infinity }: Tokens, now: number = Date.now()): boolean {
  return now >= expires;
}
