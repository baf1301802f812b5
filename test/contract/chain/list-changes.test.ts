// Notifications of changed lists from upstreams that are programs: none when a start finds the lists that are remembered,
// one when a list has changed.

import { beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { eventually } from "../../support/waiting.ts";
import { chain } from "../../../src/chain/chain.ts";
import type { Gateway } from "../../../src/chain/gateway.ts";
import { call, caller, folder, program, SESSION } from "./callers.ts";

beforeEach(() => {
  vi.stubEnv("CATENARY_CACHE", folder());
  return () => vi.unstubAllEnvs();
});

function start(): Gateway {
  const gateway = chain().to({ one: program(), two: program() });
  onTestFinished(() => gateway.close());
  return gateway;
}

it("a start that finds the remembered lists notifies no client; a changed list does", async () => {
  const earlier = start();
  const { client: first } = await caller(earlier, SESSION);
  await first.listTools();
  // The lists are remembered a moment after the start.
  await eventually(async () => {
    const gateway = start();
    const { client } = await caller(gateway, SESSION);
    expect((await client.listTools()).tools).not.toEqual([]);
    expect(Object.values(gateway.status()).map(({ state }) => state)).toEqual(["idle", "idle"]);
  });
  await earlier.close();
  const received: string[] = [];
  const { client } = await caller(start(), SESSION);
  await client.listen({ toolsListChanged: true, resourcesListChanged: true }, ({ method }) => received.push(method));
  await client.listTools();
  for (const name of ["one_pid", "two_pid"]) await call(client, name);
  // The lists are read after the start, and once more for the change. No other list has been reported meanwhile.
  await call(client, "one_grow");
  await eventually(() => expect(received).not.toEqual([]));
  expect(received).toEqual(["notifications/tools/list_changed"]);
});
