// A program behind a gateway that ends its subscriptions as it stops: the gateway's callers stay subscribed.

import { expect, it, onTestFinished } from "vitest";
import { chain } from "../../../src/chain/chain.ts";
import { upstream } from "../../../src/chain/upstream/upstream.ts";
import { sampleOf } from "../../support/thoroughness.ts";
import { eventually } from "../../support/waiting.ts";
import { caller, program, SESSION, STATELESS, textIn } from "./callers.ts";

const STYLES = sampleOf(1, [
  [STATELESS, SESSION],
  [STATELESS, STATELESS],
  [SESSION, STATELESS],
]);

it.each(STYLES)(
  "a %s program that is stopped by SIGTERM keeps the subscription of a %s caller",
  async (revision, callersRevision) => {
    const gateway = chain().to(upstream(program("--revisions", revision)));
    onTestFinished(() => gateway.close());
    const { client } = await caller(gateway, callersRevision);
    const pid = async (): Promise<number> => Number(textIn(await client.callTool("pid")));
    const updates: unknown[] = [];
    let isOver = false;
    const subscription = await client.listen({ resourceSubscriptions: ["board://one"] }, ({ params }) => {
      updates.push(params);
    });
    subscription.ended.catch(() => undefined).finally(() => (isOver = true));
    const first = await pid();
    process.kill(first, "SIGTERM");
    // The change that may have been missed.
    await eventually(() => expect(updates.length).toBeGreaterThan(0));
    expect(await pid()).not.toBe(first);
    const before = updates.length;
    await client.callTool("write", { text: "new" });
    await eventually(() => expect(updates.length).toBeGreaterThan(before));
    expect(isOver).toBe(false);
  },
);
