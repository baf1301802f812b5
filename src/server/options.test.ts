// Registrations that lack something, or have it in the wrong place: one TypeError each, which names what is wrong.

import { describe, expect, it } from "vitest";
import { z } from "zod";
import { desk } from "../../test/support/desk.ts";
import { createServer } from "./server.ts";

type Loose = (...args: unknown[]) => unknown;
type LooseServer = Record<"tool" | "resource" | "template" | "prompt", Loose>;

const server = createServer({ name: "test", version: "1" });
const loose = server as unknown as LooseServer;
const create = createServer as unknown as Loose;
const handler = (): string => "x";

const kinds = [
  ["tool", "Tool t", "t", "a name", ".tool(name, options, handler)"],
  ["resource", "Resource a:b", "a:b", "an address", ".resource(uri, options, read)"],
  ["template", "Template a:{b}", "a:{b}", "an address", ".template(uriTemplate, options, read)"],
  ["prompt", "Prompt p", "p", "a name", ".prompt(name, options, get)"],
] as const;

describe("a registration", () => {
  it.each(kinds)("of a %s is told what is missing", async (kind, owner, key, what, form) => {
    const add = loose[kind];
    const refuses = (args: readonly unknown[], text: string): void =>
      expect(() => add(...args)).toThrow(new TypeError(text));
    for (const odd of [undefined, null, "", 7, Symbol("s"), {}, new URL("a:b")]) {
      refuses([odd, {}, handler], `A ${kind} needs ${what}, a string; the form is ${form}`);
    }
    refuses([key], `${owner}: its options are missing; the form is ${form}`);
    refuses([key, undefined, handler], `${owner}: its options are missing; the form is ${form}`);
    for (const odd of [handler, null, "x", []]) {
      refuses([key, odd, handler], `${owner}: its options must be an object; the form is ${form}`);
    }
    refuses([key, {}], `${owner}: its handler is missing; the form is ${form}`);
    for (const odd of [null, "x", {}]) {
      refuses([key, {}, odd], `${owner}: its handler must be a function; the form is ${form}`);
    }
    for (const field of ["title", "description"]) {
      refuses([key, { [field]: 7 }, handler], `${owner}: its ${field} must be a string`);
    }
    expect(await desk(server).call("server/discover")).toMatchObject({ capabilities: {} });
    expect(add(key, {}, handler)).toBe(server);
  });

  it("of a prompt has arguments by name", () => {
    const form = 'the form is { className: { description: "...", required: true } }';
    const refuses = (declared: unknown, text: string): void =>
      expect(() => loose.prompt("p", { arguments: declared }, handler)).toThrow(new TypeError(`Prompt p: its ${text}`));
    for (const odd of [[{ name: "a", required: true }], [], null, "a", z.object({ a: z.string() })]) {
      refuses(odd, `arguments must be an object that says of each, by its name, what it is; ${form}`);
    }
    for (const odd of [true, null, "string", []]) refuses({ a: odd }, `argument a must be an object; ${form}`);
    refuses({ a: z.string() }, `argument a is a schema of zod, but ${form}`);
  });
});

describe("createServer()", () => {
  it("is told what is missing", () => {
    const form = 'the form is createServer({ name: "notes", version: "1.0.0" })';
    const both = new TypeError(`createServer() needs a name and a version, as text; ${form}`);
    expect(() => create()).toThrow(both);
    for (const odd of [null, "notes", 7, {}, []]) expect(() => create(odd)).toThrow(both);
    expect(() => create({ name: "x" })).toThrow(new TypeError(`createServer() needs a version, as text; ${form}`));
    expect(() => create({ name: 7, version: "1" })).toThrow(`createServer() needs a name, as text; ${form}`);
  });
});
