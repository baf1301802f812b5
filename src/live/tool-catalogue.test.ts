// The names of tools in code: from the upstream and its own names, valid and unique.

import { expect, it } from "vitest";
import { fakeContext } from "../../test/support/handlers/fake-client.ts";
import { chain } from "../chain/chain.ts";
import { rename } from "../chain/transforms/rename.ts";
import { createServer, type Server } from "../server/server.ts";
import { type ListedTool } from "../tools/search.ts";
import { readTools } from "../tools/search-tools.ts";
import { ToolCatalogue } from "./tool-catalogue.ts";

function serverWith(...names: readonly string[]): Server {
  const server = createServer({ name: "sample", version: "1.0.0" });
  for (const name of names) server.tool(name, { description: `Does ${name}. And more.` }, () => name);
  return server;
}

const pathsOf = (tools: readonly ListedTool[], only?: string): string[] =>
  new ToolCatalogue(tools, only).entries.map(({ path, name }) => `${path} = ${name}`);

const upstream = (name: string, tool: string, own?: string): ListedTool => ({
  name: tool,
  _meta: { "catenary/upstream": name, ...(own !== undefined && { "catenary/names": [own] }) },
});

it("takes the upstream and the upstream's own name, however the gateway shows it", async () => {
  const gateway = chain(rename({ tools: { other: "renamed" } })).to({
    notes: serverWith("search", "other"),
    "big-mail": serverWith("search", "send-all", "a.b"),
  });
  const { tools } = await readTools(gateway, fakeContext().context);
  await gateway.close();
  expect(pathsOf(tools)).toEqual([
    "notes.search = notes_search",
    "notes.renamed = renamed",
    "big_mail.search = big-mail_search",
    "big_mail.send_all = send-all",
    expect.stringMatching(/^big_mail\.a_b = a_b-[0-9a-z]{7}$/),
  ]);
});

it("names the only upstream, whose tools do not say it", () => {
  expect(pathsOf([{ name: "search" }, { name: "read-all" }], "notes")).toEqual([
    "notes.search = search",
    "notes.read_all = read-all",
  ]);
  expect(pathsOf([{ name: "search" }, { name: "2nd" }, { name: "" }])).toEqual([
    "search_ = search",
    "_2nd = 2nd",
    "_ = ",
  ]);
});

it("makes paths unique, and none that a session needs itself", () => {
  const tools = [
    upstream("a", "x-y"),
    upstream("a", "x_y"),
    upstream("call", "a_then", "then"),
    upstream("then", "__proto__"),
    upstream("a", "chosen", "own"),
  ];
  expect(pathsOf(tools)).toEqual([
    "a.x_y = x-y",
    "a.x_y_2 = x_y",
    "call_.then_ = a_then",
    "then_.__proto___ = __proto__",
    "a.chosen = chosen",
  ]);
});

it("finds tools by path and by shown name, and searches them", async () => {
  const inputSchema = {
    type: "object",
    properties: { to: { type: "string" }, cc: { type: "array" } },
    required: ["to"],
  };
  const send = { ...upstream("mail", "mail_send", "send"), inputSchema, description: "Sends a mail. At once." };
  const catalogue = new ToolCatalogue([
    { ...send, annotations: { destructiveHint: true } },
    { ...upstream("notes", "list"), annotations: { destructiveHint: true, readOnlyHint: true } },
  ]);
  const [first, second] = catalogue.entries;
  for (const name of ["mail.send", "mail_send", "tools.mail.send"]) expect(catalogue.find(name)).toBe(first);
  expect(catalogue.find("send")).toBeUndefined();
  expect(first).toMatchObject({ summary: "Sends a mail.", isDestructive: true });
  expect(second).toMatchObject({ signature: "notes.list()", isDestructive: false });
  expect(await catalogue.search("send mail", 5)).toEqual({ found: [first], total: 1 });
  expect(first?.signature).toBe("mail.send({ to: string, cc?: any[] })");
});
