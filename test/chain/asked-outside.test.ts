// What an end asks in no call's name, right after the handshake, finds its caller: in either style, with quick calls
// under way or none, for one end and for two merged.

import { fileURLToPath } from "node:url";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { chain } from "../../src/chain/chain.ts";
import { call, caller, EXCHANGE, folder, OLDEST, SESSION } from "./callers.ts";

const NOSY = {
  command: process.execPath,
  args: [fileURLToPath(new URL("nosy-program.js", import.meta.url))],
};
const ROOTS = [{ uri: "file:///here", name: "here" }];

beforeEach(() => {
  vi.stubEnv("CATENARY_CACHE", folder());
  return () => vi.unstubAllEnvs();
});

describe.each([OLDEST, SESSION, EXCHANGE])("a caller of %s", (revision) => {
  it.each([
    ["one end", { nosy: NOSY }, ["told"]],
    ["two ends merged", { one: NOSY, two: NOSY }, ["one.told", "two.told"]],
  ] as const)("is asked for its roots by %s", async (_title, ends, tools) => {
    const gateway = chain().to(ends);
    onTestFinished(() => gateway.close());
    const asked = vi.fn(() => ROOTS);
    const { client } = await caller(gateway, revision, { roots: asked });
    for (const tool of tools) {
      await vi.waitFor(async () => expect(await call(client, tool)).toBe("file:///here"), { timeout: 8_000 });
    }
    expect(asked).toHaveBeenCalled();
  });
});

it("is refused where its caller has said that it has none", async () => {
  const gateway = chain().to(NOSY);
  onTestFinished(() => gateway.close());
  const { client } = await caller(gateway, SESSION);
  await vi.waitFor(async () => expect(await call(client, "told")).toMatch(/roots/), { timeout: 8_000 });
});
