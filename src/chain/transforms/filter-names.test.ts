// The names that a filter matches: an item stays hidden under every name that reaches it.

import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { expect, it } from "vitest";
import { answerAs, scriptedServer, toolList } from "../../../test/support/handlers/scripted-server.ts";
import { runs } from "../../../test/support/thoroughness.ts";
import { connect } from "../../client/connect.ts";
import { createServer } from "../../server/server.ts";
import { chain } from "../chain.ts";
import { validName } from "../router/names.ts";
import { matchesGlob } from "../../core/text.ts";
import { filter } from "./filter.ts";
import { nameMatcher } from "./name-rules.ts";

it("hides an item by its shown name and by its names at the upstreams", () => {
  const isVisible = nameMatcher("tools", undefined, ["delete", "drop_*"]);
  expect([isVisible("delete"), isVisible("a_delete", ["delete"]), isVisible("x", ["a_x", "drop_x"])]).toEqual([
    false,
    false,
    false,
  ]);
  for (const name of ["deleted", "a_delete", "undelete", "drop-all"]) expect(isVisible(name)).toBe(true);
  expect(isVisible("a", [1, null, "b"])).toBe(true);
});

it("hides the tools and prompts of all upstreams, and only those that have the name", async () => {
  const server = (who: string) =>
    scriptedServer(
      {
        "tools/list": toolList("delete", "my tool!"),
        "tools/call": answerAs(who),
        "prompts/list": { prompts: [{ name: "secret" }] },
        "prompts/get": { messages: [] },
        "completion/complete": { completion: { values: ["secret"] } },
      },
      { tools: {}, prompts: {}, completions: {} },
    );
  const other = createServer({ name: "c", version: "1" }).tool("bulk_delete", {}, () => "c deletes");
  const rules = { tools: { exclude: ["delete", "my tool!"] }, prompts: { exclude: ["secret"] } };
  const inner = chain().to({ x: server("x"), y: server("y") });
  const gateway = chain(filter(rules)).to({ a: server("a"), b: server("b"), in: inner, other });
  const client = await connect(gateway);
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["bulk_delete"]);
  expect((await client.listPrompts()).prompts).toEqual([]);
  for (const name of ["delete", "a_delete", "b_delete", "in_x_delete", "x_delete", validName("my tool!")]) {
    await expect(client.callTool(name)).rejects.toMatchObject({ kind: "tool_not_found", data: { toolName: name } });
  }
  for (const name of ["secret", "a_secret", "in_y_secret"]) {
    await expect(client.getPrompt(name)).rejects.toMatchObject({ kind: "prompt_not_found" });
    const completing = client.complete({ type: "ref/prompt", name }, { name: "x", value: "" });
    await expect(completing).rejects.toThrow(`There is no prompt ${name} to complete`);
  }
  expect((await client.callTool("bulk_delete")).content).toMatchObject([{ text: "c deletes" }]);
  await client.close();
  await gateway.close();
});

it("hides a tool by its name with the upstream as a prefix, even if it is shown without", async () => {
  const notes = scriptedServer({ "tools/list": toolList("delete"), "tools/call": answerAs("notes") });
  const mail = scriptedServer({ "tools/list": toolList("send"), "tools/call": answerAs("mail") });
  const client = await connect(chain(filter({ tools: { exclude: ["notes_delete"] } })).to({ notes, mail }));
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["send"]);
  await expect(client.callTool("delete")).rejects.toMatchObject({ kind: "tool_not_found" });
  await client.close();
});

it("hides a name that a single upstream has and that is shown in another form", async () => {
  const server = scriptedServer({ "tools/list": toolList("my tool!"), "tools/call": answerAs("it") });
  const client = await connect(chain(filter({ tools: { exclude: ["my tool!"] } })).to(server));
  expect((await client.listTools()).tools).toEqual([]);
  await expect(client.callTool(validName("my tool!"))).rejects.toMatchObject({ kind: "tool_not_found" });
  await client.close();
});

it("hides a name that the router has shortened, at any depth, and shows other long names", async () => {
  const long = "delete_everything_in_the_whole_production_database_and_its_backups";
  const other = "list_everything_in_the_whole_production_database_and_its_backups_";
  const notes = () =>
    createServer({ name: "n", version: "1" })
      .tool(long, {}, () => "gone")
      .tool(other, {}, () => "all");
  const inner = () => chain().to({ a: notes(), b: notes() });
  for (const glob of [long, "delete_*", "*_everything_in*backups"]) {
    const gateway = chain(filter({ tools: { exclude: [glob] } })).to({ in: inner(), out: inner() });
    const client = await connect(gateway);
    const names = (await client.listTools()).tools.map(({ name }) => name);
    await client.close();
    expect(names.filter((name) => name.includes("delete"))).toEqual([]);
    if (!glob.startsWith("*")) expect(names).toHaveLength(4);
  }
});

it("hides every spelling of an address", () => {
  const isVisible = nameMatcher("resources", undefined, ["file:///secret.txt", "https://h/a%20b/*"]);
  const hidden = [
    "file:///secret.txt",
    "FILE:///secret.txt",
    "file://localhost/secret.txt",
    "file:///./secret.txt",
  ].concat(
    ["file:///x/../secret.txt", "file:///../secret.txt", "file:///%73ecret.txt", "file:///x/%2e%2e/secret.txt"],
    ["file:////secret.txt", "file:///secret.txt#x", "file:///secret.txt?x=1", "a.file:///secret.txt"],
    ["in.a.file:///./secret.txt", "https://h/a b/1", "https://H/a%20b/1", "https://h/x/../a%20b/1"],
  );
  for (const uri of hidden) expect([uri, isVisible(uri)]).toEqual([uri, false]);
  for (const uri of ["file:///secret.txt.bak", "file:///x/secret.txt", "file:///%zz", "urn:x:y", ""]) {
    expect([uri, isVisible(uri)]).toEqual([uri, true]);
  }
});

it("hides files whatever the case of their names, since disks may ignore it, and shows only the exact name", () => {
  const globs = ["file:///Secret/*", "file:///%53traße/{Name}", "file:///caf\u00e9", "*.PEM", "note:///Own"];
  const isUnhidden = nameMatcher("resources", undefined, globs);
  const hidden = ["file:///secret/x", "FILE:///%53ECRET/x", "a.file:///x/../sEcret/x", "file:///STRASSE/x"].concat([
    "file:///\u017fecret/x",
    "file:///cafe\u0301",
    "file:///CAF%C3%89",
    "file:///key.pem",
  ]);
  for (const uri of hidden) expect([uri, isUnhidden(uri)]).toEqual([uri, false]);
  for (const uri of ["note:///own", "file:///secretx", "https://h/key.pem"]) {
    expect([uri, isUnhidden(uri)]).toEqual([uri, true]);
  }
  const isShown = nameMatcher("resources", ["file:///Public/*"], []);
  expect([isShown("file:///Public/x"), isShown("file:///public/x")]).toEqual([true, false]);
});

it("hides addresses whose dot segments lead outside of what is shown", () => {
  const isVisible = nameMatcher("resources", ["file:///public/*", "note://{id}"], []);
  for (const uri of ["file:///public/a", "file:///public/a%20b", "file:///public/x/../a", "note://1", "note://{id}"]) {
    expect([uri, isVisible(uri)]).toEqual([uri, true]);
  }
  for (const uri of ["file:///public/../a", "file:///public/%2e%2e/a", "file:///public/x/../../a", "note://1/2"]) {
    expect([uri, isVisible(uri)]).toEqual([uri, false]);
  }
});

it("understands addresses as Node does", () => {
  const isUnhidden = nameMatcher("resources", undefined, ["file:///secret/*"]);
  const isShown = nameMatcher("resources", ["file:///public/*"], []);
  const schemes = ["file:", "FILE:", " file:", "fi\tle:", "file:///public", "file://localhost", "file:\\\\\\"];
  const pieces = ["/", "//", "\\", "..", ".", "%2e", ".%2E", "%FF", "%C3%A9", "%25", "secret", "%73ecret", "public"];
  const parts = fc.array(fc.constantFrom(...pieces, "/", "/../", "/secret/", "/x", "\n", "%5c"), { maxLength: 12 });
  fc.assert(
    fc.property(fc.constantFrom(...schemes), parts, (scheme, path) => {
      const uri = scheme + path.join("");
      let file: string;
      try {
        file = fileURLToPath(uri).replaceAll(/\/+/g, "/");
      } catch {
        return;
      }
      if (file.startsWith("/secret/")) expect(isUnhidden(uri), uri).toBe(false);
      if (!file.startsWith("/public/")) expect(isShown(uri), uri).toBe(false);
    }),
    { numRuns: runs(20_000) },
  );
});

it.each([
  ...["file:///public/%FF/%2e%2e/%2e%2e/secret/x", "file:///public/.\t./secret/x", "file:///public/..\\secret/x"],
  ...["file:/secret/x", " file:///secret/x", "fi\tle:///secret/x", "file:\\\\\\secret/x", "file:///%73ecret/%FF/../x"],
  ...["file:///public/..//secret//../x", "a.file:/secret/x"],
])("hides %j", (uri) => {
  expect(nameMatcher("resources", undefined, ["file:///secret/*"])(uri)).toBe(false);
  expect(nameMatcher("resources", ["file:///public/*"], [])(uri)).toBe(false);
});

it("hides the addresses of a hidden template", () => {
  const isVisible = nameMatcher("resources", undefined, ["hid://{id}"]);
  for (const uri of ["hid://{id}", "hid://x", "a.hid://x"]) expect([uri, isVisible(uri)]).toEqual([uri, false]);
  for (const uri of ["hid://x/y", "note://x"]) expect([uri, isVisible(uri)]).toEqual([uri, true]);
});

it.each([
  ["abc", "abc", true],
  ["abc", "abcd", false],
  ["", "", true],
  ["*", "", true],
  ["*", "anything/at.all", true],
  ["read_*", "read_", true],
  ["read_*", "unread_x", false],
  ["*_note", "read_note", true],
  ["a*a", "a", false],
  ["a*a", "aa", true],
  ["a*b*c", "a-b-b-c", true],
  ["a*b*c", "a-c-b", false],
  ["a*b*b", "ab", false],
  ["**x**", "x", true],
  ["file:///*.txt", "file:///a/b.txt", true],
  ["a?c", "abc", false],
  ["a.c", "abc", false],
])("glob %s, name %s: %s", (glob, name, expected) => {
  expect(matchesGlob(glob, name)).toBe(expected);
});

it("matches in time linear in the length of the name", () => {
  const glob = `${"a*".repeat(50)}b`;
  expect(matchesGlob(glob, "a".repeat(100_000))).toBe(false);
});
