// The exports of a middleware module, and the errors for modules that export something else.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Middleware } from "../core/handler.ts";
import { createGateway, moduleProblems } from "./gateway.ts";
import { loadConfig, type Config } from "./load.ts";
import { middlewareFromModule, type ModuleMiddleware } from "./middleware.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-user-modules-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

let count = 0;
async function load(
  text: string,
  rest: { options?: unknown; name?: string } = {},
  extension = "mjs",
): Promise<Middleware> {
  const file = join(folder, `mine-${(count += 1)}.${extension}`);
  writeFileSync(file, text);
  const position = { line: 1, column: 1 };
  return middlewareFromModule({ kind: "module", file, secrets: [], options: undefined, position, ...rest });
}

/** Runs the middleware in front of a server that returns `{ from: "server" }`. */
async function run(middleware: Middleware): Promise<unknown> {
  return middleware({ method: "x", params: {} }, {} as never, async () => ({ from: "server" }));
}

const MIDDLEWARE = "async (request, context, next) => ({ ...(await next(request, context)), by: 'it' })";

it.each([
  ["a middleware", `export default ${MIDDLEWARE};`],
  ["a middleware by name", `export const middleware = ${MIDDLEWARE};`],
  ["a factory", `export default () => ${MIDDLEWARE};`],
  ["a factory with options", `export default (options) => ${MIDDLEWARE};`],
  ["an async factory", `export default async (options) => ${MIDDLEWARE};`],
  ["a factory with a default parameter", `export default (options = {}, other) => ${MIDDLEWARE};`],
  ["a middleware beside another default", `export default 5; export const middleware = ${MIDDLEWARE};`],
])("a module may export: %s", async (_name, text) => {
  const middleware = await load(text);
  expect(middleware.name).toMatch(/^mine-\d+$/);
  expect(middleware.close).toBeUndefined();
  expect(await run(middleware)).toEqual({ from: "server", by: "it" });
});

it("a module may export: CommonJS", async () => {
  const middleware = await load(`module.exports = { middleware: ${MIDDLEWARE} };`, {}, "cjs");
  expect(await run(middleware)).toMatchObject({ by: "it" });
});

it("a module may export: a factory that gets its options", async () => {
  const text = "export default (options) => async () => ({ options });";
  expect(await run(await load(text, { options: { a: 1 } }))).toEqual({ options: { a: 1 } });
  expect(await run(await load(text))).toEqual({ options: {} });
});

it("a module may export: a middleware with close, which keeps its state under another name", async () => {
  const text = `let closed = false;
    const own = async (request, context, next) => ({ closed });
    own.close = async function () { closed = this === own; };
    export default own;`;
  for (const rest of [{}, { name: "renamed" }]) {
    const middleware = await load(text, rest);
    expect(middleware.name).toMatch(rest.name ?? /^mine-\d+$/);
    expect(await run(middleware)).toEqual({ closed: false });
    await middleware.close?.();
    expect(await run(middleware)).toEqual({ closed: true });
  }
});

const text = `import { define, fields } from "${new URL("../../dist/chain/index.js", import.meta.url).href}";
  export default define({
    name: "upper",
    summary: "Writes results in capitals.",
    options: {
      tools: fields.strings("Names of tools."),
      waitMs: fields.ms("How long a call waits."),
      rule: fields.object("A rule.", { depth: fields.count("How deep.") }),
    },
    middleware: (options, { folder }) => async () => ({ options, folder }),
  });`;
const configOf = async (options: object): Promise<Config> => {
  writeFileSync(join(folder, "upper.mjs"), text);
  const file = join(folder, "catenary.json");
  const chain = [{ use: "./upper.mjs", options }];
  writeFileSync(file, JSON.stringify({ chain, mcpServers: { a: { command: "true" } } }, undefined, 2));
  return loadConfig(file, { env: { WAIT: "5" } });
};

it("a module that exports what define returns gets the checked options, with numbers from variables, and has the name of the definition", async () => {
  const [entry] = (await configOf({ tools: ["a"], waitMs: "${WAIT}" })).chain;
  const middleware = await middlewareFromModule(entry as ModuleMiddleware, { folder: "/x" });
  expect(middleware.name).toBe("upper");
  expect(await run(middleware)).toEqual({ options: { tools: ["a"], waitMs: 5 }, folder: "/x" });
  expect(await moduleProblems(await configOf({ tools: [] }))).toEqual([]);
});

it.each([
  [{ tool: ["a"] }, 6, "upper: `tool` is not an option; did you mean `tools`?"],
  [{ tools: [], rule: { depth: 0 } }, 8, "upper: `rule.depth` must be a whole number above 0, not 0"],
])(
  "a module that exports what define returns is refused with %j, at the line of the option",
  async (options, line, message) => {
    const config = await configOf(options);
    await expect(createGateway(config)).rejects.toMatchObject({ problems: [{ line, message }] });
    expect(await moduleProblems(config)).toMatchObject([{ line, message }]);
  },
);

it.each([
  [
    "that exports nothing usable",
    "export const run = 1;",
    "exports no middleware: export a middleware (request, context, next), or a function (options) that returns one",
  ],
  ["that exports an object", `export default { name: "own", run: ${MIDDLEWARE} };`, "exports no middleware"],
  ["whose factory returns something else", "export default () => 5;", "did not return a middleware"],
  [
    "whose middleware declares one parameter",
    "export default async (request) => ({});",
    "a middleware must declare its parameters, (request, context, next)",
  ],
  [
    "whose factory throws",
    "export default ({ a }) => a.b.c;",
    "could not create its middleware: Cannot read properties",
  ],
  ["that throws", "\nthrow new Error('no key');", /Cannot load .*mine-\d+\.mjs: no key, at .*mine-\d+\.mjs:2:7/],
])("a module is refused: %s", async (_name, text, message) => {
  await expect(load(text)).rejects.toThrow(message);
});

it("a module is refused that takes no options, if there are some", async () => {
  await expect(load(`export default ${MIDDLEWARE};`, { options: {} })).rejects.toThrow(
    "takes no options: it exports a middleware, a function with two or more parameters",
  );
});

it("a module is refused without showing the value of a variable that it quotes", async () => {
  const file = join(folder, "quoting.mjs");
  writeFileSync(file, "export default ({ key }) => { throw new Error(`bad ${key}`); };");
  const secrets = [{ value: "s3cret", reference: "${KEY}" }];
  const options = { key: "Bearer s3cret" };
  await expect(
    middlewareFromModule({ kind: "module", file, secrets, options, position: { line: 1, column: 1 } }),
  ).rejects.toThrow("could not create its middleware: bad Bearer ${KEY} (");
});
