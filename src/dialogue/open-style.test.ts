// An end that may speak both styles, opened by somebody who prefers one: what is asked first, what is asked then, and
// whether the wire tells whose a question of the end is.

import { afterEach, describe, expect, it } from "vitest";
import type { Context } from "../core/handler.ts";
import { isRequest, type Message } from "../jsonrpc/message.ts";
import { NEWEST, NEWEST_SESSION } from "../protocol/revisions/index.ts";
import { memoryPair } from "../transport/memory.ts";
import { open, type Opened, type OpenOptions } from "./connect.ts";

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
const home: Context = {
  revision: NEWEST.name,
  caller: { capabilities: {} },
  signal: new AbortController().signal,
  notify: () => undefined,
  ask: () => Promise.reject(new Error("Nobody is asked")),
};

const opened: Opened[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

/** What an end answers to a method: its result or its error; nothing at all; or, with "end", by closing the wire. */
type Answers = Readonly<Record<string, object | "end" | undefined>>;

/** Each time that it is started, the end goes by the next of these. */
async function meet(style: OpenOptions["style"], more: Partial<OpenOptions>, ...lives: Answers[]) {
  const asked: string[] = [];
  let life = 0;
  const connect = () => {
    const [ours, theirs] = memoryPair();
    const answers = lives[Math.min(life, lives.length - 1)] ?? {};
    life += 1;
    void theirs.start(({ message }) => {
      if (message === undefined || !isRequest(message)) return;
      const { id, method } = message;
      asked.push(method);
      const answer = answers[method];
      if (answer === "end") void theirs.close();
      else if (answer !== undefined) void theirs.send({ jsonrpc: "2.0", id, ...answer } as Message);
    });
    return ours;
  };
  const options: OpenOptions = { info: { name: "us", version: "1" }, capabilities: {}, home, ...more };
  const opening = open(connect, style === undefined ? options : { ...options, style });
  const end = await opening.then(
    (one) => {
      opened.push(one);
      return one;
    },
    (error: unknown) => error as Error,
  );
  return { asked, end };
}

const unknown = { error: { code: -32601, message: "Method not found" } };
const BOTH: Answers = { initialize: { result: initialized }, "server/discover": { result: discovered } };

describe("an end that speaks both styles", () => {
  it.each([
    [undefined, NEWEST, "server/discover"],
    ["stateless", NEWEST, "server/discover"],
    ["session", NEWEST_SESSION, "initialize"],
  ] as const)("and is wanted in %s is asked once", async (style, revision, method) => {
    const { asked, end } = await meet(style, {}, BOTH);
    expect(end).toMatchObject({ revision, saysWhose: style !== "session" });
    expect(asked).toEqual([method]);
  });

  it("is spoken to in the revision that is named, whatever is preferred", async () => {
    const { end } = await meet("session", { revision: NEWEST.name }, BOTH);
    expect(end).toMatchObject({ revision: NEWEST });
  });
});

describe("an end of exchanges that a session is preferred of", () => {
  const cases: readonly (readonly [string, object | undefined])[] = [
    ["refuses the handshake", unknown],
    ["answers it in a revision of exchanges", { result: { ...initialized, protocolVersion: NEWEST.name } }],
    ["answers it with nothing that it asked for", { result: {} }],
    ["is silent", undefined],
  ];
  it.each(cases)("is spoken to in exchanges where it %s", async (_, initialize) => {
    const { asked, end } = await meet("session", { startMs: 30 }, { ...BOTH, initialize });
    expect(end).toMatchObject({ revision: NEWEST, saysWhose: true });
    expect(asked).toEqual(["initialize", "server/discover"]);
  });

  it("is started once more where it does not survive the handshake", async () => {
    const { asked, end } = await meet("session", {}, { ...BOTH, initialize: "end" });
    expect(end).toMatchObject({ revision: NEWEST });
    expect(asked).toEqual(["initialize", "server/discover"]);
  });
});

it("an end that speaks neither style is refused in words that tell both answers", async () => {
  const { end } = await meet("session", {}, { initialize: unknown, "server/discover": unknown });
  expect(end).toMatchObject({ kind: "protocol", message: expect.stringMatching(/refused initialize.*exchanges/s) });
});

it("an end that closes whatever is said to it is started twice and no more", async () => {
  const { asked, end } = await meet("session", {}, { initialize: "end", "server/discover": "end" });
  expect(end).toMatchObject({ kind: "closed" });
  expect(asked).toEqual(["initialize", "server/discover"]);
});
