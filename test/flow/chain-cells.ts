// One wire on both sides of the chain, every caller revision with every end revision, every feature: a test for each.
// The transport of the first revision cannot carry the newest, which is the one without sessions; there all features
// have the same refusal.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Client } from "../../src/client/index.ts";
import { NEWEST } from "../../src/protocol/revisions/index.ts";
import { Stage, type Wire } from "./chain-arrange.ts";
import { answering, FEATURES, NAMES, type Party } from "./chain-features.ts";

const CELLS = Object.entries(FEATURES);

export function describeCells(wire: Wire): void {
  describe.each(NAMES)("a caller of %s", (caller) => {
    describe.each(NAMES)(`over ${wire} and an end of %s`, (end) => {
      const stage = new Stage();
      const heard = { logs: [] as unknown[], asked: [] as string[] };
      const open = (): Promise<Client> => stage.flow(caller, { front: wire, back: wire, end }, answering("ada", heard));
      afterAll(() => stage.close());

      const refusal = wire === "old sse" ? refusalOf(caller, end) : undefined;
      if (refusal !== undefined) {
        it.each(CELLS)("%s is refused, since the wire has no such revision", async () => {
          await expect(open()).rejects.toMatchObject(refusal);
        });
        return;
      }

      let party: Party;
      beforeAll(async () => {
        party = { name: "ada", client: await open(), caller, end, ...heard };
        expect(party.client.revision).toBe(caller);
        expect(party.client.server).toMatchObject({ name: "end", version: "1.0.0" });
      });

      it.each(CELLS)("%s", async (_name, feature) => {
        await feature(party);
      });
    });
  });
}

/** How a connection fails where one of its sides would need sessions and has none; the caller's own side is first. */
function refusalOf(caller: string, end: string): object | undefined {
  if (caller === NEWEST.name) {
    const message = expect.stringContaining(`The end does not speak ${NEWEST.name}: POST is not for /sse`) as string;
    return { name: "LinkError", kind: "protocol", message };
  }
  if (end !== NEWEST.name) return undefined;
  const message = expect.stringMatching(
    /The end refused initialize: The end behind failed: No MCP end was found at .*There is nothing at \/sse/s,
  ) as string;
  return { name: "LinkError", kind: "protocol", message };
}
