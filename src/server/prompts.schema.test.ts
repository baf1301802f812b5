// Prompts whose arguments have a schema: what clients see of them, how values are checked and converted, and types.

import { type } from "arktype";
import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { fakeClient } from "../../test/support/handlers/fake-client.ts";
import { connectInMemory, REVISION_NAMES } from "../testing.ts";
import { createServer } from "./server.ts";

const info = { name: "test", version: "1" };

const server = createServer(info)
  .prompt(
    "review",
    {
      description: "Reviews a class",
      arguments: z.object({
        className: z.string().min(2).describe("Which class").meta({ title: "Class" }),
        depth: z.coerce.number().int().default(1),
        tone: z.enum(["kind", "strict"]).optional(),
      }),
      complete: { className: (typed) => ["Array", "Bag"].filter((name) => name.startsWith(typed)) },
    },
    (args) => {
      expectTypeOf(args).toEqualTypeOf<{ className: string; depth: number; tone?: "kind" | "strict" | undefined }>();
      return `${args.className} ${args.depth + 1} ${args.tone ?? "none"}`;
    },
  )
  .prompt("ark", { arguments: type({ name: "string" }) }, ({ name }) => name.toUpperCase())
  .prompt(
    "plain",
    { arguments: { type: "object", properties: { a: { type: "string", maxLength: 3 } }, required: ["a"] } },
    ({ a }) => a.toUpperCase(),
  );

describe.each(REVISION_NAMES)("a prompt with a schema, for a client of %s", (revision) => {
  it("a prompt with a schema, for a client lists its arguments, and converts and checks their values", async () => {
    const { client, close } = await connectInMemory(server, { revision });
    const { prompts } = await client.listPrompts();
    expect(prompts.map(({ name, arguments: args }) => [name, args?.map((one) => [one.name, one.required])])).toEqual([
      ["review", [["className", true], ["depth", undefined], ["tone", undefined]]], // prettier-ignore
      ["ark", [["name", true]]],
      ["plain", [["a", true]]],
    ]);
    expect(prompts[0]?.arguments?.[0]).toMatchObject({ description: "Which class" });
    const textOf = async (name: string, args: Record<string, string>): Promise<unknown> =>
      (await client.getPrompt(name, args)).messages[0]?.content;
    expect(await textOf("review", { className: "Bag", depth: "4" })).toEqual({ type: "text", text: "Bag 5 none" });
    expect(await textOf("review", { className: "Bag", tone: "kind" })).toEqual({ type: "text", text: "Bag 2 kind" });
    expect(await textOf("ark", { name: "x" })).toEqual({ type: "text", text: "X" });
    expect(await textOf("plain", { a: "x" })).toEqual({ type: "text", text: "X" });
    await close();
  });
});

it.each([
  ["review", { className: "B" }, "Invalid arguments for the prompt review: className: "],
  ["review", { className: "Bag", depth: "deep" }, "Invalid arguments for the prompt review: depth: "],
  ["review", {}, "The prompt review needs the argument className"],
  ["plain", { a: "long" }, "Invalid arguments for the prompt plain: a: must NOT have more than 3 characters"],
])("a prompt with a schema refuses wrong arguments with the reason: %s %o", async (name, args, message) => {
  const error = await fakeClient(server).callError("prompts/get", { name, arguments: args });
  expect([error.kind, error.message.slice(0, message.length)]).toEqual(["invalid_params", message]);
});

it("a prompt with a schema completes its arguments", async () => {
  const ref = { type: "ref/prompt", name: "review" };
  const complete = (name: string) =>
    fakeClient(server).call("completion/complete", { ref, argument: { name, value: "A" } });
  expect(await complete("className")).toMatchObject({ completion: { values: ["Array"] } });
  expect(await complete("tone")).toMatchObject({ completion: { values: [] } });
});

it("a prompt with a schema is refused if an argument can never be a string, and accepted if the schema may convert strings", () => {
  const add = (schema: unknown) => () => createServer(info).prompt("p", { arguments: schema as never }, () => "x");
  const refused = [z.number(), z.number().optional(), z.boolean().default(true), z.array(z.string()), z.object({})];
  for (const n of refused) {
    expect(add(z.object({ n }))).toThrow(
      "Prompt p: the argument n is not a string, but clients send strings; use a string, or a schema that converts " +
        "strings, such as z.coerce.number()",
    );
  }
  expect(add(type({ n: "number" }))).toThrow("the argument n is not a string");
  const accepted = [
    z.coerce.number().int().default(1),
    z.coerce.boolean().optional(),
    z.preprocess(Number, z.number()),
    z.string().transform(Number).pipe(z.number()),
    z.stringbool(),
    z.union([z.string(), z.number()]),
    z.number().catch(1),
    z.unknown(),
  ];
  for (const n of accepted) expect(add(z.object({ n }))).not.toThrow();
  expect(add(type({ n: "string.numeric.parse" }))).not.toThrow();
  expect(add({ type: "object", properties: { n: { type: ["string", "null"] } } })).not.toThrow();
});

it("a prompt with a schema is refused if the schema cannot work", () => {
  const add = (options: unknown) => () => createServer(info).prompt("p", options as never, () => "x");
  expect(add({ arguments: z.string() })).toThrow("Prompt p: `arguments` must be an object schema");
  expect(add({ arguments: z.object({ a: z.string() }), complete: { b: () => [] } })).toThrow(
    "Prompt p: there is no argument b to complete",
  );
  expect(add({ arguments: { a: z.string() } })).toThrow(
    /^Prompt p: `arguments\.a` is a schema of zod; expected .*, or wrap them: z\.object\(\{ \.\.\. \}\)$/,
  );
  expect(add({ argsSchema: { a: z.string() } })).toThrow("Prompt p has no option `argsSchema`; use `arguments`");
  expect(add({ arguments: { a: {} }, complete: { a: () => [] } })).toThrow("`complete` belongs to the argument");
  const properties = { n: { type: "number" } };
  expect(add({ arguments: { type: "object", properties } })).toThrow("the argument n is not a string");
  createServer(info).prompt(
    "q",
    {
      // @ts-expect-error -- there is no such argument to complete
      arguments: z.object({ id: z.string() }),
      complete: { id: () => [], idd: undefined },
    },
    ({ id }) => id,
  );
});

it("completes nothing for an argument named constructor", async () => {
  const args = z.object({ constructor: z.string(), other: z.string() });
  // For the compiler, every object has a constructor, which is not a completer.
  const complete = { other: () => ["b"] } as never;
  const built = createServer(info).prompt("p", { arguments: args, complete }, () => "x");
  const ref = { type: "ref/prompt", name: "p" };
  const completed = fakeClient(built).call("completion/complete", {
    ref,
    argument: { name: "constructor", value: "a" },
  });
  expect(await completed).toMatchObject({ completion: { values: [] } });
});
