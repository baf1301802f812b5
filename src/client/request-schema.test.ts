// `client.request` with a schema: the result is checked, and has the type of the schema.

import { afterEach, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { NEWEST, NEWEST_SESSION } from "../protocol/revisions/index.ts";
import { createServer } from "../server/server.ts";
import { connectInMemory, type InMemoryConnection } from "../testing.ts";
import type { ListToolsResult } from "../protocol/model/index.ts";

const server = createServer({ name: "notes", version: "1.0.0" })
  .tool("echo", {}, () => "hi")
  .method("acme/search", ({ text }) => ({ found: 2, text }));

const open: InMemoryConnection[] = [];
const connected = async (revision = NEWEST.name) => {
  const connection = await connectInMemory(server, { revision });
  open.push(connection);
  return connection.client;
};

afterEach(async () => {
  for (const connection of open.splice(0)) await connection.close();
});

it.each([NEWEST.name, NEWEST_SESSION.name])("checks the result with a Standard Schema, in %s", async (revision) => {
  const client = await connected(revision);
  // A strict schema: the result is checked without what the protocol adds.
  const schema = z.strictObject({ found: z.number().transform(String), text: z.string() });
  const result = await client.request("acme/search", { text: "milk" }, schema);
  expectTypeOf(result).toEqualTypeOf<{ found: string; text: string }>();
  expect(result).toEqual({ found: "2", text: "milk" });
});

it("checks the result with a JSON Schema, and takes options after it", async () => {
  const client = await connected();
  const schema = {
    type: "object",
    properties: { found: { type: "integer" } },
    required: ["found"],
  } as const;
  const result = await client.request("acme/search", {}, schema, { timeoutMs: 60_000 });
  expectTypeOf(result).toEqualTypeOf<{ found: number }>();
  expect(result.found).toBe(2);
});

it("fails with the reason if the result does not fit", async () => {
  const client = await connected();
  const failure = { name: "ConnectionError", kind: "protocol", mayHaveRun: true };
  const asked = client.request("acme/search", { text: "milk" }, z.object({ found: z.string() }));
  await expect(asked).rejects.toMatchObject(failure);
  await expect(asked).rejects.toThrow(/answer to acme\/search does not fit the schema: found/);
  const plain = client.request("acme/search", {}, { type: "object", required: ["lost"] });
  await expect(plain).rejects.toThrow(/lost/);
});

it("refuses the bare fields of an object schema, and says how to wrap them", async () => {
  const client = await connected();
  const bare = client.request("acme/search", {}, { found: z.number() } as never);
  await expect(bare).rejects.toThrow("the values of `schema` are schemas of zod; wrap them: z.object({ ... })");
});

it("refuses a schema that it cannot use before anything is sent", async () => {
  const connection = await connectInMemory(server);
  open.push(connection);
  const before = connection.sent.length;
  const wrong = connection.client.request("acme/search", {}, { type: "object", properties: { found: z.number() } });
  await expect(wrong).rejects.toThrow("z.object({ ... })");
  expect(connection.sent.length).toBe(before);
});

it("still takes options, and refuses unknown ones", async () => {
  const client = await connected();
  const listed = await client.request("tools/list", {}, { timeoutMs: 60_000 });
  expectTypeOf(listed).toEqualTypeOf<ListToolsResult>();
  expect(listed.tools).toHaveLength(1);
  await expect(client.request("acme/search", {}, { timeoutMS: 1 } as never)).rejects.toThrow("timeoutMs");
});
