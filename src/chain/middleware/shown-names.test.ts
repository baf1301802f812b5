// One thing in many words: what a filter hides stays hidden in all of them.

import { expect, it } from "vitest";
import { connect } from "../../client/connect.ts";
import { createServer } from "../../server/server.ts";
import { chain } from "../chain.ts";
import { filter } from "./filter.ts";
import { showing } from "./shown-names.ts";

it("hides a name with labels before it, however many", () => {
  const isShown = showing("tools", undefined, ["delete", "drop_*"]);
  for (const name of ["delete", "a.delete", "in.a.delete", "in.a.drop_all"]) expect(isShown(name)).toBe(false);
  for (const name of ["deleted", "undelete", "a.read", "delete.read", "drop-all-things-of-one-account"])
    expect(isShown(name)).toBe(true);
});

it("hides a name that merging has cut, at any depth, and shows other long ones", async () => {
  const long = "delete_everything_in_the_whole_production_database_and_its_backups";
  const other = "list_everything_in_the_whole_production_database_and_its_backups_";
  const notes = () =>
    createServer({ name: "n", version: "1" })
      .tool(long, {}, () => "gone")
      .tool(other, {}, () => "all");
  const inner = () => chain().to({ a: notes(), b: notes() });
  for (const glob of [long, "delete_*", "*_everything_in*backups"]) {
    const gateway = chain(filter({ tools: { not: [glob] } })).to({ in: inner(), out: inner() });
    const client = await connect(gateway);
    const names = (await client.listTools()).tools.map(({ name }) => name);
    await client.close();
    expect(names.filter((name) => name.includes("delete"))).toEqual([]);
    if (!glob.startsWith("*")) expect(names).toHaveLength(4);
  }
});

it("hides an address in every spelling", () => {
  const isShown = showing("resources", undefined, ["file:///secret.txt", "https://h/a%20b/*"]);
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
  for (const uri of hidden) expect([uri, isShown(uri)]).toEqual([uri, false]);
  for (const uri of ["file:///secret.txt.bak", "file:///x/secret.txt", "file:///%zz", "urn:x:y", ""]) {
    expect([uri, isShown(uri)]).toEqual([uri, true]);
  }
});

it("shows nothing that is elsewhere once its dots are followed", () => {
  const isShown = showing("resources", ["file:///public/*", "note://{id}"], []);
  for (const uri of ["file:///public/a", "file:///public/a%20b", "file:///public/x/../a", "note://1", "note://{id}"]) {
    expect([uri, isShown(uri)]).toEqual([uri, true]);
  }
  for (const uri of ["file:///public/../a", "file:///public/%2e%2e/a", "file:///public/x/../../a", "note://1/2"]) {
    expect([uri, isShown(uri)]).toEqual([uri, false]);
  }
});

it("hides what a hidden template makes", () => {
  const isShown = showing("resources", undefined, ["hid://{id}"]);
  for (const uri of ["hid://{id}", "hid://x", "a.hid://x"]) expect([uri, isShown(uri)]).toEqual([uri, false]);
  for (const uri of ["hid://x/y", "note://x"]) expect([uri, isShown(uri)]).toEqual([uri, true]);
});
