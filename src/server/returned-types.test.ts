// What the compiler refuses of what handlers return. The comments with `@ts-expect-error` are checked by the compiler,
// and the tests show that the server refuses the same.

import { expect, it } from "vitest";
import { connect } from "../client/connect.ts";
import { z } from "zod";
import { createServer, defineTool } from "./index.ts";

const info = { name: "test", version: "1" };
const texts = ["a", "b"];
const isLate = texts.length > 5;
interface Note {
  readonly title: string;
  readonly content: string;
}
const note: Note = { title: "a", content: "b" };

it("accepts every result that can be sent", async () => {
  const server = createServer(info)
    .tool("string", {}, () => "x")
    .tool("number", {}, async () => 1)
    .tool("nothing", {}, () => {})
    .tool("later", {}, async () => {})
    .tool("unknown", {}, async () => JSON.parse("[]") as unknown)
    .tool("record", {}, (args): Record<string, unknown> => args)
    .tool("note", {}, () => note)
    .tool("notes", {}, async () => [note])
    .tool("data", {}, () => [{ type: "note" }, 3])
    .tool("block", {}, () => [{ type: "text", text: "x" }])
    .tool("blocks", {}, () => [
      { type: "audio", data: "x", mimeType: "a/b" },
      { type: "text", text: "x" },
    ])
    .tool("whole", {}, async () => ({ content: [{ type: "text", text: "x" }], isError: false, more: 1 }))
    .tool("empty", {}, () => ({ content: [] }))
    .tool("none", {}, () => [])
    .tool("animals", {}, () => [{ type: "dog", text: "x" }])
    .tool("events", {}, async () => [{ type: "test", at: 1 }, { type: "step" }])
    .tool("records", {}, () => texts.map((type) => ({ type, text: "x" })))
    .tool("mapped", {}, async () => ({ content: texts.map((text) => ({ type: "text", text })) }))
    .tool("either", {}, () => (isLate ? "x" : { content: [{ type: "resource_link", uri: "a:b" }] }))
    .tool("returns", {}, ({ a }) => {
      if (a === 1) return "x";
      return { content: [{ type: "resource", resource: { uri: "a:b", text: "x" } }] };
    })
    .tool("variable", { input: z.object({ a: z.number().optional() }) }, ({ a }) => {
      const whole = { content: [{ type: "text", text: String(a) }] };
      return whole;
    })
    .tool("checked", { output: z.object({ list: z.array(z.string()) }) }, () => ({ list: ["a"] }));
  await using client = await connect(server);
  const names = (await client.listTools()).tools.map(({ name }) => name);
  const results = await Promise.all(names.map((name) => client.callTool(name as never)));
  expect(results.map(({ isError }) => isError)).toEqual(names.map(() => false));
});

it("refuses wrong content blocks of tools", async () => {
  const server = createServer(info)
    // @ts-expect-error -- no such type of block
    .tool("type", {}, () => ({ content: [{ type: "txt", text: "x" }] }))
    // @ts-expect-error -- no such type of block
    .tool("later", {}, async () => ({ content: [{ type: "txt", text: "x" }] }))
    // @ts-expect-error -- no such type of block
    .tool("mapped", {}, () => ({ content: texts.map((text) => ({ type: "txt", text })) }))
    // @ts-expect-error -- an image without data
    .tool("image", {}, ({ a }) => {
      if (a === 1) return "x";
      return { content: [{ type: "image", mimeType: "image/png" }] };
    })
    // @ts-expect-error -- a resource without text
    .tool("resource", {}, () => ({ content: [{ type: "resource", resource: { uri: "a:b" } }] }))
    // @ts-expect-error -- no such type of block, in a bare array
    .tool("bare", {}, () => [{ type: "txt", text: "x" }])
    // @ts-expect-error -- no such type of block, in a bare array
    .tool("capital", {}, async () => texts.map((text) => ({ type: "Text" as const, text })))
    // @ts-expect-error -- a bare array with a block without text
    .tool("fields", {}, () => [{ type: "text", txt: "x" }])
    // @ts-expect-error -- one of two blocks
    .tool("one", {}, () => [
      { type: "text", text: "x" },
      { type: "audio", data: "x" },
    ])
    // @ts-expect-error -- not an array
    .tool("content", {}, () => ({ content: "x" }))
    // @ts-expect-error -- not a block
    .tool("strings", {}, () => ({ content: ["x"], isError: true }))
    .tools([
      // @ts-expect-error -- no such type of block
      defineTool({ name: "defined", handler: () => ({ content: [{ type: "txt", text: "x" }] }) }),
    ]);
  await using client = await connect(server, { onError: () => undefined });
  const names = (await client.listTools()).tools.map(({ name }) => name);
  const results = await Promise.all(names.map((name) => client.callTool(name as never)));
  expect(results.map(({ isError }) => isError)).toEqual(names.map(() => true));
});

it("refuses wrong contents of resources and wrong messages of prompts", async () => {
  const server = createServer(info)
    .resource("a:string", {}, () => "x")
    .resource("a:note", {}, async () => ({ ...note, contents: [{ uri: "a:b" }] }))
    .resource("a:whole", {}, () => ({ contents: [{ uri: "a:b", text: "x" }] }))
    .template("t:{id}", {}, ({ id }) => ({ contents: [{ uri: `t:${id.toUpperCase()}`, blob: "eA==" }], _meta: {} }))
    // @ts-expect-error -- contents without text
    .resource("b:text", {}, () => ({ contents: [{ uri: "a:b" }] }))
    // @ts-expect-error -- text that is not a string
    .template("b:{id}", {}, async ({ id }) => ({ contents: [{ uri: id, text: 1 }] }))
    // @ts-expect-error -- no such type of block
    .prompt("type", {}, () => [{ role: "user", content: { type: "txt", text: "x" } }])
    // @ts-expect-error -- no such role
    .prompt("role", {}, () => ({ messages: [{ role: "system", content: { type: "text", text: "x" } }] }));
  await using client = await connect(server, { onError: () => undefined });
  for (const uri of ["a:string", "a:note", "a:whole", "t:a"]) {
    expect((await client.readResource(uri)).contents).toHaveLength(1);
  }
  for (const uri of ["b:text", "b:other"]) await expect(client.readResource(uri)).rejects.toThrow("returned");
  for (const name of ["type", "role"]) await expect(client.getPrompt(name)).rejects.toThrow("returned");
});
