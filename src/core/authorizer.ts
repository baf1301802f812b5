// How we prove to an end who we are: the other half of the authenticator. A wire with headers asks it before every
// request, and tells it when the end was not content. Here, because the dialogue asks it and the client's room
// answers it. An end has one authorizer of its own: what it knows is never shown to another end.

export interface Sending {
  readonly method: string;
  readonly url: URL;
  /** Aborted when nobody wants the request sent any more. */
  readonly signal: AbortSignal;
}

/** An end's 401 or 403. */
export interface Challenge extends Sending {
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
  authorize(sending: Sending): Promise<Readonly<Record<string, string>>>;
  /** Whether it is worth sending again. Rejects with ConnectionError("unauthorized") where it never will be, and says why. */
  refused(challenge: Challenge): Promise<boolean>;
  /** The headers of an answer that was no refusal. */
  answered?(sending: Sending, headers: Readonly<Record<string, string>>): void;
}
