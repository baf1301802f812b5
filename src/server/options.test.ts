// Options of createServer() and of registrations: what is missing, wrong or unknown throws a TypeError that names it.

import { expect, it, vi } from "vitest";
import { z } from "zod";
import { fakeClient } from "../../test/support/handlers/fake-client.ts";
import { createServer } from "./server.ts";

type Untyped = (...args: unknown[]) => unknown;
type UntypedServer = Record<"tool" | "resource" | "template" | "prompt", Untyped>;

const info = { name: "test", version: "1" };
const handler = (): string => "x";
const create = createServer as unknown as Untyped;
const untyped = (): UntypedServer => createServer(info) as unknown as UntypedServer;

const kinds = [
  ["tool", "Tool t", "t", "name", ".tool(name, options, handler)"],
  ["resource", "Resource a:b", "a:b", "URI", ".resource(uri, options, read)"],
  ["template", "Template a:{b}", "a:{b}", "URI template", ".template(uriTemplate, options, read)"],
  ["prompt", "Prompt p", "p", "name", ".prompt(name, options, get)"],
] as const;

it.each(kinds)("a registration of a %s reports what is missing or wrong", async (kind, owner, key, what, usage) => {
  const server = createServer(info);
  const add = (server as unknown as UntypedServer)[kind];
  const refuses = (args: readonly unknown[], message: string): void =>
    expect(() => add(...args)).toThrow(new TypeError(message));
  for (const odd of [undefined, null, "", 7, Symbol("s"), {}, new URL("a:b")]) {
    refuses([odd, {}, handler], `A ${kind} needs a ${what}, a non-empty string; usage: ${usage}`);
  }
  refuses([key], `${owner}: the options are missing; usage: ${usage}`);
  refuses([key, undefined, handler], `${owner}: the options are missing; usage: ${usage}`);
  for (const odd of [handler, null, "x", []]) {
    refuses([key, odd, handler], `${owner}: the options must be an object; usage: ${usage}`);
  }
  refuses([key, {}], `${owner}: the handler is missing; usage: ${usage}`);
  for (const odd of [null, "x", {}]) {
    refuses([key, {}, odd], `${owner}: the handler must be a function; usage: ${usage}`);
  }
  for (const field of ["title", "description"]) {
    refuses([key, { [field]: 7 }, handler], `${owner}: \`${field}\` must be a string`);
  }
  expect(await fakeClient(server).call("server/discover")).toMatchObject({ capabilities: {} });
  expect(add(key, {}, handler)).toBe(server);
});

it.each([
  ["tool", "t", { imput: {} }, "Tool t has no option `imput`; did you mean `input`?"],
  ["tool", "t", { outputschema: {} }, "Tool t has no option `outputschema`; did you mean `outputSchema`?"],
  [
    "tool",
    "t",
    { parameters: {} },
    "Tool t has no option `parameters`; the options are title, description, input, inputSchema, output, " +
      "outputSchema, annotations, icons, scopes, visible, task, _meta",
  ],
  ["tool", "t", { name: "other" }, /^Tool t has no option `name`; the options are /],
  ["resource", "a:b", { mimetype: "text/plain" }, "Resource a:b has no option `mimetype`; did you mean `mimeType`?"],
  ["resource", "a:b", { list: () => [] }, /^Resource a:b has no option `list`; the options are /],
  ["template", "a:{b}", { lst: () => [] }, "Template a:{b} has no option `lst`; did you mean `list`?"],
  ["template", "a:{b}", { size: 1 }, /^Template a:\{b\} has no option `size`; the options are /],
  ["prompt", "p", { argument: {} }, "Prompt p has no option `argument`; did you mean `arguments`?"],
  [
    "prompt",
    "p",
    { arguments: { a: { require: true } } },
    "Prompt p has no option `arguments.a.require`; did you mean `required`?",
  ],
  [
    "resource",
    "a:b",
    { cache: { ttlMs: 1, cacheScope: "public", scope: 1 } },
    "Resource a:b has no option `cache.scope`; the options are ttlMs, cacheScope",
  ],
] as const)("a registration of a %s refuses unknown options: %s %j", (kind, key, options, message) => {
  expect(() => untyped()[kind](key, options, handler)).toThrow(
    typeof message === "string" ? new TypeError(message) : message,
  );
});

it("a registration accepts an unknown option that is undefined, and every known one", () => {
  const server = untyped();
  expect(() => server.tool("t", { title: undefined, other: undefined }, handler)).not.toThrow();
  const input = { type: "object", anything: "that JSON Schema does not know" };
  expect(() => server.tool("u", { input, inputSchema: input, _meta: { any: 1 } }, handler)).not.toThrow();
  expect(() => server.tool("z", { input: z.object({ unknown: z.string() }) }, handler)).not.toThrow();
});

it("a registration is refused if the name is taken, and possible again after its removal", () => {
  const server = createServer({ name: "test", version: "1" });
  const text = (): string => "x";
  const registrations: readonly (readonly [string, string, () => unknown, (() => boolean) | undefined])[] = [
    ["Tool a", 'removeTool("a")', () => server.tool("a", {}, text), () => server.removeTool("a")],
    ["Prompt a", 'removePrompt("a")', () => server.prompt("a", {}, text), () => server.removePrompt("a")],
    [
      "Resource a:b",
      'removeResource("a:b")',
      () => server.resource("a:b", {}, text),
      () => server.removeResource("a:b"),
    ],
    [
      "Template a:{b}",
      'removeTemplate("a:{b}")',
      () => server.template("a:{b}", {}, text),
      () => server.removeTemplate("a:{b}"),
    ],
    ["Method acme/a", "", () => server.method("acme/a", () => ({})), undefined],
    ["Notification notifications/acme/a", "", () => server.onNotification("notifications/acme/a", text), undefined],
  ];
  for (const [owner, remove, register, unregister] of registrations) {
    register();
    const advice = remove === "" ? "" : `; to replace it, call server.${remove} first`;
    expect(register).toThrow(new TypeError(`${owner} is already registered${advice}`));
    if (unregister === undefined) continue;
    expect(unregister()).toBe(true);
    expect(register).not.toThrow();
  }
});

it("a registration needs a name that clients accept, and warns of one that some refuse", () => {
  const text = (): string => "x";
  const warn = vi.spyOn(console, "error").mockImplementation(() => undefined);
  for (const name of ["my tool!", "ü", "a/b", "a".repeat(129)]) {
    expect(() => untyped().tool(name, {}, text)).toThrow(`Tool ${name}: the name must have 1 to 128 characters`);
  }
  expect(warn).not.toHaveBeenCalled();
  createServer({ name: "test", version: "1" })
    .tool("notes.search", {}, text)
    .tool("a".repeat(65), {}, text)
    .prompt("two words", {}, text);
  expect(warn.mock.calls.map(([text]) => String(text).split(";")[0])).toEqual([
    "catenary: Tool notes.search: some clients refuse this name",
    `catenary: Tool ${"a".repeat(65)}: some clients refuse this name`,
    "catenary: Prompt two words: some clients refuse this name",
  ]);
  warn.mockClear();
  createServer({ name: "test", version: "1" }).tool("a".repeat(64), {}, text).tool("A-b_9", {}, text);
  expect(warn).not.toHaveBeenCalled();
  warn.mockRestore();
});

it("a registration of a prompt has arguments by name", () => {
  const form = 'expected { className: { description: "...", required: true } }';
  const refuses = (declared: unknown, message: string): void =>
    expect(() => untyped().prompt("p", { arguments: declared }, handler)).toThrow(
      new TypeError(`Prompt p: ${message}`),
    );
  for (const odd of [[{ name: "a", required: true }], [], null, "a"]) {
    refuses(odd, `\`arguments\` must be an object with the options of each argument; ${form}`);
  }
  for (const odd of [true, null, "string", []]) refuses({ a: odd }, `\`arguments.a\` must be an object; ${form}`);
  refuses({ a: z.string() }, `\`arguments.a\` is a schema of zod; ${form}, or wrap them: z.object({ ... })`);
});

it("createServer() reports what is missing", () => {
  const usage = 'usage: createServer({ name: "notes", version: "1.0.0" })';
  const both = new TypeError(`createServer() needs a name and a version; ${usage}`);
  expect(() => create()).toThrow(both);
  for (const odd of [null, "notes", 7, {}, []]) expect(() => create(odd)).toThrow(both);
  expect(() => create({ name: "x" })).toThrow(new TypeError(`createServer() needs a version; ${usage}`));
  expect(() => create({ name: 7, version: "1" })).toThrow(`createServer() needs a name; ${usage}`);
});

it("createServer() refuses unknown options, and a second argument", () => {
  const near = new TypeError("createServer() has no option `pagesize`; did you mean `pageSize`?");
  expect(() => create({ ...info, pagesize: 5 })).toThrow(near);
  expect(() => create(info, { pageSize: 5 })).toThrow(
    new TypeError("createServer() has one argument: createServer({ name, version, ...options })"),
  );
  expect(() => create({ ...info, tasks: { maximum: 5 } })).toThrow("createServer() has no option `tasks.maximum`");
  expect(() => create({ ...info, cache: { ttlMs: 1, cacheScope: "public", ttl: 1 } })).toThrow(
    new TypeError("createServer() has no option `cache.ttl`; did you mean `ttlMs`?"),
  );
});

it("createServer() checks its limits on tasks", () => {
  for (const field of ["max", "maxPerCaller", "ttlMs", "maxTtlMs", "pollIntervalMs"]) {
    expect(() => createServer({ ...info, tasks: { [field]: -1 } })).toThrow(
      expect.objectContaining({
        message: `createServer(): \`tasks.${field}\` must be a whole number above 0, not -1`,
      }),
    );
  }
  expect(() => create({ ...info, tasks: 5 })).toThrow("createServer(): `tasks` must be an object");
});

const add = (task: unknown): void => {
  createServer(info).tool("job", { task } as object, () => "done");
};

it.each([
  [undefined],
  ["optional"],
  ["required"],
  ["forbidden"],
  [{ support: "forbidden" }],
  [{ support: "optional", when: "at-once" }],
  [{ support: "required", when: "when-detached", ttlMs: 1, pollIntervalMs: 1 }],
])("the option `task` of a tool may be %j", (task) => {
  expect(() => add(task)).not.toThrow();
});

it.each([
  ["always", 'Tool job: `task` must be "optional", "required", "forbidden" or an object'],
  [true, 'Tool job: `task` must be "optional", "required", "forbidden" or an object'],
  [{}, 'Tool job: `task.support` must be "optional", "required" or "forbidden"'],
  [{ support: "maybe" }, 'Tool job: `task.support` must be "optional", "required" or "forbidden"'],
  [{ support: "optional", when: "later" }, 'Tool job: `task.when` must be "at-once" or "when-detached"'],
  [{ support: "optional", ttlMs: 0 }, "Tool job: `task.ttlMs` must be a whole number above 0, not 0"],
  [{ support: "optional", ttlMs: 1.5 }, "Tool job: `task.ttlMs` must be a whole number above 0, not 1.5"],
  [
    { support: "optional", pollIntervalMs: "1" },
    'Tool job: `task.pollIntervalMs` must be a whole number above 0, not "1"',
  ],
  [{ support: "optional", ttl: 5 }, "Tool job has no option `task.ttl`; did you mean `ttlMs`?"],
])("the option `task` of a tool may not be %j", (task, message) => {
  expect(() => add(task)).toThrow(TypeError);
  expect(() => add(task)).toThrow(expect.objectContaining({ message }));
});
