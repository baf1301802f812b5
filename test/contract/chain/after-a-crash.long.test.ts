// A gateway whose upstream has just crashed: new clients, lists and calls wait for the restart, with one upstream as with
// two.

import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { chain } from "../../../src/chain/chain.ts";
import { upstream } from "../../../src/chain/upstream/upstream.ts";
import { call, caller, folder, program, SESSION, STATELESS } from "./callers.ts";

beforeEach(() => {
  vi.stubEnv("CATENARY_CACHE", folder());
  return () => vi.unstubAllEnvs();
});

describe.each([STATELESS, SESSION])("a new client of %s", (revision) => {
  it.each([
    ["one upstream", []],
    ["two upstreams", ["other"]],
  ])("a new client waits for the restart of %s", async (_title, others) => {
    const start = (): ReturnType<typeof upstream> =>
      upstream(program(), { remember: false, restart: { firstMs: 300 } });
    const gateway = chain().to({ fragile: start(), ...Object.fromEntries(others.map((name) => [name, start()])) });
    onTestFinished(() => gateway.close());
    const prefix = others.length === 0 ? "" : "fragile_";
    const first = await caller(gateway, revision);
    await expect(call(first.client, `${prefix}exit`)).rejects.toThrow();
    expect(gateway.status()["fragile"]).toMatchObject({ state: "restarting", cause: "crash" });
    const { client } = await caller(gateway, revision);
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain(`${prefix}pid`);
    expect(await call(client, `${prefix}pid`)).toMatch(/^\d+$/);
  });
});

it("tells a program that failed to start from one that crashed, with the reason", async () => {
  const script = 'console.error("Error: NOTES_KEY is required"); console.error("exiting"); process.exit(1)';
  const failing = upstream({ command: process.execPath, args: ["-e", script] }, { remember: false });
  const gateway = chain().to({ failing });
  onTestFinished(() => gateway.close());
  await expect(caller(gateway, STATELESS)).rejects.toThrow(/exited with code 1: Error: NOTES_KEY is required \(/);
  expect(gateway.status()["failing"]).toMatchObject({ state: "restarting", cause: "start" });
});
