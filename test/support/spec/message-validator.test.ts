// The judge sees what is wrong on either side: without this, one that lets everything through would look like a
// house that does everything right.

import { describe, expect } from "vitest";
import type { Message } from "../../../src/jsonrpc/message.ts";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { itWithSpec } from "./official-schema.ts";
import type { Side } from "./official-schema.ts";
import { MessageValidator } from "./message-validator.ts";
import { statelessMeta } from "../dialogue/raw-peer.ts";

const message = (body: Readonly<Record<string, unknown>>): Message =>
  ({ jsonrpc: "2.0", ...body }) as unknown as Message;

/** What is wrong with the last of some messages; those before it must be right. */
function wrong(
  revision: string,
  closed: boolean,
  ...said: readonly (readonly [Side, Record<string, unknown>])[]
): string[] {
  const judge = new MessageValidator(revision, { closed });
  const found = said.map(([from, body]) => judge.validate(from, message(body)));
  for (const problems of found.slice(0, -1)) expect(problems).toEqual([]);
  return found.at(-1) ?? [];
}

describe("MessageJudge", () => {
  const session = NEWEST_SESSION.name;
  const roots = { id: 1, method: "roots/list" };
  const list = { id: 1, method: "tools/list" };

  itWithSpec("lets either side say only what is its own to say", () => {
    expect(wrong(session, true, ["client", list])).toEqual([]);
    expect(wrong(session, true, ["server", list])).toEqual([`${session} has no request tools/list of the server`]);
    expect(wrong(session, true, ["server", roots])).toEqual([]);
    expect(wrong(session, true, ["client", roots])).toEqual([`${session} has no request roots/list of the client`]);
    const initialized = { method: "notifications/initialized" };
    expect(wrong(session, true, ["client", initialized])).toEqual([]);
    expect(wrong(session, true, ["server", initialized])).not.toEqual([]);
    expect(wrong(NEWEST.name, true, ["server", roots])).not.toEqual([]);
  });

  itWithSpec("judges an answer by what the other side asked under its id", () => {
    const answer = { id: 1, result: { roots: [] } };
    expect(wrong(session, true, ["server", roots], ["client", answer])).toEqual([]);
    expect(wrong(session, true, ["server", roots], ["client", { id: 1, result: { roots: [{}] } }])).not.toEqual([]);
    expect(wrong(session, true, ["server", roots], ["client", list], ["server", answer])).not.toEqual([]);
    expect(wrong(session, true, ["server", roots], ["server", answer])).toHaveLength(1);
    expect(wrong(session, true, ["server", roots], ["client", { id: 1, error: { code: "x", message: "y" } }])).not.toEqual(
      [],
    );
    expect(wrong(session, true, ["server", { id: null, error: { code: -32700, message: "y" } }])).toEqual([]);
  });

  itWithSpec("finds a field without a name only where it is asked to", () => {
    const answer = { id: 1, result: { tools: [{ name: "a", inputSchema: { type: "object" }, mine: 1 }] } };
    expect(wrong(session, false, ["client", list], ["server", answer])).toEqual([]);
    expect(wrong(session, true, ["client", list], ["server", answer])).not.toEqual([]);
  });

  itWithSpec("judges what is asked and answered inside the messages of an exchange", () => {
    const params = { name: "a", _meta: statelessMeta(NEWEST.name) };
    const call = { id: 1, method: "tools/call", params };
    const asking = (method: string): Record<string, unknown> => ({
      id: 1,
      result: { resultType: "input_required", inputRequests: { one: { method } }, requestState: "s" },
    });
    const retry = (requestState: string, inputResponses: object): Record<string, unknown> => ({
      id: 2,
      method: "tools/call",
      params: { ...params, requestState, inputResponses },
    });
    const judge = (...said: Parameters<typeof wrong>[2][]): string[] =>
      wrong(NEWEST.name, true, ["client", call], ...said);
    expect(judge(["server", asking("roots/list")])).toEqual([]);
    expect(judge(["server", asking("tools/list")])).not.toEqual([]);
    expect(judge(["server", asking("roots/list")], ["client", retry("s", { one: { roots: [] } })])).toEqual([]);
    // An answer that the schema knows, but to another question.
    expect(judge(["server", asking("roots/list")], ["client", retry("s", { one: { action: "accept" } })])).not.toEqual([]);
    expect(judge(["server", asking("roots/list")], ["client", retry("s", { two: { roots: [] } })])).toHaveLength(1);
    expect(judge(["server", asking("roots/list")], ["client", retry("t", { one: { roots: [] } })])).toHaveLength(1);
  });
});
