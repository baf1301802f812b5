// Hidden items are hidden everywhere, and answered like items that do not exist.

import { expect, it } from "vitest";
import { fakeContext } from "../../../test/support/handlers/fake-client.ts";
import { connect } from "../../client/connect.ts";
import type { Request } from "../../core/handler.ts";
import { createServer } from "../../server/server.ts";
import { chain } from "../chain.ts";
import { filter, type FilterOptions } from "./filter.ts";

const notes = () =>
  createServer({ name: "notes", version: "1" })
    .tool("read_note", { description: "Reads" }, () => "read")
    .tool("write_note", { description: "Writes" }, () => "written")
    .tool("read_secret", { description: "Reads a secret" }, () => "secret")
    .prompt("public", { arguments: { what: { complete: () => ["this"] } } }, () => "public")
    .prompt("private", { arguments: { what: {} } }, () => "private")
    .resource("note://open/1", { name: "one" }, () => "1")
    .resource("note://shut/2", { name: "two" }, () => "2")
    .template("note://open/{id}", { name: "open" }, ({ id }) => id)
    .template("note://shut/{id}", { name: "shut" }, ({ id }) => id);

const options: FilterOptions = {
  tools: { include: ["read_*"], exclude: ["*secret*"] },
  prompts: { exclude: ["private"] },
  resources: { include: ["note://open/*"] },
};

it("leaves hidden items out of lists, and nothing else", async () => {
  const client = await connect(chain(filter(options)).to(notes()));
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["read_note"]);
  expect((await client.listPrompts()).prompts.map(({ name }) => name)).toEqual(["public"]);
  expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(["note://open/1"]);
  const { resourceTemplates } = await client.listResourceTemplates();
  expect(resourceTemplates.map(({ name }) => name)).toEqual(["open"]);
  await client.close();
});

it("answers for a hidden item as for one that does not exist", async () => {
  const server = notes();
  const hidden = chain(filter(options)).to(server);
  const without = notes();
  for (const name of ["write_note", "read_secret"]) without.removeTool(name);
  without.removePrompt("private");
  without.removeResource("note://shut/2");
  without.removeTemplate("note://shut/{id}");
  const requests: Request[] = [
    { method: "tools/call", params: { name: "write_note" } },
    { method: "tools/call", params: { name: "read_secret" } },
    { method: "prompts/get", params: { name: "private" } },
    { method: "resources/read", params: { uri: "note://shut/2" } },
    {
      method: "completion/complete",
      params: { ref: { type: "ref/prompt", name: "private" }, argument: { name: "what", value: "" } },
    },
    {
      method: "completion/complete",
      params: { ref: { type: "ref/resource", uri: "note://shut/{id}" }, argument: { name: "id", value: "" } },
    },
  ];
  for (const request of requests) {
    const failures = await Promise.all(
      [hidden, without].map((handler) => handler(request, fakeContext().context).catch((error: unknown) => error)),
    );
    const [of, as] = failures as { code: number; message: string; data: unknown }[];
    expect([of?.code, of?.message, of?.data]).toEqual([as?.code, as?.message, as?.data]);
    expect(as?.code).toBe(-32602);
  }
});

it("hides what a template in `exclude` matches, and URIs that are too long to match one", async () => {
  const anything = async () => ({ contents: [] });
  const hidden = chain(filter({ resources: { exclude: ["note://shut/{+id}"] } })).to(anything);
  const read = (uri: string) => hidden({ method: "resources/read", params: { uri } }, fakeContext().context);
  await expect(read("note://shut/a/b")).rejects.toThrow();
  await expect(read(`note://shut/${"a".repeat(70_000)}`)).rejects.toThrow();
  expect(await read("note://open/a")).toEqual({ contents: [] });
});

it("hides a URI below up to 16 labels, and every URI with more of them", async () => {
  const anything = async () => ({ contents: [] });
  const hidden = chain(filter({ resources: { exclude: ["note://shut/*"] } })).to(anything);
  const read = (uri: string) => hidden({ method: "resources/read", params: { uri } }, fakeContext().context);
  for (const count of [0, 1, 16]) {
    const labels = "a.".repeat(count);
    await expect(read(`${labels}note://shut/1`)).rejects.toThrow("Resource not found");
    expect(await read(`${labels}note://open/1`)).toEqual({ contents: [] });
  }
  await expect(read(`${"a.".repeat(17)}note://open/1`)).rejects.toThrow("Resource not found");
});

it("passes requests for visible items", async () => {
  const client = await connect(chain(filter(options)).to(notes()));
  expect(await client.callTool("read_note")).toMatchObject({ content: [{ text: "read" }] });
  expect(await client.readResource("note://open/7")).toMatchObject({
    contents: [{ text: expect.anything() as string }],
  });
  await client.getPrompt("public");
  await client.close();
});

it("grants no subscription to hidden resources, and passes no updates of them", async () => {
  const server = notes();
  const client = await connect(chain(filter(options)).to(server));
  const received: unknown[] = [];
  const both = { resourceSubscriptions: ["note://open/1", "note://shut/2"] };
  const listening = await client.listen(both, ({ params }) => received.push(params?.["uri"]));
  expect(listening.granted.resourceSubscriptions).toEqual(["note://open/1"]);
  server.resourceUpdated("note://shut/2");
  server.resourceUpdated("note://open/1");
  await expect.poll(() => received).toEqual(["note://open/1"]);
  await client.close();
  const caller = fakeContext();
  const below = chain(filter(options)).to(async (_request, context) => {
    for (const uri of ["note://open/1", "note://shut/2"]) {
      context.notify({ method: "notifications/resources/updated", params: { uri } });
    }
    return { resultType: "complete" };
  });
  await below({ method: "subscriptions/listen", params: { notifications: both } }, caller.context);
  expect(caller.notifications.map(({ params }) => params?.["uri"])).toEqual(["note://open/1"]);
});

it("keeps the cursor of a page that becomes empty", async () => {
  const page = { resultType: "complete", tools: [{ name: "a" }], nextCursor: "2" };
  const gateway = chain(filter({ tools: { include: [] } })).to(async () => page);
  const result = await gateway({ method: "tools/list", params: {} }, fakeContext().context);
  expect(result).toEqual({ resultType: "complete", tools: [], nextCursor: "2" });
});

it("refuses empty and unknown options", () => {
  expect(() => filter(undefined as never)).toThrow("filter: must have a rule for");
  expect(() => filter({})).toThrow("filter: must have a rule for");
  expect(() => filter({ tools: ["a"] } as never)).toThrow(
    "filter: `tools` must be an object with `include`, `exclude`",
  );
  expect(() => filter({ tools: { inclde: [] } } as never)).toThrow(
    "`tools.inclde` is not an option; did you mean `include`?",
  );
  expect(() => filter({ tools: { include: "a" } } as never)).toThrow(
    "`tools.include` must be an array of non-empty strings",
  );
});

it("hides a name at all upstreams, with and without a label", async () => {
  const hides = filter({ tools: { exclude: ["read_secret"] }, resources: { exclude: ["note://shut/*"] } });
  const alone = createServer({ name: "alone", version: "1" }).tool("own", {}, () => "own");
  for (const upstreams of [
    { a: notes(), b: notes() },
    { a: notes(), b: alone },
  ]) {
    const client = await connect(chain(hides).to(upstreams));
    const names = (await client.listTools()).tools.map(({ name }) => name);
    expect(names.length).toBeGreaterThan(2);
    expect(names.filter((name) => name.includes("secret"))).toEqual([]);
    for (const name of ["read_secret", "a.read_secret", "b.read_secret"]) {
      const outcome = await client.callTool(name).then(JSON.stringify, String);
      expect(outcome).not.toContain('"secret"');
      expect(outcome).toMatch(/not found|unknown|hidden/i);
    }
    for (const uri of ["note://shut/2", "a.note://shut/2", "b.note://shut/2", "note://shut/3", "a.note://shut/3"]) {
      await expect(client.readResource(uri)).rejects.toThrow(/not found|unknown/i);
    }
    await client.close();
  }
});
