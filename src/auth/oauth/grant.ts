// How tokens are had once it is known who issues them: by a person's consent, by a client's own credentials, by what
// a platform vouches for. Each is a grant; the flow around them (discovery, registration, refresh, step-up of scopes)
// is the same for all and knows none by name. Types only.

import type * as oauth from "oauth4webapi";

/** What a grant stands on. */
export interface Ground {
  readonly server: oauth.AuthorizationServer;
  /** The end that the token is for, as its metadata names it (RFC 8707). */
  readonly resource: string;
  /** Space-separated; absent: whatever the server gives by default. */
  readonly scope?: string;
  /** Passed to every function of oauth4webapi that makes a request: our guarded fetch, the signal, the DPoP key. */
  readonly http: oauth.TokenEndpointRequestOptions;
  readonly signal: AbortSignal;
  /** The client as it is known to this server, registered where that is needed; for grants that need one. */
  client(): Promise<KnownClient>;
}

export interface KnownClient {
  readonly client: oauth.Client;
  readonly auth: oauth.ClientAuth;
  /** Only so that no error repeats it. */
  readonly secret?: string | undefined;
}

export interface Grant {
  /** The extension of the protocol that this grant is, where it is one. */
  readonly extension?: string;
  /** The `grant_type` that it asks with. */
  readonly kind: string;
  /** For whom, where the grant itself knows: a client's or a subject's name. Tokens are kept under it; never secret. */
  readonly identity?: string;
  /** Nobody says whose tokens they are: then they are not kept in a store, where another might find them. */
  readonly isNameless?: boolean;
  /** Whether a person takes part, so that it is not begun where nobody can. */
  readonly interactive: boolean;
  /** Why it cannot be had from this server, as the end of a sentence; of several servers the next is tried then. */
  fits?(server: oauth.AuthorizationServer): string | undefined;
  obtain(ground: Ground): Promise<oauth.TokenEndpointResponse>;
}
