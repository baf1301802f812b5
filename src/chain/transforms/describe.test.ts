// What lists say after the changes, and that requests and results stay as they are.

import { expect, it } from "vitest";
import { fakeClient } from "../../../test/support/handlers/fake-client.ts";
import { connect } from "../../client/connect.ts";
import { createServer } from "../../server/server.ts";
import { chain } from "../chain.ts";
import { describe, type DescribeOptions } from "./describe.ts";
import { readOnly } from "./read-only.ts";

const inputSchema = {
  type: "object",
  properties: { text: { type: "string" }, any: true },
  required: ["text"],
} as const;

const notes = () =>
  createServer({ name: "notes", version: "1" })
    .tool("search", { description: "Old", input: inputSchema, annotations: { title: "T" } }, (given) =>
      JSON.stringify(given),
    )
    .tool("delete", {}, () => "deleted")
    .prompt("ask", { description: "Old", arguments: { what: { description: "Old" }, who: {} } }, () => "asked")
    .resource("note://1", { name: "one" }, () => "1")
    .template("note://{id}", { name: "all" }, ({ id }) => id);

async function listed(options: DescribeOptions) {
  const client = await connect(chain(describe(options)).to(notes()));
  const { tools } = await client.listTools();
  const { prompts } = await client.listPrompts();
  const { resources } = await client.listResources();
  const { resourceTemplates: templates } = await client.listResourceTemplates();
  return { client, tools, prompts, resources, templates };
}

it("changes titles, descriptions, annotations, icons and parameters, and nothing else", async () => {
  const icons = [{ src: "https://example.com/a.png" }];
  const { tools, prompts, resources, templates, client } = await listed({
    tools: {
      search: {
        title: "Search",
        description: "New",
        icons,
        annotations: { readOnlyHint: true },
        parameters: { text: "What to find", any: "Anything", none: "Ignored" },
      },
      none: { title: "Matches nothing" },
    },
    prompts: { ask: { description: "New", arguments: { what: "What to ask" } } },
    resources: {
      "note://1": { title: "One", mimeType: "text/plain", annotations: { priority: 1 } },
      "note://{id}": { description: "All notes" },
    },
  });
  expect(tools).toMatchObject([
    {
      name: "search",
      title: "Search",
      description: "New",
      icons,
      annotations: { title: "T", readOnlyHint: true },
      inputSchema: {
        properties: { text: { type: "string", description: "What to find" }, any: { description: "Anything" } },
        required: ["text"],
      },
    },
    { name: "delete" },
  ]);
  expect(tools[0]?.inputSchema["properties"]).not.toHaveProperty("none");
  expect(tools[1]).not.toHaveProperty("title");
  expect(prompts).toMatchObject([
    { description: "New", arguments: [{ name: "what", description: "What to ask" }, { name: "who" }] },
  ]);
  expect(resources).toMatchObject([
    { name: "one", title: "One", mimeType: "text/plain", annotations: { priority: 1 } },
  ]);
  expect(templates).toMatchObject([{ name: "all", description: "All notes" }]);
  expect(await client.callTool("search", { text: "a" })).toMatchObject({ content: [{ text: '{"text":"a"}' }] });
  await client.close();
});

it("replaces schemas, and passes arguments on unchanged", async () => {
  const own = { type: "object", properties: { q: { type: "string" } } };
  const output = { type: "object", properties: { n: { type: "number" } } };
  const { call } = fakeClient(
    chain(describe({ tools: { search: { inputSchema: own, outputSchema: output, parameters: { q: "Words" } } } })).to(
      async ({ method, params }) =>
        method === "tools/list"
          ? { tools: [{ name: "search", inputSchema }] }
          : { content: [], given: params["arguments"] },
    ),
  );
  expect(await call("tools/list")).toEqual({
    tools: [
      {
        name: "search",
        inputSchema: { type: "object", properties: { q: { type: "string", description: "Words" } } },
        outputSchema: output,
      },
    ],
  });
  expect(own).toEqual({ type: "object", properties: { q: { type: "string" } } });
  expect(await call("tools/call", { name: "search", arguments: { text: 1 } })).toMatchObject({ given: { text: 1 } });
});

it("applies all entries that match, the later ones last", async () => {
  const { tools, client } = await listed({
    tools: { "*": { title: "Any", description: "Any" }, "se*": { title: "Some" }, search: { description: "One" } },
  });
  expect(tools).toMatchObject([
    { title: "Some", description: "One" },
    { title: "Any", description: "Any" },
  ]);
  await client.close();
});

it("changes the description that a prompt brings along", async () => {
  const gateway = chain(describe({ prompts: { ask: { description: "New" } } })).to(async ({ params }) =>
    params["name"] === "bare" ? { messages: [] } : { messages: [], description: "Old" },
  );
  const { call } = fakeClient(gateway);
  expect(await call("prompts/get", { name: "ask" })).toEqual({ messages: [], description: "New" });
  expect(await call("prompts/get", { name: "other" })).toEqual({ messages: [], description: "Old" });
  expect(await call("prompts/get", { name: "bare" })).toEqual({ messages: [] });
});

it("corrects annotations for middleware before it", async () => {
  const correct = describe({ tools: { search: { annotations: { readOnlyHint: true } } } });
  const client = await connect(chain(readOnly(), correct).to(notes()));
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["search"]);
  await client.close();
});
