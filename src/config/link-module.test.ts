// What a module that a config uses may export, and how it is told what is wrong with one that exports something else.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Link } from "../core/handler.ts";
import { middlewareFromModule } from "./link-module.ts";

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-link-module-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

let count = 0;
async function link(text: string, rest: { options?: unknown; name?: string } = {}, extension = "mjs"): Promise<Link> {
  const file = join(folder, `mine-${(count += 1)}.${extension}`);
  writeFileSync(file, text);
  const position = { line: 1, column: 1 };
  return middlewareFromModule({ kind: "module", file, hidden: [], options: undefined, position, ...rest });
}

/** What comes back through the link from an end that answers with nothing. */
async function answer({ run }: Link): Promise<unknown> {
  return run({ method: "x", params: {} }, {} as never, async () => ({ from: "end" }));
}

const MIDDLEWARE = "async (request, context, next) => ({ ...(await next(request, context)), by: 'it' })";

describe("a module exports", () => {
  it.each([
    ["a middleware", `export default ${MIDDLEWARE};`, "mine"],
    ["a middleware by name", `export const link = ${MIDDLEWARE};`, "mine"],
    ["a link", `export default { name: "own", run: ${MIDDLEWARE} };`, "own"],
    ["a function that makes a middleware", `export default () => ${MIDDLEWARE};`, "mine"],
    ["a function that makes a link", `export default (options) => ({ name: "own", run: ${MIDDLEWARE} });`, "own"],
    ["a function that makes one in a while", `export default async (options) => ${MIDDLEWARE};`, "mine"],
    ["a function with a default", `export default (options = {}, other) => ${MIDDLEWARE};`, "mine"],
    ["a link beside something else", `export default 5; export const link = ${MIDDLEWARE};`, "mine"],
  ])("%s", async (_name, text, name) => {
    const made = await link(text);
    expect(made.name).toMatch(name);
    expect(await answer(made)).toEqual({ from: "end", by: "it" });
  });

  it("CommonJS too", async () => {
    expect(await answer(await link(`module.exports = { link: ${MIDDLEWARE} };`, {}, "cjs"))).toMatchObject({
      by: "it",
    });
  });

  it("something that is told its options", async () => {
    const text = "export default (options) => async () => ({ options });";
    expect(await answer(await link(text, { options: { a: 1 } }))).toEqual({ options: { a: 1 } });
    expect(await answer(await link(text))).toEqual({ options: {} });
  });

  it("a link that is of a class, which is not taken apart", async () => {
    const text = `class Own {
      name = "own"; #closed = false;
      async run() { return { closed: this.#closed }; }
      async close() { this.#closed = true; }
    }
    export default new Own();`;
    for (const rest of [{}, { name: "renamed" }]) {
      const made = await link(text, rest);
      expect(made.name).toBe(rest.name ?? "own");
      expect(await made.run({ method: "x", params: {} }, {} as never, async () => ({}))).toEqual({ closed: false });
      await made.close?.();
      expect(await made.run({ method: "x", params: {} }, {} as never, async () => ({}))).toEqual({ closed: true });
    }
  });
});

describe("a module is refused", () => {
  it.each([
    ["that exports nothing", "export const run = 1;", "exports no link: export a link ({ name, run }), a middleware"],
    ["whose function makes no link", "export default () => 5;", "made something that is no link"],
    [
      "whose middleware names one parameter",
      "export default async (request) => ({});",
      "made something that is no link",
    ],
    ["whose function throws", "export default ({ a }) => a.b.c;", "could not make its link: Cannot read properties"],
    ["that throws", "\nthrow new Error('no key');", /mine-\d+\.mjs cannot be loaded: no key, at .*mine-\d+\.mjs:2:7/],
  ])("%s", async (_name, text, sentence) => {
    await expect(link(text)).rejects.toThrow(sentence);
  });

  it("that takes no options, where there are some", async () => {
    await expect(link(`export default ${MIDDLEWARE};`, { options: {} })).rejects.toThrow(
      "takes no options: it exports a middleware, because it names two parameters or more",
    );
    await expect(link(`export default { name: "own", run: ${MIDDLEWARE} };`, { options: 1 })).rejects.toThrow(
      "takes no options: it exports a link",
    );
  });

  it("without the value of a variable that it quotes", async () => {
    const file = join(folder, "telling.mjs");
    writeFileSync(file, "export default ({ key }) => { throw new Error(`bad ${key}`); };");
    const hidden = [{ value: "s3cret", reference: "${KEY}" }];
    const options = { key: "Bearer s3cret" };
    await expect(
      middlewareFromModule({ kind: "module", file, hidden, options, position: { line: 1, column: 1 } }),
    ).rejects.toThrow("could not make its link: bad Bearer ${KEY} (");
  });
});
