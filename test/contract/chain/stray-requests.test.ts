// Requests of an upstream outside of any call, right after the handshake, reach a caller: in both styles, for one upstream
// and for two.

import { fileURLToPath } from "node:url";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { eventually } from "../../support/waiting.ts";
import { chain } from "../../../src/chain/chain.ts";
import { call, caller, STATELESS, folder, OLDEST, SESSION } from "./callers.ts";

const ROOTS_PROGRAM = {
  command: process.execPath,
  args: [fileURLToPath(new URL("roots-program.js", import.meta.url))],
};
const ROOTS = [{ uri: "file:///here", name: "here" }];

beforeEach(() => {
  vi.stubEnv("CATENARY_CACHE", folder());
  return () => vi.unstubAllEnvs();
});

describe.each([OLDEST, SESSION, STATELESS])("a caller of %s", (revision) => {
  it.each([
    ["one upstream", { only: ROOTS_PROGRAM }, ["answer"]],
    ["two upstreams", { one: ROOTS_PROGRAM, two: ROOTS_PROGRAM }, ["one_answer", "two_answer"]],
  ] as const)("a caller is asked for its roots by %s", async (_title, upstreams, tools) => {
    const gateway = chain().to(upstreams);
    onTestFinished(() => gateway.close());
    const asked = vi.fn(() => ROOTS);
    const { client } = await caller(gateway, revision, { roots: asked });
    for (const tool of tools) {
      await eventually(async () => expect(await call(client, tool)).toBe("file:///here"));
    }
    expect(asked).toHaveBeenCalled();
  });
});

it("are refused if the caller has no roots", async () => {
  const gateway = chain().to(ROOTS_PROGRAM);
  onTestFinished(() => gateway.close());
  const { client } = await caller(gateway, SESSION);
  await eventually(async () => expect(await call(client, "answer")).toMatch(/roots/));
});

describe.each([
  ["one upstream", {}],
  ["two upstreams", { other: ROOTS_PROGRAM }],
])("with %s", (_title, others) => {
  it("a list of a caller without roots does not wait for the roots", async () => {
    const asking = { ...ROOTS_PROGRAM, args: [...ROOTS_PROGRAM.args, "--in-list"] };
    const gateway = chain().to({ asking, ...others });
    onTestFinished(() => gateway.close());
    const { client } = await caller(gateway, STATELESS);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain(Object.keys(others).length === 0 ? "answer" : "asking_answer");
    // Requests that belong to no call are otherwise refused after 10 s.
    expect(await call(client, tools[0]?.name ?? "")).toContain("The caller of the list cannot answer roots/list");
  });
});
