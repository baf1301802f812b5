// What a session-style wire over HTTP keeps: the session, from one handshake to the next, and each request that is
// under way. Also how an end says that it does not know a session. What is done with them is the wire's.

import { onAbort } from "../../core/async.ts";
import type { failureOf } from "./answer.ts";

export interface Session {
  name: string | undefined;
  revision: string | undefined;
  /** Aborted when the session is over, ours or the end's wish. */
  readonly over: AbortController;
  /** Resolves when the end knows that the handshake is done, or it failed: what comes after must not overtake it. */
  readonly begun: Promise<void>;
  readonly isBegun: () => void;
  /** Resolves when the end has the stream for what belongs to no request, or offers none. */
  heard: Promise<void>;
  /** That stream is gone because we were refused. */
  isDeaf: boolean;
}

/** One whose handshake is still to come. */
export function newSession(): Session {
  const over = new AbortController();
  let isBegun = (): void => undefined;
  const begun = new Promise<void>((resolve) => (isBegun = resolve));
  onAbort(over.signal, isBegun);
  return { name: undefined, revision: undefined, over, begun, isBegun, heard: begun, isDeaf: false };
}

/** A request that is under way. */
export interface Live {
  readonly stop: AbortController;
  /** In which it may have reached the end. */
  sentIn: Session | undefined;
  /** Nobody waits for its answer any more. */
  isLeft: boolean;
}

/** How ends say that they know of no handshake. */
const UNKNOWN = /\bsession\b|\bnot initialized\b/i;

/** Whether the end says that it does not know the session that we named. */
export function isForgotten(
  status: number,
  failure: Awaited<ReturnType<typeof failureOf>>,
  { name }: Session,
): boolean {
  // Many ends say it with the status for a request that names no session.
  const said = "body" in failure ? failure.body : undefined;
  const unknown = status === 400 && said !== undefined && said.code <= -32_000 && UNKNOWN.test(said.message);
  return unknown || (status === 404 && name !== undefined);
}
