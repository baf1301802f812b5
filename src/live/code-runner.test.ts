// Runs code that calls tools of an in-memory gateway, with the rules that hold for the calls.

import { afterEach, describe, expect, it } from "vitest";
import { connect } from "../client/connect.ts";
import type { Client } from "../client/client.ts";
import type { Handler } from "../core/handler.ts";
import { createServer } from "../server/server.ts";
import { createCodeRunner, type CodeRunnerOptions, type RunTools } from "./code-runner.ts";
import { jsLanguage } from "./js/index.ts";

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

/** All tools of a server, as `server.name`. */
async function toolsOf(gateway: Handler, context: Parameters<Handler>[1]): Promise<RunTools> {
  const { tools } = await gateway({ method: "tools/list", params: {} }, context);
  const entries = (tools as { name: string; annotations?: { destructiveHint?: boolean } }[]).map((tool) => ({
    path: `notes.${tool.name}`,
    name: tool.name,
    signature: `${tool.name}(...)`,
    summary: "",
    isDestructive: tool.annotations?.destructiveHint === true,
  }));
  return {
    entries,
    gateway,
    search: async (query, limit) => entries.filter(({ name }) => name.includes(query)).slice(0, limit),
  };
}

async function start(
  gateway: Handler,
  options: Partial<CodeRunnerOptions> = {},
  clientOptions: Parameters<typeof connect>[1] = {},
): Promise<{ client: Client; run: (code: string, more?: object) => Promise<RunAnswer> }> {
  const runner = createCodeRunner(jsLanguage({}), { tools: (context) => toolsOf(gateway, context), ...options });
  const client = await connect(runner.handler, clientOptions);
  open.push(client, runner);
  return {
    client,
    run: async (code, more = {}) => (await client.callTool("run-code", { code, ...more })) as unknown as RunAnswer,
  };
}

interface RunAnswer {
  readonly isError?: boolean;
  readonly content: readonly { readonly type: string; readonly text: string; readonly data?: string }[];
  readonly structuredContent: {
    readonly status: string;
    readonly state: string;
    readonly calls: readonly {
      readonly tool: string;
      readonly ms: number;
      readonly bytes: number;
      readonly isError?: true;
    }[];
  };
}

const notes = () =>
  createServer({ name: "notes", version: "1.0.0" })
    .tool("echo", { inputSchema: { type: "object" } }, (args) => String(args["text"]))
    .tool("add", { inputSchema: { type: "object" } }, (args) => ({ sum: Number(args["a"]) + Number(args["b"]) }))
    .tool("file", { inputSchema: { type: "object" } }, () => ({
      content: [{ type: "text", text: "x" }],
      structuredContent: { content: "own" },
    }))
    .tool("fail", { inputSchema: { type: "object" } }, () => ({
      content: [{ type: "text", text: "It is locked" }],
      isError: true,
    }))
    .tool("picture", { inputSchema: { type: "object" } }, () => ({
      content: [
        { type: "text", text: "A dot" },
        { type: "image", data: "AAAA", mimeType: "image/png" },
      ],
    }));

describe("a call from code", () => {
  it("gives structured content, text, or both text and content", async () => {
    const { run } = await start(notes());
    const { content, structuredContent } = await run(`
      const sum = await tools.notes.add({ a: 1, b: 2 });
      console.log(sum.sum, sum.content[0].type, Object.keys(sum));
      console.log(await tools.notes.echo({ text: "hi" }), (await tools.notes.file()).content);
      const { text, content } = await tools.call("picture");
      show(content[1]);
      [text, content.length, (await tools.search("ech"))[0].path, tools.catalogue.length]`);
    expect(content[0]?.text).toBe("3 text [ 'sum' ]\nhi own\n=> [ 'A dot', 2, 'notes.echo', 5 ]");
    expect(content[1]).toEqual({ type: "image", data: "AAAA", mimeType: "image/png" });
    expect(content[2]?.text).toMatch(
      /^calls: notes\.add \d+ ms 0\.\d kB, notes\.echo .*, notes\.file .*, notes\.picture /,
    );
    expect(structuredContent.calls.map(({ tool }) => tool)).toEqual([
      "notes.add",
      "notes.echo",
      "notes.file",
      "notes.picture",
    ]);
  });

  it("throws a ToolError with the text of the tool, whose stack shows the code", async () => {
    const { run } = await start(notes());
    const caught = await run(`
      try { await tools.notes.fail({}) } catch (error) { [error instanceof ToolError, error.name, error.message, error.tool] }`);
    expect(caught.content[0]?.text).toContain("[ true, 'ToolError', 'It is locked', 'notes.fail' ]");
    expect(caught.structuredContent.calls).toMatchObject([{ tool: "notes.fail", isError: true }]);
    const thrown = await run("const work = async () => { await tools.notes.fail() };\nawait work()");
    expect(thrown.isError).toBe(true);
    expect(thrown.content[0]?.text).toMatch(/\[ERROR\] ToolError\nIt is locked[^]*work.*<eval 2>:1/);
  });
});
