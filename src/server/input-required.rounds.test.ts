// `inputRequired` in several rounds: a handler has the answers of all rounds, for clients of every revision.

import { describe, expect, it } from "vitest";
import { fakeClient } from "../../test/support/handlers/fake-client.ts";
import type { Result } from "../core/handler.ts";
import { connectInMemory, REVISION_NAMES } from "../testing.ts";
import type { ToolContext } from "./call-context.ts";
import { createServer, inputRequired } from "./index.ts";

const info = { name: "test", version: "1" };
const MESSAGES = [{ role: "user", content: { type: "text", text: "A word?" } }] as const;

/** Asks for one thing after the other, and looks only at the answers. */
const twoRounds = (_args: unknown, { answers }: ToolContext) => {
  const { folders, word } = answers as Record<string, unknown>;
  if (folders === undefined) return inputRequired({ folders: { method: "roots/list" } });
  if (word === undefined) {
    return inputRequired({ word: { method: "sampling/createMessage", params: { messages: MESSAGES, maxTokens: 5 } } });
  }
  return JSON.stringify([folders, word]);
};

const server = createServer(info)
  .tool("t", {}, twoRounds)
  .tool("task", { task: "optional" }, twoRounds)
  .resource("a:b", {}, twoRounds)
  .prompt("p", {}, twoRounds);

describe.each(REVISION_NAMES)("a client of %s", (revision) => {
  it("a client is asked twice, and the handler has both answers", async () => {
    const asked: string[] = [];
    const { client, close } = await connectInMemory(server, {
      revision,
      roots: () => {
        asked.push("roots");
        return [{ uri: "file:///a" }];
      },
      sample: () => {
        asked.push("sample");
        return { role: "assistant", content: { type: "text", text: "blue" }, model: "m" };
      },
    });
    const texts = [
      (await client.callTool("t")).content,
      (await (await client.callToolAsTask("task")).result()).content,
      (await client.readResource("a:b")).contents,
      (await client.getPrompt("p")).messages.map(({ content }) => content),
    ].map((blocks) => (blocks[0] as unknown as { text: string }).text);
    for (const text of texts) expect(text).toMatch(/file:\/\/\/a.*blue/);
    expect(asked).toEqual(["roots", "sample", "roots", "sample", "roots", "sample", "roots", "sample"]);
    await close();
  });
});

const caller = { capabilities: { roots: {}, sampling: {} } };
const retry = ({ requestState }: Result, inputResponses: object) => ({ name: "t", requestState, inputResponses });

it("the answers of earlier rounds cannot be replaced in a later round", async () => {
  const client = fakeClient(server, { caller });
  const first = await client.call("tools/call", { name: "t" });
  const second = await client.call("tools/call", retry(first, { folders: { roots: [] } }));
  const last = retry(second, { word: { text: "x" }, folders: { roots: [1] } });
  expect(await client.call("tools/call", last)).toMatchObject({
    content: [{ text: '[{"roots":[]},{"text":"x"}]' }],
  });
});

it("the answers of earlier rounds have a limit", async () => {
  const client = fakeClient(server, { caller });
  const first = await client.call("tools/call", { name: "t" });
  const long = retry(first, { folders: { roots: ["x".repeat(1_100_000)] } });
  expect((await client.callError("tools/call", long)).message).toContain("longer than 1048576 characters");
});
