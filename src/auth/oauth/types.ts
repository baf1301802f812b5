// The public types of `catenary/oauth`. They are in one file so that the modules that share them do not import each
// other.

import type { JWK } from "jose";
import type * as oauth from "oauth4webapi";

/** Options of `oauth()`. */
export interface OAuthOptions {
  /** Where tokens are kept. Default: in memory. */
  readonly store?: TokenStore | undefined;
  /** How the user gets to the authorization server and back. Without it, no flow that needs the user can run. */
  readonly redirect?: Redirect | undefined;
  /** A client that is already registered with the authorization server. */
  readonly client?: PreRegisteredClient | undefined;
  /** The https URL of our client ID metadata document, for servers that read such documents. */
  readonly metadataUrl?: string | undefined;
  /** The name used in dynamic client registration. Default: "Catenary". */
  readonly clientName?: string | undefined;
  /** Scopes that are always requested, in addition to those that the MCP server requires. */
  readonly scopes?: readonly string[] | undefined;
  /** How tokens are obtained. Default: the authorization code flow with the user's consent. */
  readonly grant?: Grant | undefined;
  /** Whether tokens are bound to a key (DPoP). Default: only if the MCP server requires it. */
  readonly dpop?: boolean | undefined;
  /** Whether metadata and endpoints may be at private addresses. Default: false. */
  readonly allowPrivateNetwork?: boolean | undefined;
  /** Makes the requests instead of the built-in guarded fetch. Private addresses are then not blocked. */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined;
  /** Receives messages for the user that do not stop the flow. */
  readonly onNotice?: ((text: string) => void) | undefined;
}

/** A client ID, and how the client authenticates. */
export interface ClientIdentity {
  /** The client ID. */
  readonly id: string;
  /** The client secret. */
  readonly secret?: string | undefined;
  /** For `private_key_jwt`. */
  readonly privateKey?: PrivateKeySource | undefined;
  /** The signing algorithm. Default: one that fits the key. */
  readonly alg?: string | undefined;
  /** A registered method name such as `client_secret_post`. Default: chosen from those that the server lists. */
  readonly authMethod?: string | undefined;
}

/** A client that is already registered with an authorization server. */
export interface PreRegisteredClient extends ClientIdentity {
  /** The server that it is registered with. Default: the first one that it is used with, and never another. */
  readonly issuer?: string | undefined;
}

/** A CryptoKey, a private JWK or a PEM string; or a key in the form of oauth4webapi. */
export type PrivateKeySource = oauth.CryptoKey | JWK | string | oauth.PrivateKey;

/** Sends the user to an authorization server and waits for the user to come back. */
export interface Redirect {
  /** Where the authorization server sends the user back to. It is registered there, so it must not change. */
  readonly uri: string | Promise<string>;
  /**
   * Sends the user to `url`. Resolves to the unchanged URL at which the user came back, with `code`, `state`, `iss` or
   * `error` in its query. Rejects if the user does not come back or the signal is aborted.
   */
  visit(url: URL, options: { readonly signal: AbortSignal }): Promise<URL>;
}

/**
 * Keeps tokens and client registrations as strings by key. A key names an issuer and an MCP server, so that their
 * entries are never used for another issuer or server.
 */
export interface TokenStore {
  /**
   * Resolves to undefined if there is no entry. Called before each request, so that tokens which were deleted are no
   * longer used; so it should be fast.
   */
  get(key: string): Promise<string | undefined>;
  /** Undefined deletes the entry. */
  set(key: string, value: string | undefined): Promise<void>;
  /**
   * Runs `work` while no other work for the same key runs, in this process or in another one that uses the store. So
   * one process refreshes a token, and the others wait for it.
   */
  exclusively<T>(key: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
}

/**
 * One way to obtain tokens from an authorization server. Discovery, registration, refresh and step-up (a new token with
 * more scopes) are the same for all grants, so a grant does not implement them.
 */
export interface Grant {
  /** The MCP extension that this grant implements, if any. A client with this grant declares the extension. */
  readonly extension?: string | undefined;
  /** The `grant_type` of the token request. */
  readonly grantType: string;
  /** The name of the client or subject, if the grant knows it. Tokens are stored under it, so it must not be secret. */
  readonly identity?: string | undefined;
  /** Keeps tokens in memory only. Needed if the subject is unknown: a store could return them for another subject. */
  readonly memoryOnly?: boolean | undefined;
  /** Whether the user takes part. An interactive grant runs only after the MCP server has refused a request. */
  readonly interactive: boolean;
  /**
   * Returns why this server cannot be used, as the end of a sentence. The next server is then tried. Returns undefined
   * if the server can be used.
   */
  rejectServer?(server: oauth.AuthorizationServer): string | undefined;
  /** Requests tokens from the authorization server. */
  obtain(context: GrantContext): Promise<oauth.TokenEndpointResponse>;
}

/** The data for one token request of a grant. */
export interface GrantContext {
  /** The metadata of the authorization server. */
  readonly server: oauth.AuthorizationServer;
  /** The resource that the token is for, as its metadata names it (RFC 8707). */
  readonly resource: string;
  /** The scopes, separated by spaces. If absent, the server grants its default scopes. */
  readonly scope?: string;
  /** The fetch, the signal and the DPoP key. Pass it to every function of oauth4webapi that makes a request. */
  readonly http: oauth.TokenEndpointRequestOptions;
  /** Aborted when the token is no longer needed. */
  readonly signal: AbortSignal;
  /** Returns the client of `oauth()` for this server, and registers it first if necessary. */
  client(): Promise<OAuthClient>;
}

/** A client in the form that oauth4webapi takes. */
export interface OAuthClient {
  /** The client's ID and metadata. */
  readonly client: oauth.Client;
  /** How the client authenticates. */
  readonly auth: oauth.ClientAuth;
  /** Used only to remove it from error messages. */
  readonly secret?: string | undefined;
}

/** What an assertion is needed for. */
export interface AssertionRequest {
  /** The issuer of the authorization server or identity provider that will read the assertion. */
  readonly audience: string;
  /** The resource that the token will be for. */
  readonly resource: string;
  /** Aborted when the assertion is no longer needed. */
  readonly signal: AbortSignal;
}

/** An assertion that a platform or an identity provider made, or a function that returns a fresh one. */
export type Assertion = string | ((request: AssertionRequest) => Promise<string> | string);

/** The organization's identity provider. */
export interface IdentityProvider {
  /** The issuer URL. The provider's metadata is looked up under it, unless `tokenEndpoint` is given. */
  readonly issuer?: string | undefined;
  /** The URL for token requests. Default: the one in the provider's metadata. */
  readonly tokenEndpoint?: string | undefined;
  /** The client at the identity provider for which the user signed in. */
  readonly client: ClientIdentity;
}
