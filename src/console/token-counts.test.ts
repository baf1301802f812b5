// What definitions cost: counted in the background, and estimated until then.

import { expect, it, vi } from "vitest";
import { TokenCounts } from "./token-counts.ts";

const tool = (description: string): { definition: { name: string; description: string }; kind: "tools" } => ({
  definition: { name: "echo", description },
  kind: "tools",
});

it("definitions are estimated until they are counted", async () => {
  const counts = new TokenCounts(() => undefined);
  const { definition, kind } = tool("Echoes a text, with all its characters");
  const estimated = counts.of(definition, kind);
  expect(counts.estimates(definition)).toBe(true);
  await counts.prepare([{ definition, kind }]);
  await vi.waitFor(() => expect(counts.estimates(definition)).toBe(false));
  expect(counts.of(definition, kind)).toBeGreaterThan(10);
  expect(counts.of(definition, kind)).toBeLessThan(2 * estimated);
});

it("a very long definition is counted by its beginning, and no text of a server stops the count", async () => {
  const counts = new TokenCounts(() => undefined);
  const items = [tool("<|endoftext|>"), tool("word ".repeat(100_000)), tool("!".repeat(1_000_000)), tool("last")];
  await counts.prepare(items);
  await vi.waitFor(() => expect(items.map(({ definition }) => counts.estimates(definition))).not.toContain(true));
  const [, words = 0] = items.map(({ definition, kind }) => counts.of(definition, kind));
  expect(words).toBeGreaterThan(90_000);
  expect(words).toBeLessThan(110_000);
});
