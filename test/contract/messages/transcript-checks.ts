// Checks for transcripts: whether each line of the server is a valid message of its revision, and whether an answer has
// everything that a seed shows.

import { decode } from "../../../src/jsonrpc/codec.ts";
import type { Message } from "../../../src/jsonrpc/message.ts";
import { MessageValidator } from "../../support/spec/message-validator.ts";

/** Validates the lines of the server. Lines of the client are only observed, since they may be invalid on purpose. */
export class LineValidator {
  readonly #validator: MessageValidator;

  /** `revision` is the revision of a session on this connection. */
  constructor(revision: string) {
    this.#validator = new MessageValidator(revision);
  }

  sent(text: string): void {
    for (const message of messagesOf(text)) this.#validator.observe("client", message);
  }

  /** The problems of a line. */
  received(text: string): string[] {
    const decoded = decode(text);
    if (decoded.kind === "fault") return [`Not a message: ${JSON.stringify(decoded.fault.error)}`];
    return messagesOf(text).flatMap((message) => this.#validator.validate("server", message));
  }
}

function messagesOf(text: string): Message[] {
  const decoded = decode(text);
  if (decoded.kind === "message") return [decoded.message];
  if (decoded.kind === "batch") return decoded.items.flatMap((item) => ("message" in item ? [item.message] : []));
  return [];
}

export interface Difference {
  /** A JSON pointer into the message. */
  readonly path: string;
  readonly shown: unknown;
  readonly found: unknown;
}

/** Where the two differ. */
export function differences(shown: unknown, found: unknown): Difference[] {
  const extra = missing(found, shown).filter(({ found: inShown }) => inShown === undefined);
  return [
    ...missing(shown, found),
    ...extra.map(({ path, shown: value }) => ({ path, shown: undefined, found: value })),
  ];
}

/** What `shown` has and `found` lacks. Objects may have more keys; arrays must have the same length. */
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
