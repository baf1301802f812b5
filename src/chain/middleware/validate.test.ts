// Arguments and results that do not match the declared schemas.

import { afterEach, expect, it, vi } from "vitest";
import { fakeClient, textResult } from "../../../test/support/handlers/fake-client.ts";
import { scriptedServer } from "../../../test/support/handlers/scripted-server.ts";
import type { Handler, Result } from "../../core/handler.ts";
import { REVISIONS } from "../../protocol/revisions/index.ts";
import { createServer } from "../../server/server.ts";
import { chain } from "../chain.ts";
import { validate, type ValidateOptions } from "./validate.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

const INPUT = { type: "object", properties: { text: { type: "string" }, n: { type: "integer" } }, required: ["text"] };
const OUTPUT = { type: "object", properties: { sum: { type: "number" } }, required: ["sum"] };

function upstream(result: Result, tool: object = { inputSchema: INPUT, outputSchema: OUTPUT }) {
  return scriptedServer({ "tools/list": { tools: [{ name: "add", ...tool }] }, "tools/call": result });
}

const GOOD: Result = { content: [], structuredContent: { sum: 3 } };
const call = (options: ValidateOptions, handler: Handler, args: object = { text: "x" }) =>
  fakeClient(chain(validate(options)).to(handler)).call("tools/call", { name: "add", arguments: { ...args } });

it("refuses invalid arguments in the words of a server, and does not send them", async () => {
  const server = createServer({ name: "s", version: "1" }).tool("add", { input: INPUT }, () => "added");
  for (const args of [{}, { text: 1 }, { text: "x", n: 1.5 }]) {
    const behind = upstream(GOOD);
    const own = await fakeClient(server).call("tools/call", { name: "add", arguments: args });
    expect(await call({}, behind, args)).toMatchObject({ content: own["content"], isError: true });
    expect(behind.requests.map(({ method }) => method)).not.toContain("tools/call");
  }
  expect(await call({}, upstream(GOOD), { text: "x", n: 2, other: true })).toEqual(GOOD);
  expect(await call({ arguments: false }, upstream(GOOD), {})).toEqual(GOOD);
});

it("refuses invalid arguments with an error in the revisions that want one", async () => {
  const revision = REVISIONS.find(({ argumentErrors }) => argumentErrors)!.name;
  const { context } = fakeClient(async () => ({}));
  const middleware = validate();
  const refused = middleware(
    { method: "tools/call", params: { name: "add" } },
    { ...context, revision },
    upstream(GOOD),
  );
  await expect(refused).rejects.toMatchObject({
    kind: "invalid_params",
    message: "Invalid params for the tool add: text is required",
  });
});

it("refuses results that do not match the output schema, or warns once", async () => {
  const bad: Result = { content: [], structuredContent: { sum: "3" } };
  const message = "The result of the tool add does not match its output schema: sum: must be number";
  await expect(call({}, upstream(bad))).rejects.toMatchObject({ kind: "execution_failed", message });
  await expect(call({}, upstream(textResult("3")))).rejects.toThrow("structuredContent: is required");
  const warn = vi.spyOn(process, "emitWarning").mockReturnValue(undefined);
  for (let count = 0; count < 2; count += 1) expect(await call({ results: "warn" }, upstream(bad))).toEqual(bad);
  expect(warn.mock.calls).toEqual([[message]]);
  expect(await call({ results: "off" }, upstream(bad))).toEqual(bad);
});

it("checks no results that are errors, questions or tasks, and the results of tasks later", async () => {
  for (const result of [
    { ...textResult("no"), isError: true },
    { resultType: "input_required", inputRequests: {} },
  ]) {
    expect(await call({}, upstream(result))).toEqual(result);
  }
  const handler: Handler = async ({ method }) => {
    if (method === "tools/list") return { tools: [{ name: "add", inputSchema: INPUT, outputSchema: OUTPUT }] };
    if (method === "tools/call") return { resultType: "task", taskId: "t1" };
    return { status: "completed", result: { content: [], structuredContent: { sum: "3" } } };
  };
  const client = fakeClient((request, context) => middleware(request, context, handler));
  const middleware = validate();
  await client.call("tools/call", { name: "add", arguments: { text: "x" } });
  const error = await client.callError("tasks/get", { taskId: "t1" });
  expect(error.message).toContain("The result of the tool add does not match its output schema");
  await client.call("tasks/get", { taskId: "other" });
});

it("passes tools that are not listed, and reads the list once", async () => {
  const behind = upstream(GOOD);
  const middleware = validate();
  const client = fakeClient((request, context) => middleware(request, context, behind));
  for (let count = 0; count < 3; count += 1) await client.call("tools/call", { name: "add", arguments: { text: "x" } });
  await client.call("tools/call", { name: "unlisted" });
  expect(behind.requests.filter(({ method }) => method === "tools/list")).toHaveLength(1);
});

it("follows a changed list", async () => {
  let inputSchema: object = INPUT;
  const handler: Handler = async ({ method }, { notify }) => {
    if (method === "subscriptions/listen") notify({ method: "notifications/tools/list_changed" });
    return method === "tools/list" ? { tools: [{ name: "add", inputSchema }] } : textResult("done");
  };
  const middleware = validate();
  const client = fakeClient((request, context) => middleware(request, context, handler));
  expect(await client.call("tools/call", { name: "add" })).toMatchObject({ isError: true });
  inputSchema = { type: "object" };
  await client.call("subscriptions/listen", { notifications: { toolsListChanged: true } });
  expect(await client.call("tools/call", { name: "add" })).toEqual(textResult("done"));
});

it("does not check patterns, which could take minutes, nor what depends on them", async () => {
  const pattern = "^(a+)+$";
  const inputSchema = {
    type: "object",
    properties: { a: { type: "string", pattern }, pattern: { type: "number" } },
    patternProperties: { "^x": { type: "number" } },
    additionalProperties: false,
    dependentRequired: { pattern: ["a"] },
  };
  const behind = () => upstream(textResult("done"), { inputSchema });
  expect(await call({}, behind(), { a: `${"a".repeat(50)}!`, x1: "?" })).toEqual(textResult("done"));
  expect(await call({}, behind(), { a: "a", pattern: 1 })).toEqual(textResult("done"));
  for (const args of [{ a: "a", pattern: "no" }, { pattern: 1 }]) {
    expect(await call({}, behind(), args)).toMatchObject({ isError: true });
  }
});

it("passes calls of a tool whose schema cannot be used, with one warning", async () => {
  const warn = vi.spyOn(process, "emitWarning").mockReturnValue(undefined);
  for (const inputSchema of [{ $ref: "https://example.org/x" }, { $schema: "urn:unknown", type: "object" }]) {
    expect(await call({}, upstream(textResult("done"), { inputSchema }))).toEqual(textResult("done"));
  }
  expect(warn).toHaveBeenCalledTimes(2);
  expect(String(warn.mock.calls[0]?.[0])).toContain("The input schema of the tool add cannot be used");
});
