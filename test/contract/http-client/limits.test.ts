// The limit on the size of messages, and arguments that are also sent as headers (`x-mcp-header`).

import { expect, it } from "vitest";
import { errorResponse } from "../../support/faulty-server/faults.ts";
import type { Fault } from "../../support/faulty-server/server.ts";
import { expectHelpful, startAndConnect, LEGACY_SSE, outcome, STYLES, textOf } from "./fixture.ts";

it.each(["stateless", "stateless with SSE", "sessions", "sessions with JSON"])(
  "a message that is too long fails only its call, and the error names the limit (%s)",
  async (style) => {
    const { server, client } = await startAndConnect(STYLES[style], { limits: { messageBytes: 100_000 } });
    const { error } = await outcome(client.callTool("big", { key: "a", bytes: 200_000 }));
    expectHelpful(error);
    expect(error?.message).toContain("100000");
    expect(error).toMatchObject({ mayHaveRun: true });
    expect(server.backend.runCount("a")).toBe(1);
    expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
  },
);

it("a message that is too long breaks the stream of legacy HTTP+SSE, and another stream is opened", async () => {
  const { server, client } = await startAndConnect(LEGACY_SSE, { limits: { messageBytes: 100_000 } });
  const { error } = await outcome(client.callTool("big", { key: "a", bytes: 200_000 }));
  expectHelpful(error);
  expect(error).not.toMatchObject({ kind: "timeout" });
  expect(server.backend.runCount("a")).toBe(1);
  expect(textOf(await client.callTool("run", { key: "b" }))).toBe("ran b");
});

const schema = (name: string): object => ({
  type: "object",
  properties: {
    key: { type: "string", "x-mcp-header": name },
    many: { type: "integer", "x-mcp-header": "Many" },
    sure: { type: "boolean", "x-mcp-header": "Sure" },
    deep: { type: "object", properties: { place: { type: "string", "x-mcp-header": "Place" } } },
  },
});

/** A list of these tools only. */
const listing =
  (...tools: readonly object[]): Fault =>
  (request) =>
    request.answer(200, {
      jsonrpc: "2.0",
      id: request.json?.["id"],
      result: { resultType: "complete", tools, ttlMs: 0, cacheScope: "private" },
    });

it("arguments in headers are sent as the list of tools says, encoded for headers", async () => {
  const { server, client } = await startAndConnect({ style: "stateless" });
  server.inject("tools/list", listing({ name: "run", inputSchema: schema("Key") }));
  await client.listTools();
  await client.callTool("run", { key: "straße", many: 42, sure: false, deep: { place: " here " } });
  expect(server.requests.at(-1)?.headers).toMatchObject({
    "mcp-name": "run",
    "mcp-param-key": `=?base64?${Buffer.from("straße").toString("base64")}?=`,
    "mcp-param-many": "42",
    "mcp-param-sure": "false",
    "mcp-param-place": `=?base64?${Buffer.from(" here ").toString("base64")}?=`,
  });
  await client.callTool("run", { key: null });
  expect(Object.keys(server.requests.at(-1)?.headers ?? {}).filter((name) => name.startsWith("mcp-param"))).toEqual([]);
});

it("arguments in headers are not sent to a session-style server", async () => {
  const { server, client } = await startAndConnect(STYLES["sessions with JSON"]);
  server.inject(
    "tools/list",
    listing({ name: "run", inputSchema: schema("Key") }, { name: "odd", inputSchema: schema("") }),
  );
  expect((await client.listTools()).tools).toHaveLength(2);
  await client.callTool("run", { key: "a" });
  expect(server.requests.at(-1)?.headers["mcp-param-key"]).toBeUndefined();
});

it("arguments in headers that are declared incorrectly hide the tool, with a warning", async () => {
  const warnings: unknown[] = [];
  const { server, client } = await startAndConnect(
    { style: "stateless" },
    { onLog: ({ data }) => warnings.push(data) },
  );
  const wrong = ["", "with space", "Many", "line\nbreak"].map((name, n) => ({
    name: `odd${n}`,
    inputSchema: schema(name),
  }));
  server.inject("tools/list", listing(...wrong, { name: "run", inputSchema: schema("Key") }));
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["run"]);
  for (const { name } of wrong) expect(warnings.join("\n")).toContain(name);
});

it("arguments in headers are sent even if the client has not listed the tools", async () => {
  const { server, client } = await startAndConnect({ style: "stateless" });
  server.inject("tools/list", listing({ name: "run", inputSchema: schema("Key") }));
  expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
  expect(server.requests.at(-1)?.headers["mcp-param-key"]).toBe("a");
  await client.callTool("run", { key: "b" });
  expect(server.count("tools/list")).toBe(1);
});

it("arguments in headers that the server misses are looked up, and the call is sent once more", async () => {
  const { server, client } = await startAndConnect({ style: "stateless" });
  await client.listTools();
  const mismatch = errorResponse(400, { code: -32020, message: "Header mismatch: Mcp-Param-Key is missing" });
  server.inject("tools/call", mismatch);
  server.inject("tools/list", listing({ name: "run", inputSchema: schema("Key") }));
  expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
  expect(server.requests.at(-1)?.headers["mcp-param-key"]).toBe("a");
  expect(server.backend.runCount("a")).toBe(1);
  server.inject("tools/call", mismatch, 10);
  const { error } = await outcome(client.callTool("run", { key: "b" }));
  expect(error).toMatchObject({ kind: "protocol", mayHaveRun: false, cause: { code: -32020 } });
  expect(server.count("tools/call")).toBeLessThanOrEqual(4);
});
