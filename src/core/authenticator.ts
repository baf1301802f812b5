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
  /** Rejects with an AuthRefusal where the caller has not proved who it is. */
  authenticate(credentials: Credentials): Promise<Identity>;
  /** What a caller is told that is known, but lacks these scopes; left out, a plain challenge. */
  lacking?(scopes: readonly string[], identity: Identity, credentials: Credentials): AuthRefusal;
  /** What anybody may read at this path of ours, as JSON; undefined: nothing. `endpoint` is our own address. */
  document?(path: string, endpoint: string): object | undefined;
}

/** Refused before the message is looked at: 401 with the way to a token, 403 where a token is not enough. */
export class AuthRefusal extends Error {
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
