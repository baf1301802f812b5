// Who asks? The one question that a wire with headers puts to whoever knows: it gets an identity, or a refusal
// that says what to bring. Here, because the dialogue asks it and the server's room answers it, and neither may
// import the other. No answer without a principal exists: an empty identity is not an identity.


export interface Credentials {
  /** By lower-case names. */
  readonly headers: Readonly<Record<string, string | undefined>>;
  /** The address at which we are being called, without query: what a token must have been issued for. */
  readonly endpoint: string;
}

export interface Identity {
  /** Never empty; equal for two calls only where it is the same one who calls. */
  readonly principal: string;
  /** What it may do, where it proved that. */
  readonly scopes?: readonly string[];
  /** What else was proved about it. Never the token itself. */
  readonly claims?: Readonly<Record<string, unknown>>;
}

export interface Authenticator {
  /** Rejects with an AuthError where the caller has not proved who it is. */
  authenticate(credentials: Credentials): Promise<Identity>;
  /** What a caller is told that is known, but lacks these scopes; left out, a plain challenge. */
  lacking?(scopes: readonly string[], identity: Identity, credentials: Credentials): AuthError;
  /** What anybody may read at this path of ours, as JSON; undefined: nothing. `endpoint` is our own address. */
  document?(path: string, endpoint: string): object | undefined;
}

/** Refused before the message is looked at: 401 with the way to a token, 403 where a token is not enough. */
export class AuthError extends Error {
  readonly status: 400 | 401 | 403;
  /** The whole value of WWW-Authenticate. */
  readonly challenge: string;

  constructor(status: 400 | 401 | 403, message: string, challenge: string) {
    super(message);
    this.name = "AuthRefusal";
    this.status = status;
    this.challenge = challenge;
  }
}

// How we prove to an end who we are: the other half of the authenticator. A wire with headers asks it before every
// request, and tells it when the end was not content. Here, because the dialogue asks it and the client's room
// answers it. An end has one authorizer of its own: what it knows is never shown to another end.

export interface OutgoingRequest {
  readonly method: string;
  readonly url: URL;
  /** Aborted when nobody wants the request sent any more. */
  readonly signal: AbortSignal;
}

/** An end's 401 or 403. */
export interface Challenge extends OutgoingRequest {
  readonly status: 401 | 403;
  /** Of the refusal, by lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** What `authorize` gave for the request that was refused: it may have been replaced meanwhile. */
  readonly sent: Readonly<Record<string, string>>;
  /** How often this one request has been refused, from 1. */
  readonly attempt: number;
}

export interface Authorizer {
  /** Extensions of the protocol that it is made of: a client that has it declares them. */
  readonly extensions?: readonly string[];
  /** The headers that go with a request. Quick where it has what it needs. Rejects with ConnectionError("unauthorized"). */
  authorize(sending: OutgoingRequest): Promise<Readonly<Record<string, string>>>;
  /** Whether it is worth sending again. Rejects with ConnectionError("unauthorized") where it never will be, and says why. */
  refused(challenge: Challenge): Promise<boolean>;
  /** The headers of an answer that was no refusal. */
  answered?(sending: OutgoingRequest, headers: Readonly<Record<string, string>>): void;
}
