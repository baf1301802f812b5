// Session ids. With a key, an id is the sealed handshake of its session: after a restart of the server, the session is
// opened again from it, and the client goes on. An id that a client has ended is not accepted again in this process.
// Without a key, or if the handshake is too long for a header, an id is 128 random bits. An id is no credential: a
// session belongs to the principal that opened it.

import { ExpiringMap } from "../../core/expiring-map.ts";
import { Seal, digest } from "../../core/seal.ts";
import { isObject } from "../../core/values.ts";
import type { Json } from "../../protocol/revision.ts";

/** How long after its beginning a session can be opened again. */
const SEALED_MS = 7 * 24 * 60 * 60 * 1_000;
const MAX_LENGTH = 2_048;
const MAX_ENDED = 10_000;
const PREFIX = "s.";

interface SealedSession {
  readonly session: Json;
  readonly principal: string;
}

export class SessionIds {
  readonly #seal: Seal | undefined;
  readonly #ended = new ExpiringMap<string, true>({ maxEntries: MAX_ENDED });

  constructor(key: string | Uint8Array | undefined) {
    this.#seal = key === undefined ? undefined : new Seal(key);
  }

  /** `handshake` is the params of `initialize`, with the revision that was agreed on. */
  create(handshake: Json, principal: string | undefined): string {
    const payload: SealedSession = { session: handshake, principal: digest(principal) };
    const sealed = this.#seal?.seal(payload, SEALED_MS);
    return sealed === undefined || sealed.length > MAX_LENGTH ? randomId() : `${PREFIX}${sealed}`;
  }

  /** The handshake; undefined if the id is forged, expired, ended, or of another principal. */
  open(id: string, principal: string | undefined): Json | undefined {
    if (!id.startsWith(PREFIX) || id.length > MAX_LENGTH + PREFIX.length || this.#ended.get(id) === true) {
      return undefined;
    }
    const payload: Partial<SealedSession> | undefined = this.#seal?.open(id.slice(PREFIX.length));
    // The same key may seal other things.
    return isObject(payload?.session) && payload.principal === digest(principal) ? payload.session : undefined;
  }

  /** Makes the id invalid. */
  end(id: string): void {
    if (id.startsWith(PREFIX)) this.#ended.set(id, true);
  }
}

export function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
