// Tests that the validator can fail: one that accepts everything would make every implementation look correct.

import { expect } from "vitest";
import type { Message } from "../../../src/jsonrpc/message.ts";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { itWithSpec } from "./official-schema.ts";
import type { Side } from "./official-schema.ts";
import { MessageValidator } from "./message-validator.ts";
import { statelessMeta } from "../dialogue/raw-peer.ts";

const message = (body: Readonly<Record<string, unknown>>): Message =>
  ({ jsonrpc: "2.0", ...body }) as unknown as Message;

/** The problems of the last message; the messages before it must be valid. */
function problemsOfLast(
  revision: string,
  closed: boolean,
  ...messages: readonly (readonly [Side, Record<string, unknown>])[]
): string[] {
  const validator = new MessageValidator(revision, { closed });
  const found = messages.map(([from, body]) => validator.validate(from, message(body)));
  for (const problems of found.slice(0, -1)) expect(problems).toEqual([]);
  return found.at(-1) ?? [];
}

const session = NEWEST_SESSION.name;
const roots = { id: 1, method: "roots/list" };
const list = { id: 1, method: "tools/list" };

itWithSpec("MessageValidator lets each side send only its own requests and notifications", () => {
  expect(problemsOfLast(session, true, ["client", list])).toEqual([]);
  expect(problemsOfLast(session, true, ["server", list])).toEqual([
    `${session} has no request tools/list of the server`,
  ]);
  expect(problemsOfLast(session, true, ["server", roots])).toEqual([]);
  expect(problemsOfLast(session, true, ["client", roots])).toEqual([
    `${session} has no request roots/list of the client`,
  ]);
  const initialized = { method: "notifications/initialized" };
  expect(problemsOfLast(session, true, ["client", initialized])).toEqual([]);
  expect(problemsOfLast(session, true, ["server", initialized])).not.toEqual([]);
  expect(problemsOfLast(NEWEST.name, true, ["server", roots])).not.toEqual([]);
});

itWithSpec("MessageValidator validates a response by the other side's request with the same id", () => {
  const answer = { id: 1, result: { roots: [] } };
  expect(problemsOfLast(session, true, ["server", roots], ["client", answer])).toEqual([]);
  expect(problemsOfLast(session, true, ["server", roots], ["client", { id: 1, result: { roots: [{}] } }])).not.toEqual(
    [],
  );
  expect(problemsOfLast(session, true, ["server", roots], ["client", list], ["server", answer])).not.toEqual([]);
  expect(problemsOfLast(session, true, ["server", roots], ["server", answer])).toHaveLength(1);
  expect(
    problemsOfLast(session, true, ["server", roots], ["client", { id: 1, error: { code: "x", message: "y" } }]),
  ).not.toEqual([]);
  expect(problemsOfLast(session, true, ["server", { id: null, error: { code: -32700, message: "y" } }])).toEqual([]);
});

itWithSpec("MessageValidator rejects unknown fields only with `closed`", () => {
  const answer = { id: 1, result: { tools: [{ name: "a", inputSchema: { type: "object" }, mine: 1 }] } };
  expect(problemsOfLast(session, false, ["client", list], ["server", answer])).toEqual([]);
  expect(problemsOfLast(session, true, ["client", list], ["server", answer])).not.toEqual([]);
});

itWithSpec("MessageValidator validates input requests and input responses", () => {
  const params = { name: "a", _meta: statelessMeta(NEWEST.name) };
  const call = { id: 1, method: "tools/call", params };
  const inputRequired = (method: string): Record<string, unknown> => ({
    id: 1,
    result: { resultType: "input_required", inputRequests: { one: { method } }, requestState: "s" },
  });
  const retry = (requestState: string, inputResponses: object): Record<string, unknown> => ({
    id: 2,
    method: "tools/call",
    params: { ...params, requestState, inputResponses },
  });
  const validate = (...messages: Parameters<typeof problemsOfLast>[2][]): string[] =>
    problemsOfLast(NEWEST.name, true, ["client", call], ...messages);
  expect(validate(["server", inputRequired("roots/list")])).toEqual([]);
  expect(validate(["server", inputRequired("tools/list")])).not.toEqual([]);
  expect(validate(["server", inputRequired("roots/list")], ["client", retry("s", { one: { roots: [] } })])).toEqual([]);
  // A valid response, but to another request.
  expect(
    validate(["server", inputRequired("roots/list")], ["client", retry("s", { one: { action: "accept" } })]),
  ).not.toEqual([]);
  expect(
    validate(["server", inputRequired("roots/list")], ["client", retry("s", { two: { roots: [] } })]),
  ).toHaveLength(1);
  expect(
    validate(["server", inputRequired("roots/list")], ["client", retry("t", { one: { roots: [] } })]),
  ).toHaveLength(1);
});
