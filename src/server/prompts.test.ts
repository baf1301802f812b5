// Prompts: list, return values of handlers, invalid arguments, and the types of arguments.

import { expect, expectTypeOf, it } from "vitest";
import { fakeClient, withParamsCheck } from "../../test/support/handlers/fake-client.ts";
import { META } from "../protocol/model/base.ts";
import { createServer } from "./server.ts";

const info = { name: "test", version: "1" };
const serverMeta = { [META.serverInfo]: info };

it("prompts are listed with their arguments as an array", async () => {
  const server = createServer(info)
    .prompt("bare", {}, () => "x")
    .prompt(
      "full",
      {
        title: "Full",
        description: "All",
        arguments: { one: { required: true, description: "first" }, two: { title: "Two" } },
        icons: [{ src: "https://example.com/i.png" }],
        _meta: { k: 1 },
      },
      () => "x",
    );
  expect(await fakeClient(server).call("prompts/list")).toEqual({
    prompts: [
      { name: "bare" },
      {
        name: "full",
        title: "Full",
        description: "All",
        arguments: [
          { name: "one", description: "first", required: true },
          { name: "two", title: "Two" },
        ],
        icons: [{ src: "https://example.com/i.png" }],
        _meta: { k: 1 },
      },
    ],
    ttlMs: 0,
    cacheScope: "private",
    resultType: "complete",
    _meta: serverMeta,
  });
});

it("prompts turn a string into one user message, with the description of the prompt", async () => {
  const server = createServer(info).prompt(
    "review-class",
    { description: "Review a class", arguments: { className: { required: true } } },
    ({ className }) => `Please review the class ${className}.`,
  );
  const params = { name: "review-class", arguments: { className: "OrderedCollection" } };
  expect(await fakeClient(server).call("prompts/get", params)).toEqual({
    description: "Review a class",
    messages: [{ role: "user", content: { type: "text", text: "Please review the class OrderedCollection." } }],
    resultType: "complete",
    _meta: serverMeta,
  });
});

it("prompts return messages unchanged, with the description of the handler", async () => {
  const messages = [
    { role: "assistant", content: { type: "text", text: "a" } },
    { role: "user", content: { type: "image", data: "aGk=", mimeType: "image/png" } },
  ] as const;
  const server = createServer(info)
    .prompt("array", {}, () => messages)
    .prompt("whole", { description: "plain" }, async () => ({ description: "own", messages, _meta: { k: 1 } }));
  const caller = fakeClient(server);
  expect(await caller.call("prompts/get", { name: "array" })).toEqual({
    messages,
    resultType: "complete",
    _meta: serverMeta,
  });
  expect(await caller.call("prompts/get", { name: "whole" })).toEqual({
    description: "own",
    messages,
    resultType: "complete",
    _meta: { k: 1, ...serverMeta },
  });
});

it("prompts name missing and invalid arguments", async () => {
  const server = createServer(info).prompt(
    "p",
    { arguments: { a: { required: true }, b: { required: true }, c: {}, constructor: { required: true } } },
    () => "x",
  );
  const caller = fakeClient(withParamsCheck(server));
  const missing = await caller.callError("prompts/get", { name: "p", arguments: { b: "1" } });
  expect(missing.kind).toBe("invalid_params");
  expect(missing.message).toBe("The prompt p needs the arguments a, constructor");
  expect(missing.data).toMatchObject({ missing: ["a", "constructor"] });
  const full = { a: "1", b: "2", constructor: "3" };
  const wrong = await caller.callError("prompts/get", { name: "p", arguments: { ...full, c: 1 } });
  expect(wrong.message).toBe("The argument c of the prompt p must be a string");
  const unknown = await caller.callError("prompts/get", { name: "q" });
  expect(unknown.message).toBe("Prompt not found: q");
  expect(unknown.data).toEqual({ kind: "prompt_not_found", promptName: "q" });
  expect((await caller.callError("prompts/get", {})).kind).toBe("invalid_params");
  expect(await caller.call("prompts/get", { name: "p", arguments: full })).toHaveProperty("messages");
});

it("prompts that fail return protocol errors", async () => {
  const server = createServer(info)
    .prompt("broken", {}, () => Promise.reject(new Error("no idea")))
    .prompt("odd", {}, () => 42 as never);
  const caller = fakeClient(server);
  expect((await caller.callError("prompts/get", { name: "broken" })).toBody()).toEqual({
    code: -32603,
    message: "no idea",
    data: { kind: "internal_error" },
  });
  expect((await caller.callError("prompts/get", { name: "odd" })).message).toContain("neither a string nor messages");
});

it("prompts can be removed", async () => {
  const server = createServer(info).prompt("p", {}, () => "x");
  expect(server.removePrompt("p")).toBe(true);
  expect(server.removePrompt("p")).toBe(false);
  expect(await fakeClient(server).call("prompts/list")).toMatchObject({ prompts: [] });
});

it("prompts have arguments with inferred types", () => {
  const server = createServer(info)
    .prompt("p", { arguments: { a: { required: true }, b: {}, c: { required: false } } }, (args) => {
      expectTypeOf(args).toEqualTypeOf<{ a: string; b?: string; c?: string }>();
      return args.a;
    })
    .prompt("q", {}, (args) => {
      expectTypeOf(args).toEqualTypeOf<{ [name: string]: string | undefined }>();
      return "x";
    });
  expect(server).toBeTypeOf("function");
});
