// Injected arguments reach the tool, callers neither see nor set them, and errors do not quote them. Headers over HTTP
// are tested in test/contract/chain/.

import { expect, it } from "vitest";
import { callRequest, fakeClient, fakeContext, textResult } from "../../../test/support/handlers/fake-client.ts";
import { connect } from "../../client/connect.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Context, Request, Result } from "../../core/handler.ts";
import { McpError, toMcpError } from "../../protocol/errors.ts";
import { createServer } from "../../server/server.ts";
import { chain } from "../chain.ts";
import { inject } from "./inject.ts";

const KEY = "sk-12345";

it("adds arguments, replaces those of the caller, and hides them", async () => {
  const input = {
    type: "object",
    properties: { words: { type: "string" }, apiKey: { type: "string" } },
    required: ["words", "apiKey"],
    additionalProperties: false,
  } as const;
  const server = createServer({ name: "web", version: "1" })
    .tool("search_web", { input }, (given) => JSON.stringify(given))
    .tool("other", { input }, (given) => JSON.stringify(given));
  const gateway = chain(inject({ tools: { "search*": { arguments: { apiKey: KEY } } } })).to(server);
  const client = await connect(gateway);
  const { tools } = await client.listTools();
  expect(tools[0]?.inputSchema).toMatchObject({ properties: { words: {} }, required: ["words"] });
  expect(tools[0]?.inputSchema["properties"]).not.toHaveProperty("apiKey");
  expect(tools[1]?.inputSchema).toMatchObject({ properties: { apiKey: {} }, required: ["words", "apiKey"] });
  for (const own of [{ words: "a" }, { words: "a", apiKey: "mine" }]) {
    expect(await client.callTool("search_web", own)).toMatchObject({
      content: [{ text: `{"words":"a","apiKey":"${KEY}"}` }],
    });
  }
  expect(await client.callTool("other", { words: "a", apiKey: "mine" })).toMatchObject({
    content: [{ text: '{"words":"a","apiKey":"mine"}' }],
  });
  await client.close();
  await gateway.close();
});

function start(options: Parameters<typeof inject>[0], answer: (request: Request, context: Context) => Result) {
  return fakeClient(chain(inject(options)).to(async (request, context) => answer(request, context)));
}

it("adds values of any type, also to a call without arguments; later entries win", async () => {
  const { call } = start(
    { tools: { "*": { arguments: { limit: 1, deep: { a: [1] } } }, a: { arguments: { limit: 2 } } } },
    ({ params }) => ({ content: [], given: params["arguments"] }),
  );
  expect(await call("tools/call", { name: "a" })).toMatchObject({ given: { limit: 2, deep: { a: [1] } } });
  expect(await call("tools/call", { name: "b", arguments: { deep: 1, own: 2 } })).toMatchObject({
    given: { limit: 1, deep: { a: [1] }, own: 2 },
  });
});

it("hides parameters in alternatives of a schema too, and leaves no empty `required`", async () => {
  const inputSchema = {
    type: "object",
    properties: { key: {}, id: {} },
    required: ["key"],
    anyOf: [{ required: ["key", "id"] }, { properties: { key: { const: 1 } } }, true],
  };
  const { call } = start({ tools: { a: { arguments: { key: 1 } } } }, () => ({ tools: [{ name: "a", inputSchema }] }));
  expect(await call("tools/list")).toEqual({
    tools: [
      {
        name: "a",
        inputSchema: {
          type: "object",
          properties: { id: {} },
          anyOf: [{ required: ["id"] }, { properties: {} }, true],
        },
      },
    ],
  });
});

it("does not change the request or the result of others", async () => {
  const request = callRequest("a", { own: 1 });
  const gateway = chain(inject({ tools: { a: { arguments: { key: KEY } } } })).to(async () => textResult(KEY));
  expect(await gateway(request, fakeContext().context)).toEqual(textResult(KEY));
  expect(request).toEqual(callRequest("a", { own: 1 }));
});

it.each([
  ["an error response", McpError.of("invalid_params", `Bad key ${KEY}`, { given: { apiKey: KEY } })],
  ["a failed connection", new ConnectionError("closed", `Lost: ${KEY}`, { cause: new Error(KEY) })],
])("removes the values from %s", async (_name, failure) => {
  const options = { tools: { a: { arguments: { auth: `Bearer ${KEY}` } } } };
  const { call } = start(options, () => {
    throw failure;
  });
  const error = await call("tools/call", { name: "a" }).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ kind: failure.kind, message: expect.stringContaining("...") });
  expect(JSON.stringify([String(error), error, (error as Error).cause])).not.toContain(KEY);
});

it("keeps the output of a program in an error apart, so that callers do not see it", async () => {
  const diagnostics = `; its stderr: login with ${KEY} failed for admin`;
  const exit = new ConnectionError("closed", "node exited", { diagnostics });
  for (const failure of [exit, exit.with({ problem: `The upstream a failed: ${exit.problem}` })]) {
    const { call } = start({ tools: { a: { arguments: { auth: KEY } } } }, () => {
      throw failure;
    });
    const error = (await call("tools/call", { name: "a" }).catch((thrown: unknown) => thrown)) as Error;
    expect(error.message).toContain("its stderr: login with ... failed for admin");
    expect(toMcpError(error).message).toMatch(/node exited$/);
  }
});

it("removes the values from tool errors, and passes other errors on as they are", async () => {
  const failure = McpError.of("invalid_params", "Nothing secret");
  const { call } = start({ tools: { a: { arguments: { key: KEY } } } }, ({ params }) => {
    if (params["other"] === true) throw failure;
    return { ...textResult(`No such key: ${KEY}`), isError: true };
  });
  expect(await call("tools/call", { name: "a" })).toMatchObject({ content: [{ text: "No such key: ..." }] });
  await expect(call("tools/call", { name: "a", other: true })).rejects.toBe(failure);
});

it("does not take the blame for the error of a server that quotes a value", async () => {
  const server = async (): Promise<Result> => {
    throw new Error(`no such key: ${KEY}`);
  };
  const gateway = chain(inject({ tools: { "*": { arguments: { apiKey: KEY } } } })).to(server);
  const error: unknown = await fakeClient(gateway)
    .call("tools/call", { name: "a" })
    .catch((thrown: unknown) => thrown);
  expect(String(error)).toContain("no such key");
  expect(String(error)).not.toContain(KEY);
  expect(String(error)).not.toContain("middleware");
});

it("removes the values from the errors of tasks", async () => {
  const failed: Result = { status: "failed", error: { code: -32000, message: `bad key ${KEY}` } };
  const unhappy: Result = { status: "completed", result: { isError: true, content: [{ type: "text", text: KEY }] } };
  const happy: Result = { status: "completed", result: { content: [{ type: "text", text: KEY }] } };
  const middleware = inject({ tools: { a: { arguments: { apiKey: KEY } } } });
  const get = (result: Result): Promise<Result> =>
    middleware({ method: "tasks/get", params: { taskId: "1" } }, fakeContext().context, async () => result);
  expect(await get(failed)).toEqual({ status: "failed", error: { code: -32000, message: "bad key ..." } });
  expect(JSON.stringify(await get(unhappy))).not.toContain(KEY);
  expect(await get(happy)).toBe(happy);
});

it("puts headers into the context: for all requests, and for calls of a tool", async () => {
  const { call } = start(
    { headers: { "X-Tenant": "acme" }, tools: { a: { headers: { "x-tenant": "other", "x-a": "1" } } } },
    (_request, { headers }) => ({ content: [], headers }),
  );
  expect(await call("tools/list")).toMatchObject({ headers: { "x-tenant": "acme" } });
  expect(await call("tools/call", { name: "b" })).toMatchObject({ headers: { "x-tenant": "acme" } });
  expect(await call("tools/call", { name: "a" })).toMatchObject({ headers: { "x-tenant": "other", "x-a": "1" } });
});
