// New names in both directions: callers use the names they see in lists, and results and notifications have them too.

import { expect, it } from "vitest";
import { callRequest, fakeContext, textResult } from "../../../test/support/handlers/fake-client.ts";
import { connect } from "../../client/connect.ts";
import type { Handler, Request, Result } from "../../core/handler.ts";
import { createServer } from "../../server/server.ts";
import { chain } from "../chain.ts";
import { rename, type RenameOptions } from "./rename.ts";

const notes = () =>
  createServer({ name: "notes", version: "1" })
    .tool("old", { description: "Says it", input: { type: "object" } }, () => "old was called")
    .tool("other", { description: "Another" }, () => [
      { type: "resource_link", uri: "file:///a.txt", name: "a" },
      { type: "resource", resource: { uri: "file:///b.txt", text: "b" } },
    ])
    .resource("file:///a.txt", { name: "a" }, () => "A")
    .template("file:///{path}", { name: "files", complete: { path: () => ["a.txt"] } }, ({ path }) => path)
    .prompt("review", { arguments: { what: { complete: () => ["this", "that"] } } }, () => [
      { role: "user", content: { type: "resource_link", uri: "file:///a.txt", name: "a" } },
    ]);

const options: RenameOptions = {
  tools: { old: "new", swap: "swapped" },
  prompts: { review: "look-over" },
  resources: { "file:///*": "notes:///*" },
  descriptions: { tools: { new: "Says it anew" }, resources: { "notes:///a.txt": "The first" } },
};

/** Sends requests through the middleware and records what reaches the upstream. */
function start(given: RenameOptions, answer: Result | Error = textResult("done")) {
  const sent: Request[] = [];
  const caller = fakeContext();
  const upstream: Handler = async (request) => {
    sent.push(request);
    if (answer instanceof Error) throw answer;
    return answer;
  };
  const gateway = chain(rename(given)).to(upstream);
  return { sent, caller, send: (request: Request) => gateway(request, caller.context) };
}

it("lists the new names and descriptions, and keeps the other fields", async () => {
  const client = await connect(chain(rename(options)).to(notes()));
  expect((await client.listTools()).tools).toMatchObject([
    { name: "new", description: "Says it anew", inputSchema: { type: "object" } },
    { name: "other", description: "Another" },
  ]);
  expect((await client.listPrompts()).prompts).toMatchObject([{ name: "look-over", arguments: [{ name: "what" }] }]);
  expect((await client.listResources()).resources).toMatchObject([{ uri: "notes:///a.txt", description: "The first" }]);
  const { resourceTemplates } = await client.listResourceTemplates();
  expect(resourceTemplates).toMatchObject([{ uriTemplate: "notes:///{path}", name: "files" }]);
  await client.close();
});

it("translates names in requests, and addresses in results", async () => {
  const client = await connect(chain(rename(options)).to(notes()));
  expect(await client.callTool("new")).toMatchObject({ content: [{ text: "old was called" }] });
  expect((await client.callTool("other")).content).toMatchObject([
    { uri: "notes:///a.txt" },
    { resource: { uri: "notes:///b.txt" } },
  ]);
  expect(await client.readResource("notes:///a.txt")).toMatchObject({
    contents: [{ uri: "notes:///a.txt", text: "A" }],
  });
  expect(await client.readResource("notes:///c")).toMatchObject({ contents: [{ uri: "notes:///c" }] });
  expect(await client.getPrompt("look-over")).toMatchObject({ messages: [{ content: { uri: "notes:///a.txt" } }] });
  const prompt = await client.complete({ type: "ref/prompt", name: "look-over" }, { name: "what", value: "" });
  expect(prompt.completion.values).toEqual(["this", "that"]);
  const path = await client.complete({ type: "ref/resource", uri: "notes:///{path}" }, { name: "path", value: "" });
  expect(path.completion.values).toEqual(["a.txt"]);
  await client.close();
});

it("does not find items by their old names", async () => {
  const client = await connect(chain(rename(options)).to(notes()));
  await expect(client.callTool("old")).rejects.toMatchObject({ kind: "tool_not_found", data: { toolName: "old" } });
  await expect(client.getPrompt("review")).rejects.toMatchObject({ kind: "prompt_not_found" });
  await expect(client.readResource("file:///a.txt")).rejects.toMatchObject({ kind: "resource_not_found" });
  const completing = client.complete({ type: "ref/prompt", name: "review" }, { name: "what", value: "" });
  await expect(completing).rejects.toThrow("There is no prompt review to complete");
  await client.close();
});

it("reports a missing item by the name that the caller used", async () => {
  const client = await connect(chain(rename(options)).to(notes()));
  await expect(client.callTool("swapped")).rejects.toMatchObject({ message: "Tool not found: swapped" });
  await client.close();
});

it("subscribes to the old addresses and notifies with the new ones", async () => {
  const server = notes();
  const client = await connect(chain(rename(options)).to(server));
  const received: unknown[] = [];
  const uris = ["notes:///a.txt", "file:///a.txt"];
  const listening = await client.listen({ resourceSubscriptions: uris }, ({ params }) =>
    received.push(params?.["uri"]),
  );
  expect(listening.granted.resourceSubscriptions).toEqual(["notes:///a.txt"]);
  server.resourceUpdated("file:///a.txt");
  await expect.poll(() => received).toEqual(["notes:///a.txt"]);
  await client.close();
});

it("a request or result changes only in the name", async () => {
  const { sent, send } = start(options);
  const request = Object.freeze({
    ...callRequest("new", { a: 1 }),
    params: Object.freeze({ name: "new", x: 1, y: [2] }),
  });
  await send(request);
  expect(sent).toEqual([{ method: "tools/call", params: { name: "old", x: 1, y: [2] } }]);
  await send(callRequest("other"));
  expect(sent[1]?.params["name"]).toBe("other");
});

it("a request or result keeps cursors and unknown values in a list", async () => {
  const tools = [{ name: "old", execution: {}, x: 1 }, "odd", { title: "nameless" }];
  const { send } = start({ tools: { old: "new" } }, { resultType: "complete", tools, nextCursor: "2", ttlMs: 5 });
  expect(await send({ method: "tools/list", params: {} })).toEqual({
    resultType: "complete",
    tools: [{ name: "new", execution: {}, x: 1 }, "odd", { title: "nameless" }],
    nextCursor: "2",
    ttlMs: 5,
  });
});

it("a request or result has the new addresses in the result of a task", async () => {
  const result = { content: [{ type: "resource_link", uri: "file:///a", name: "a" }] };
  const { send } = start(options, { taskId: "1", status: "completed", result });
  expect(await send({ method: "tasks/get", params: { taskId: "1" } })).toMatchObject({
    result: { content: [{ uri: "notes:///a" }] },
  });
});

it("colliding names may be swapped", async () => {
  const { sent, send } = start(
    { tools: { a: "b", b: "a" } },
    { resultType: "complete", tools: [{ name: "a" }, { name: "b" }] },
  );
  const { tools } = await send({ method: "tools/list", params: {} });
  expect(tools).toEqual([{ name: "b" }, { name: "a" }]);
  await send(callRequest("a"));
  expect(sent[1]?.params["name"]).toBe("b");
});

it("colliding names leave the new name to the renamed item, and show the other under its upstream", async () => {
  const notes = createServer({ name: "notes", version: "1" })
    .tool("q", {}, () => "notes")
    .prompt("p", {}, () => "notes");
  const evil = createServer({ name: "evil", version: "1" })
    .tool("search", {}, () => "evil")
    .tool("other", {}, () => "other")
    .prompt("ask", {}, () => "evil");
  const gateway = chain(rename({ tools: { q: "search" }, prompts: { p: "ask" } })).to({ evil, notes });
  const client = await connect(gateway);
  const [displaced = "", ...others] = (await client.listTools()).tools.map(({ name }) => name);
  expect(displaced).toMatch(/^evil_search-[a-z0-9]{7}$/);
  expect(others).toEqual(["other", "search"]);
  expect((await client.callTool("search")).content).toMatchObject([{ text: "notes" }]);
  expect((await client.callTool(displaced)).content).toMatchObject([{ text: "evil" }]);
  // Only the shown name works, not the same with another upstream or without one.
  for (const name of [displaced.replace("evil", "notes"), displaced.replace("evil_", "")]) {
    await expect(client.callTool(name)).rejects.toMatchObject({ kind: "tool_not_found", data: { toolName: name } });
  }
  const [prompt] = (await client.listPrompts()).prompts;
  expect(prompt?.name).toMatch(/^evil_ask-[a-z0-9]{7}$/);
  expect(await client.getPrompt(prompt?.name ?? "")).toMatchObject({ messages: [{ content: { text: "evil" } }] });
  expect(await client.getPrompt("ask")).toMatchObject({ messages: [{ content: { text: "notes" } }] });
  await client.close();
  await gateway.close();
});

it("colliding names of one upstream get a checksum; those of resources are hidden", async () => {
  const tools = [{ name: "new" }, { name: "old" }];
  const { sent, send } = start({ tools: { old: "new" } }, { resultType: "complete", tools });
  const listed = await send({ method: "tools/list", params: { cursor: "2" } });
  expect(listed["tools"]).toEqual([{ name: expect.stringMatching(/^new-[a-z0-9]{7}$/) as string }, { name: "new" }]);
  const [{ name }] = listed["tools"] as [{ name: string }];
  await send(callRequest(name));
  expect(sent.at(-1)?.params["name"]).toBe("new");
  // A tool that already has such a name would be called in place of the other, so it is hidden.
  const forged = start({ tools: { old: "new" } }, { resultType: "complete", tools: [{ name }] });
  expect((await forged.send({ method: "tools/list", params: {} }))["tools"]).toEqual([]);
  const uris = start({ resources: { "a://*": "b://*" } }, { resultType: "complete", resources: [{ uri: "b://x" }] });
  expect((await uris.send({ method: "resources/list", params: {} }))["resources"]).toEqual([]);
});

it("colliding names are refused if the options themselves collide", () => {
  expect(() => rename({ tools: { a: "c", b: "c" } })).toThrow('rename: `tools.a` and `b` cannot both become "c"');
  expect(() => rename({ resources: { "a://*": "b://" } })).toThrow("must end with `*` on both sides, or on neither");
  expect(() => rename({ tools: { a: 1 as never } })).toThrow("rename: `tools.a` must be a non-empty string");
  expect(() => rename({ tools: { a: "b.c" } })).toThrow(
    "rename: `tools.a` must become 1 to 64 letters, digits, _ and -",
  );
  expect(() => rename({ tool: {} } as never)).toThrow("rename: `tool` is not an option; did you mean `tools`?");
});
