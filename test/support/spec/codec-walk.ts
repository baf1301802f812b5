// Applies a revision's codec to generated messages, for tests of its laws. The input is frozen, so a codec that changes
// its input fails. A codec that copies an unchanged value fails too.

import { isDeepStrictEqual } from "node:util";
import { expect } from "vitest";
import type {
  ErrorBody,
  ErrorMessage,
  NotificationMessage,
  RequestMessage,
  ResultMessage,
} from "../../../src/jsonrpc/message.ts";
import { deepFreeze } from "../../../src/core/values.ts";
import type { Codec, Json, Revision } from "../../../src/protocol/revision.ts";
import { buildRevisions } from "../../../src/protocol/revision.ts";
import { DELTAS, REVISIONS } from "../../../src/protocol/revisions/index.ts";
import type { Case } from "./generators.ts";

/** The resource of each generated error. */
export const URI = "file:///folder/1.txt";

/** The params, result or error of a case. */
export function bodyOf({ kind, message }: Case): Json | undefined {
  if (kind === "result") return (message as ResultMessage).result;
  if (kind === "error") return (message as ErrorMessage).error as unknown as Json;
  const { params } = message as RequestMessage | NotificationMessage;
  return kind === "request" ? (params ?? {}) : params;
}

export const GONE: unique symbol = Symbol("gone");

/** The body after the codec; GONE if the revision lacks the notification. */
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

export function expectSame(actual: unknown, expected: unknown): void {
  // The plain comparison is faster; the matcher explains the difference.
  if (!isDeepStrictEqual(actual, expected)) expect(actual).toStrictEqual(expected);
}

/** Applies a codec. Fails if it copies what it does not change. */
export function walk(codec: Codec, one: Case, body: Json | undefined): Json | undefined | typeof GONE {
  const after = through(codec, one, deepFreeze(body));
  if (after !== body && isDeepStrictEqual(after, body))
    expect.fail(`${one.kind} ${one.method} is copied but not changed`);
  return after;
}

/** The revision with this index, with codecs of one step: to its successor and back. */
export function singleStep(index: number): Revision {
  const delta = DELTAS[index];
  const successor = REVISIONS[index + 1];
  if (!delta || !successor) throw new Error("The newest revision has no successor");
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
  if (!step) throw new Error("No revision was built");
  return step;
}
