// Generated messages through a revision's codec, for the tests of its laws: what a message is about goes in
// frozen, so that a codec that changes its input fails, and a copy of what did not change is a failure too.

import { isDeepStrictEqual } from "node:util";
import { expect } from "vitest";
import type {
  ErrorBody,
  ErrorMessage,
  NotificationMessage,
  RequestMessage,
  ResultMessage,
} from "../../../src/jsonrpc/message.ts";
import type { Codec, Json, Revision } from "../../../src/protocol/revision.ts";
import { buildRevisions } from "../../../src/protocol/revision.ts";
import { DELTAS, REVISIONS } from "../../../src/protocol/revisions/index.ts";
import type { Case } from "./generators.ts";

/** The resource that every generated error is taken to be about. */
export const URI = "file:///folder/1.txt";

/** What a case is about: params, result or error. */
export function bodyOf({ kind, message }: Case): Json | undefined {
  if (kind === "result") return (message as ResultMessage).result;
  if (kind === "error") return (message as ErrorMessage).error as unknown as Json;
  const { params } = message as RequestMessage | NotificationMessage;
  return kind === "request" ? (params ?? {}) : params;
}

export const GONE: unique symbol = Symbol("gone");

/** The case's body after the codec; GONE where a notification has no form there. */
function through(codec: Codec, { kind, method }: Case, body: Json | undefined): Json | undefined | typeof GONE {
  switch (kind) {
    case "request":
      return codec.request(method, body ?? {});
    case "result":
      return codec.result(method, body ?? {});
    case "error":
      return codec.error(body as unknown as ErrorBody, { method, params: { uri: URI } }) as unknown as Json;
    case "notification": {
      const after = codec.notification(body === undefined ? { method } : { method, params: body });
      return after === undefined ? GONE : after.params;
    }
  }
}

export function freeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const inner of Object.values(value)) freeze(inner);
  }
  return value;
}

export function expectSame(actual: unknown, expected: unknown): void {
  // The matcher explains the difference; the plain comparison is what can be run a hundred thousand times.
  if (!isDeepStrictEqual(actual, expected)) expect(actual).toStrictEqual(expected);
}

/** Applies a codec, and holds that it makes no copy where it changes nothing. */
export function walk(codec: Codec, one: Case, body: Json | undefined): Json | undefined | typeof GONE {
  const after = through(codec, one, freeze(body));
  if (after !== body && isDeepStrictEqual(after, body)) expect.fail(`${one.kind} ${one.method} is copied, not changed`);
  return after;
}

/** A revision, by its place, as its successor alone sees it: its codecs are the single step. */
export function singleStep(index: number): Revision {
  const delta = DELTAS[index];
  const successor = REVISIONS[index + 1];
  if (!delta || !successor) throw new Error("The newest has no successor");
  const vocabulary = {
    requests: [...successor.requests],
    clientRequests: [...successor.clientRequests],
    clientNotifications: [...successor.clientNotifications],
    serverNotifications: [...successor.serverNotifications],
  };
  const [step] = buildRevisions(
    { name: successor.name, style: successor.style, batches: successor.batches, vocabulary },
    [delta],
  );
  if (!step) throw new Error("Nothing was folded");
  return step;
}
