// Looks at both directions of a line, as text, and says of every message that the server sends whether it is one
// and is allowed. What the caller sends is only listened to: it may be wrong on purpose.

import { decode } from "../../../src/jsonrpc/codec.ts";
import type { Message } from "../../../src/jsonrpc/message.ts";
import { MessageJudge } from "../../support/spec/message-validator.ts";

export class Judge {
  readonly #judge: MessageJudge;

  /** The revision that a session on this line speaks. */
  constructor(revision: string) {
    this.#judge = new MessageJudge(revision);
  }

  /** What the caller wrote, whatever it was. */
  sent(text: string): void {
    for (const message of messagesOf(text)) this.#judge.hear("client", message);
  }

  /** Everything that is wrong with a line of the server. */
  received(text: string): string[] {
    const decoded = decode(text);
    if (decoded.kind === "fault") return [`Not a message: ${JSON.stringify(decoded.fault.error)}`];
    return messagesOf(text).flatMap((message) => this.#judge.judge("server", message));
  }
}

function messagesOf(text: string): Message[] {
  const decoded = decode(text);
  if (decoded.kind === "message") return [decoded.message];
  if (decoded.kind === "batch") return decoded.items.flatMap((item) => ("message" in item ? [item.message] : []));
  return [];
}

// Whether an answer has all that a seed shows: objects by key (more keys are fine), arrays by element (as many as
// shown), everything else by value. What is missing comes back by its path, so that an exception can name it.

export interface Difference {
  /** A JSON pointer into the message. */
  readonly path: string;
  readonly shown: unknown;
  readonly found: unknown;
}

export function missing(shown: unknown, found: unknown, path = ""): Difference[] {
  if (Array.isArray(shown)) {
    if (!Array.isArray(found)) return [{ path, shown, found }];
    if (found.length !== shown.length) return [{ path: `${path}/length`, shown: shown.length, found: found.length }];
    return shown.flatMap((element, index) => missing(element, found[index], `${path}/${index}`));
  }
  if (typeof shown === "object" && shown !== null) {
    if (typeof found !== "object" || found === null || Array.isArray(found)) return [{ path, shown, found }];
    return Object.entries(shown).flatMap(([key, value]) =>
      missing(value, Object.hasOwn(found, key) ? (found as Record<string, unknown>)[key] : undefined, `${path}/${key}`),
    );
  }
  return Object.is(shown, found) ? [] : [{ path, shown, found }];
}
