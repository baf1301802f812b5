// The resources and prompts of Smalltalk sessions, read and completed in the session `main`, on Amber.

import { afterAll, beforeAll, expect, it } from "vitest";
import { connect, type Client } from "../../../src/client/index.ts";
import { smalltalk } from "../../../src/live/index.ts";

const server = smalltalk();
let client: Client;

beforeAll(async () => {
  client = await connect(server);
  const define = { name: "Account", "instance-variables": "balance", package: "Bank", comment: "I hold money." };
  await client.callTool("define-class", define);
  await client.callTool("compile-method", { class: "Account", source: "deposit: aNumber ^ aNumber" });
  await client.callTool("compile-method", { class: "Account", source: "/ aNumber ^ 3" });
});

afterAll(async () => {
  await client.close();
  await server.close();
});

async function read(uri: string): Promise<string> {
  const { contents } = await client.readResource(uri);
  return contents.map((one) => ("text" in one ? one.text : "")).join("\n");
}

async function complete(
  uri: string,
  name: string,
  value: string,
  others: Record<string, string> = {},
): Promise<readonly string[]> {
  const ref = { type: "ref/resource", uri } as const;
  return (await client.complete(ref, { name, value }, { arguments: others })).completion.values;
}

it("resources of Smalltalk sessions name the engine", async () => {
  expect(await read("pharo://system/version")).toMatch(/^Amber \d/);
});

it("resources of Smalltalk sessions describe a class", async () => {
  expect(JSON.parse(await read("pharo://class/Account"))).toEqual({
    name: "Account",
    superclass: "Object",
    instanceVariables: ["balance"],
    methods: ["/", "deposit:"],
    classMethods: [],
    comment: "I hold money.",
    package: "Bank",
  });
});

it.each([
  ["pharo://method/Account/deposit:", "deposit: aNumber ^ aNumber"],
  ["pharo://method/Account/deposit%3A", "deposit: aNumber ^ aNumber"],
  ["pharo://method/Account/%2F", "/ aNumber ^ 3"],
])("resources of Smalltalk sessions show the source of a method at %s", async (uri, source) => {
  expect(await read(uri)).toBe(source);
});

it.each([
  ["pharo://class/Nowhere", "There is no class Nowhere"],
  ["pharo://method/Account/zork", "Account has no method #zork"],
  ["pharo://nothing", "not found"],
])("resources of Smalltalk sessions do not have %s", async (uri, message) => {
  await expect(read(uri)).rejects.toThrow(message);
});

it("resources of Smalltalk sessions complete from the session", async () => {
  expect(await complete("pharo://class/{className}", "className", "acc")).toEqual(["Account"]);
  const template = "pharo://method/{className}/{selector}";
  expect(await complete(template, "selector", "dep", { className: "Account" })).toEqual(["deposit:"]);
  expect(await complete(template, "selector", "dep", { className: "Nowhere" })).toEqual([]);
});

it("prompts of Smalltalk sessions are about a class or a method", async () => {
  const { prompts } = await client.listPrompts();
  expect(prompts.map(({ name }) => name)).toEqual(["review-class", "explain-method", "write-tests"]);
  const { messages } = await client.getPrompt("review-class", { className: "Account" });
  expect(messages).toEqual([{ role: "user", content: { type: "text", text: "Please review the class Account." } }]);
  const ref = { type: "ref/prompt", name: "review-class" } as const;
  const { completion } = await client.complete(ref, { name: "className", value: "Acc" });
  expect(completion.values).toEqual(["Account"]);
});
