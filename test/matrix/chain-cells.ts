// One pair of revisions on one pair of wires, with a test for each feature; and all pairs of revisions with one wire on
// both sides of the chain. The transport of the first revision cannot carry the newest, which has no sessions: there all
// features have the same refusal.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Client } from "../../src/client/index.ts";
import { NEWEST } from "../../src/protocol/revisions/index.ts";
import { PAIRS } from "../support/depth.ts";
import { Stage, type Arrangement, type Wire } from "./chain-arrange.ts";
import { answering, FEATURES, type Feature, type Party } from "./chain-features.ts";

export function describeCells(wire: Wire): void {
  describe.each(PAIRS)("a caller of $caller and a server of $server", ({ caller, server }) =>
    testFlow(caller, { front: wire, back: wire, end: server }),
  );
}

export function testFlow(
  caller: string,
  arrangement: Arrangement,
  features: readonly Feature[] = Object.keys(FEATURES) as Feature[],
): void {
  const { end } = arrangement;
  const stage = new Stage();
  const heard = { logs: [] as unknown[], asked: [] as string[] };
  const open = (): Promise<Client> => stage.flow(caller, arrangement, answering("ada", heard));
  afterAll(() => stage.close());

  const refusal = refusalOf(caller, arrangement);
  if (refusal !== undefined) {
    it.each(features)("%s is refused, since a wire cannot carry its revision", async () => {
      await expect(open()).rejects.toMatchObject({
        name: "ConnectionError",
        kind: "protocol",
        message: expect.stringMatching(refusal) as string,
      });
    });
    return;
  }

  let party: Party;
  beforeAll(async () => {
    party = { name: "ada", client: await open(), caller, end, ...heard, isAlone: true };
    expect(party.client.revision).toBe(caller);
    expect(party.client.server).toMatchObject({ name: "end", version: "1.0.0" });
  });
  it.each(features)("%s", async (feature) => {
    await FEATURES[feature](party);
  });
}

function refusalOf(caller: string, { front, back, end }: Arrangement): RegExp | undefined {
  const isLost = (wire: Wire, revision: string): boolean => wire === "old sse" && revision === NEWEST.name;
  if (isLost(front, caller)) return new RegExp(`^The server does not speak ${caller}: POST is not allowed at /sse`);
  if (isLost(back, end)) return /The upstream behind failed: No MCP server was found at .*There is nothing at \/sse/s;
  return undefined;
}
