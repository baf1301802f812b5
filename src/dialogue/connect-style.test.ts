// Connecting with a preferred style: which request is sent first, which second, and whether requests of the server can
// be attributed to calls.

import { messageOf } from "../../test/support/dialogue/seen-inbound.ts";
import { afterEach, expect, it } from "vitest";
import type { Context } from "../core/handler.ts";
import { isRequest, type Message } from "../jsonrpc/message.ts";
import { NEWEST, NEWEST_SESSION } from "../protocol/revisions/index.ts";
import { memoryPair } from "../transport/memory.ts";
import { fakeCaller } from "../../test/support/handlers/fake-client.ts";
import { openConnection, type ServerConnection, type ServerConnectionOptions } from "./connect.ts";

const discovered = {
  resultType: "complete",
  supportedVersions: [NEWEST.name],
  capabilities: {},
  ttlMs: 0,
  cacheScope: "private",
};
const initialized = {
  protocolVersion: NEWEST_SESSION.name,
  capabilities: {},
  serverInfo: { name: "e", version: "1" },
};
const defaultContext: Context = {
  revision: NEWEST.name,
  caller: fakeCaller(),
  signal: new AbortController().signal,
  notify: () => undefined,
  ask: () => Promise.reject(new Error("Not asked")),
};

const opened: ServerConnection[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

/** How a server answers a method: with a result or an error, not at all, or, with "end", by closing the connection. */
type Answers = Readonly<Record<string, object | "end" | undefined>>;

/** The behaviours of the server, one for each start. */
async function connectTo(
  style: ServerConnectionOptions["style"],
  more: Partial<ServerConnectionOptions>,
  ...runs: Answers[]
) {
  const asked: string[] = [];
  let run = 0;
  const connect = () => {
    const [ours, theirs] = memoryPair();
    const answers = runs[Math.min(run, runs.length - 1)] ?? {};
    run += 1;
    void theirs.start((inbound) => {
      const message = messageOf(inbound);
      if (message === undefined || !isRequest(message)) return;
      const { id, method } = message;
      asked.push(method);
      const answer = answers[method];
      if (answer === "end") void theirs.close();
      else if (answer !== undefined) void theirs.send({ jsonrpc: "2.0", id, ...answer } as Message);
    });
    return ours;
  };
  const options: ServerConnectionOptions = {
    info: { name: "us", version: "1" },
    capabilities: {},
    defaultContext,
    ...more,
  };
  const connecting = openConnection(connect, style === undefined ? options : { ...options, style });
  const outcome = await connecting.then(
    (one) => {
      opened.push(one);
      return one;
    },
    (error: unknown) => error as Error,
  );
  return { asked, outcome };
}

const unknown = { error: { code: -32601, message: "Method not found" } };
const BOTH: Answers = { initialize: { result: initialized }, "server/discover": { result: discovered } };

it.each([
  [undefined, NEWEST, "server/discover"],
  ["stateless", NEWEST, "server/discover"],
  ["session", NEWEST_SESSION, "initialize"],
] as const)(
  "a server that speaks both styles gets a single request if %s is preferred",
  async (style, revision, method) => {
    const { asked, outcome } = await connectTo(style, {}, BOTH);
    expect(outcome).toMatchObject({ revision, attributesRequests: style !== "session" });
    expect(asked).toEqual([method]);
  },
);

it("a server that speaks both styles gets the revision that was asked for, whatever style is preferred", async () => {
  const { outcome } = await connectTo("session", { revision: NEWEST.name }, BOTH);
  expect(outcome).toMatchObject({ revision: NEWEST });
});

const cases: readonly (readonly [string, object | undefined])[] = [
  ["refuses the handshake", unknown],
  ["answers the handshake with a stateless revision", { result: { ...initialized, protocolVersion: NEWEST.name } }],
  ["answers the handshake with an empty result", { result: {} }],
  ["is silent", undefined],
];
it.each(cases)(
  "a stateless server when a session is preferred is addressed statelessly if it %s",
  async (_, initialize) => {
    const limit = initialize === undefined ? { startTimeoutMs: 300 } : {};
    const { asked, outcome } = await connectTo("session", limit, { ...BOTH, initialize });
    expect(outcome).toMatchObject({ revision: NEWEST, attributesRequests: true });
    expect(asked).toEqual(["initialize", "server/discover"]);
  },
);

it("a stateless server when a session is preferred is started once more if it exits during the handshake", async () => {
  const { asked, outcome } = await connectTo("session", {}, { ...BOTH, initialize: "end" });
  expect(outcome).toMatchObject({ revision: NEWEST });
  expect(asked).toEqual(["initialize", "server/discover"]);
});

it("the error for a server that speaks neither style quotes both answers", async () => {
  const { outcome } = await connectTo("session", {}, { initialize: unknown, "server/discover": unknown });
  expect(outcome).toMatchObject({ kind: "protocol", message: expect.stringMatching(/refused initialize.*stateless/s) });
});

it("a server that always closes the connection is started only twice", async () => {
  const { asked, outcome } = await connectTo("session", {}, { initialize: "end", "server/discover": "end" });
  expect(outcome).toMatchObject({ kind: "closed" });
  expect(asked).toEqual(["initialize", "server/discover"]);
});
