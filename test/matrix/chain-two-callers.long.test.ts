// Two callers of one chain run every feature at once: each receives all that is its own and nothing of the other's.
// Only where calls of both share one pipe may logs be lost, because nothing says whose they are.

import { describe, expect, it } from "vitest";
import { NEWEST, NEWEST_SESSION } from "../../src/protocol/revisions/index.ts";
import { answering, FEATURES, NAMES, Received, type TestCaller } from "./chain-features.ts";
import { ChainSetup, type TransportKind } from "./chain-setup.ts";

const [, , THIRD = ""] = NAMES;
const SESSION = NEWEST_SESSION.name;
const STATELESS = NEWEST.name;
const SESSIONS = [
  [SESSION, SESSION, SESSION],
  [THIRD, SESSION, THIRD],
] as const;
const ALL = [
  ...SESSIONS,
  [STATELESS, STATELESS, SESSION],
  [SESSION, STATELESS, SESSION],
  [SESSION, SESSION, STATELESS],
  [SESSION, STATELESS, STATELESS],
  [STATELESS, STATELESS, STATELESS],
] as const;
const TRANSPORTS: readonly (readonly [TransportKind, TransportKind, readonly (readonly [string, string, string])[]])[] =
  [
    ["stdio", "stdio", ALL],
    ["http", "http", ALL],
    // The most common layout of a gateway.
    ["http", "stdio", ALL],
    // Legacy SSE cannot carry the newest revision.
    ["legacy sse", "legacy sse", SESSIONS],
  ];

describe.each(TRANSPORTS)("over %s and %s", (front, back, cases) => {
  it.each(cases)("callers of %s and %s, and an upstream of %s", async (first, second, server) => {
    const setup = new ChainSetup();
    try {
      const targets = await setup.shared({ front, back, server });
      const open = async (name: string, caller: string, target: (typeof targets)[number]): Promise<TestCaller> => {
        const received = new Received();
        const client = await setup.connect(target, { ...answering(name, received), revision: caller });
        return { name, client, caller, server, received, isAlone: false };
      };
      const testers = [await open("ada", first, targets[0]), await open("bob", second, targets[1])];
      // Lets the upstream ask one client alone, so that each of them gets a session of its own. An upstream that speaks
      // the stateless style needs none.
      for (const tester of testers) await FEATURES.roots(tester).catch(() => undefined);
      const isOnePipe = back === "stdio" && server === STATELESS;
      const work = testers.flatMap((tester) => {
        const logging = isOnePipe ? logWithoutCheck : FEATURES.logging;
        return Object.entries({ ...FEATURES, logging }).map(([feature, run]) =>
          run(tester).then(
            () => undefined,
            (error: unknown) => `${tester.name}, ${feature}: ${String(error)}`,
          ),
        );
      });
      expect((await Promise.all(work)).filter((failure) => failure !== undefined)).toEqual([]);
      for (const { name, received } of testers) {
        expect(received.logs.filter((text) => !String(text).startsWith(name))).toEqual([]);
        expect(received.requests.filter((request) => !request.includes(name))).toEqual([]);
        expect(received.requests.length).toBeGreaterThan(0);
      }
    } finally {
      await setup.close();
    }
  });
});

async function logWithoutCheck({ client, name }: TestCaller): Promise<void> {
  await client.callTool("say", { name });
}
