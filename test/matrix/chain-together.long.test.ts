// Two callers of one chain, who do everything at once: each gets all that is its own, and nothing of the other's. Only
// where exchanges of both go through one pipe may logs get lost, because nothing on it says whose they are.

import { describe, expect, it } from "vitest";
import { NEWEST, NEWEST_SESSION } from "../../src/protocol/revisions/index.ts";
import { Stage, type Wire } from "./chain-arrange.ts";
import { answering, FEATURES, NAMES, type Party } from "./chain-features.ts";

const [, , THIRD = ""] = NAMES;
const SESSION = NEWEST_SESSION.name;
const EXCHANGE = NEWEST.name;
const SESSIONS = [
  [SESSION, SESSION, SESSION],
  [THIRD, SESSION, THIRD],
] as const;
const ALL = [
  ...SESSIONS,
  [EXCHANGE, EXCHANGE, SESSION],
  [SESSION, EXCHANGE, SESSION],
  [SESSION, SESSION, EXCHANGE],
  [SESSION, EXCHANGE, EXCHANGE],
  [EXCHANGE, EXCHANGE, EXCHANGE],
] as const;
const WIRES: readonly (readonly [Wire, Wire, readonly (readonly [string, string, string])[]])[] = [
  ["stdio", "stdio", ALL],
  ["http", "http", ALL],
  // How most gateways are used.
  ["http", "stdio", ALL],
  // It cannot carry the newest.
  ["old sse", "old sse", SESSIONS],
];

describe.each(WIRES)("over %s and %s", (front, back, cases) => {
  it.each(cases)("callers of %s and %s, and an end of %s", async (first, second, end) => {
    const stage = new Stage();
    try {
      const targets = await stage.shared(front, back, end);
      const meet = async (name: string, caller: string, target: (typeof targets)[number]): Promise<Party> => {
        const heard = { logs: [] as unknown[], asked: [] as string[] };
        const client = await stage.connect(target, { ...answering(name, heard), revision: caller });
        return { name, client, caller, end, ...heard, isAlone: false };
      };
      const parties = [await meet("ada", first, targets[0]), await meet("bob", second, targets[1])];
      // Each request over HTTP may be another caller's.
      const isOnePipe = back === "stdio" && end === EXCHANGE && (front === "http" || first === EXCHANGE);
      const work = parties.flatMap((party) => {
        const logging = isOnePipe && party.caller === EXCHANGE ? logsSomething : FEATURES.logging;
        return Object.entries({ ...FEATURES, logging }).map(([feature, run]) =>
          run(party).then(
            () => undefined,
            (error: unknown) => `${party.name}, ${feature}: ${String(error)}`,
          ),
        );
      });
      expect((await Promise.all(work)).filter((failure) => failure !== undefined)).toEqual([]);
      for (const { name, logs, asked } of parties) {
        expect(logs.filter((text) => !String(text).startsWith(name))).toEqual([]);
        expect(asked.filter((question) => !question.includes(name))).toEqual([]);
        expect(asked.length).toBeGreaterThan(0);
      }
    } finally {
      await stage.close();
    }
  });
});

async function logsSomething({ client, name }: Party): Promise<void> {
  await client.callTool("say", { name });
}
