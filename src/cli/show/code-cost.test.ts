// What `catenary tools --code` reports: the tools that a model would see, and their cost beside the full list.

import { expect, it } from "vitest";
import type { Tool } from "../../protocol/model/index.ts";
import { formatCodeTools, reportCodeTools } from "./code-cost.ts";

const tools = Array.from({ length: 100 }, (_, at): Tool => {
  const inputSchema = { type: "object" as const, properties: { query: { type: "string" } } };
  return { name: `tool-${at}`, description: "Finds notes by their words.", inputSchema };
});

it("compares the tokens of code mode with those of the full list", async () => {
  const report = await reportCodeTools(tools, {});
  expect(report.tools.map(({ name }) => name)).toEqual(["search-tools", "describe-tools", "run-code"]);
  expect(report.full).toMatchObject({ tools: 100 });
  expect(report.savedPercent).toBeGreaterThan(80);
  // gpt-tokenizer is installed for tests. A token is more than a character, and less than a line.
  expect(report.isEstimate).toBe(false);
  expect(report.full.tokens).toBeGreaterThan(report.full.bytes / 8);
  expect(report.full.tokens).toBeLessThan(report.full.bytes);
  expect(formatCodeTools(report)).toMatch(
    /Code mode: 3 tools, \d+ tokens, \d+ bytes \([\d.]+ % fewer tokens\)\nFull list: 100 tools, \d+ tokens, \d+ bytes\n$/,
  );
});

it("counts the tools that stay in the list, and says if tokens are estimated", async () => {
  const report = await reportCodeTools(tools, { include: ["tool-1*"] });
  expect(report.tools).toHaveLength(3 + 11);
  const text = formatCodeTools({ ...report, isEstimate: true });
  expect(text).toMatch(/Code mode: 14 tools, about \d+ tokens/);
  expect(text).toContain("Install gpt-tokenizer");
});
