// References of completion, whose check is easy to get wrong. Other params are tested with the server.

import { describe, expect, it } from "vitest";
import { checkParams } from "./params.ts";
import { McpError } from "./errors.ts";

describe("params of completion/complete", () => {
  const method = "completion/complete";
  const argument = { name: "a", value: "" };

  it.each([
    { type: "ref/prompt", name: "p" },
    { type: "ref/prompt", name: "p", uri: 1, more: true },
    { type: "ref/resource", uri: "t:{id}" },
  ])("accept %o", (ref) => {
    expect(() => checkParams(method, { ref, argument })).not.toThrow();
  });

  it.each([
    { type: "ref/prompt" },
    { type: "ref/prompt", uri: "t:{id}" },
    { type: "ref/prompt", name: 1 },
    { type: "ref/resource" },
    { type: "ref/resource", name: "p" },
    { type: "ref/other", uri: "t:{id}" },
    { type: "ref/other", name: "p" },
    { type: "prompt", name: "p" },
    { type: "REF/RESOURCE", uri: "t:{id}" },
    { type: ["ref/resource"], uri: "t:{id}" },
    { uri: "t:{id}", name: "p" },
    { type: null, uri: "t:{id}" },
  ])("refuse %o", (ref) => {
    const refused = (): void => checkParams(method, { ref, argument });
    expect(refused).toThrow(McpError);
    expect(refused).toThrow("Invalid params for completion/complete: `ref` must name a prompt");
  });
});
