// Completion of prompt arguments and template variables: which completer runs, with which arguments, and the limit on
// its values.

import { expect, it } from "vitest";
import { fakeClient } from "../../test/support/handlers/fake-client.ts";
import { META } from "../protocol/model/base.ts";
import { createServer } from "./server.ts";

const info = { name: "test", version: "1" };

const languages = ["go", "java", "javascript", "lisp"];
const server = createServer(info)
  .prompt(
    "write",
    {
      arguments: {
        language: { complete: (value) => languages.filter((name) => name.startsWith(value)) },
        style: { complete: async (_value, context) => [`like ${context.arguments["language"] ?? "nothing"}`] },
        topic: {},
      },
    },
    () => "x",
  )
  .template("n:{year}/{month}", { complete: { year: () => Array.from({ length: 250 }, (_, n) => `${n}`) } }, () => "x")
  .resource("n:now", {}, () => "x");

const prompt = { type: "ref/prompt", name: "write" };
const complete = (ref: object, name: string, value = "", context?: object) =>
  fakeClient(server).call("completion/complete", {
    ref,
    argument: { name, value },
    ...(context === undefined ? undefined : { context }),
  });

it("completions come from the completer of the argument", async () => {
  expect(await complete(prompt, "language", "ja")).toEqual({
    completion: { values: ["java", "javascript"], total: 2, hasMore: false },
    resultType: "complete",
    _meta: { [META.serverInfo]: info },
  });
});

it("completions get the arguments chosen so far", async () => {
  const chosen = await complete(prompt, "style", "", { arguments: { language: "lisp" } });
  expect(chosen).toMatchObject({ completion: { values: ["like lisp"] } });
  expect(await complete(prompt, "style")).toMatchObject({ completion: { values: ["like nothing"] } });
});

it("completions are limited to 100, with the total", async () => {
  const { completion } = await complete({ type: "ref/resource", uri: "n:{year}/{month}" }, "year");
  expect(completion).toMatchObject({ total: 250, hasMore: true });
  expect((completion as { values: string[] }).values).toHaveLength(100);
});

it("completions are empty for an argument without a completer", async () => {
  const none = { completion: { values: [], total: 0, hasMore: false } };
  expect(await complete(prompt, "topic")).toMatchObject(none);
  expect(await complete({ type: "ref/resource", uri: "n:{year}/{month}" }, "month")).toMatchObject(none);
});

it("completions refuse unknown references and arguments", async () => {
  const refused = (ref: object, name: string) =>
    fakeClient(server).callError("completion/complete", { ref, argument: { name, value: "" } });
  for (const ref of [
    { type: "ref/prompt", name: "nope" },
    { type: "ref/resource", uri: "n:{nope}" },
    { type: "ref/other", uri: "x:y" },
    { type: "ref/prompt" },
  ]) {
    expect((await refused(ref, "a")).kind).toBe("invalid_params");
  }
  expect((await refused(prompt, "constructor")).message).toBe("The prompt write has no argument constructor");
  expect((await refused({ type: "ref/resource", uri: "n:now" }, "a")).message).toContain("has no argument a");
});

it("completions that fail return protocol errors", async () => {
  const broken = createServer(info)
    .prompt("p", { arguments: { a: { complete: () => Promise.reject(new Error("no words")) } } }, () => "x")
    .template("t:{id}", { list: () => Promise.reject(new Error("no list")) }, () => "x");
  const ref = { type: "ref/prompt", name: "p" };
  const error = await fakeClient(broken).callError("completion/complete", {
    ref,
    argument: { name: "a", value: "" },
  });
  expect(error.toBody()).toEqual({ code: -32603, message: "no words", data: { kind: "internal_error" } });
  expect((await fakeClient(broken).callError("resources/list")).message).toBe("no list");
});

it("completions are declared only if there is a completer", async () => {
  const without = createServer(info)
    .prompt("p", { arguments: { a: {} } }, () => "x")
    .template("t:{constructor}", { complete: {} }, () => "x");
  expect(await fakeClient(without).call("server/discover")).not.toHaveProperty("capabilities.completions");
  expect((await fakeClient(without).callError("completion/complete")).kind).toBe("method_not_found");
  expect(await fakeClient(server).call("server/discover")).toHaveProperty("capabilities.completions", {});
});
