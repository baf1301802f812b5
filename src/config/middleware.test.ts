// Middleware in a config: the options that its factories get, and the problems of invalid options. Uses factories of its
// own; the samples use the real ones.

import { afterEach, expect, it, vi } from "vitest";
import { OptionError } from "../core/options.ts";
import type { Middleware } from "../core/handler.ts";
import { checkConfig } from "./load.ts";
import type { Problem } from "./document.ts";

const pass = (): Middleware => (request, context, next) => next(request, context);
const close = vi.fn(async () => undefined);
const plain = vi.fn((_options?: unknown): Middleware => Object.assign(pass(), { close }));
const picky = (options?: unknown): Middleware => {
  const { size } = options as { size?: unknown };
  if (size !== 1) throw new OptionError("picky", "tools.size", `must be 1, not ${JSON.stringify(size)}`);
  return pass();
};
const ruled = (): Middleware => {
  throw new OptionError("ruled", "rules.1.size", "is wrong");
};
const middleware = new Map<string, (options?: unknown) => Middleware>([
  ["ruled", ruled],
  ["plain", plain],
  ["picky", picky],
]);
afterEach(() => {
  vi.clearAllMocks();
});

function check(chain: string, env: Record<string, string> = {}): Promise<Problem[]> {
  const text = `{"mcpServers": {"a": {"command": "x"}}, "inputs": [{"id": "i", "type": "promptString"}],\n"chain": ${chain}}`;
  return checkConfig(text, "/x/catenary.json", { env, middleware });
}

it.each([
  ['["plain"]', undefined],
  ['["${NAME}"]', undefined],
  ['[{"plain": {"a": ["${NAME}", 1, null, true]}}]', { a: ["plain", 1, null, true] }],
  ['[{"plain": 5}]', 5],
])("a middleware: written as %s is created once with its options, and closed", async (chain, options) => {
  expect(await check(chain, { NAME: "plain" })).toEqual([]);
  expect(plain.mock.calls).toEqual([[options, { folder: "/x" }]]);
  expect(close).toHaveBeenCalledOnce();
});

it("a middleware is not created if a variable is missing, or an input must be asked for first", async () => {
  expect(await check('[{"plain": {"a": "${NONE}"}}]')).toMatchObject([{ message: "The variable NONE is not set" }]);
  expect(await check('[{"plain": {"a": "${input:i}"}}, "${input:i}"]')).toEqual([]);
  expect(plain).not.toHaveBeenCalled();
});

it("a middleware with an unknown name from a variable is reported without its value", async () => {
  expect(await check('["${NAME}"]', { NAME: "s3cret" })).toEqual([
    {
      line: 2,
      column: 11,
      severity: "error",
      message: 'There is no middleware "${NAME}"',
      hint: expect.stringMatching(
        /^there are audit, .* ruled, plain, picky; write .* for a module of your own$/,
      ) as string,
    },
  ]);
});

it("of the built-in ones gets a number from a variable, and a choice", async () => {
  const env = { N: "3", LEVEL: "warning", KEY: "1234" };
  const text = (chain: string): string => `{"mcpServers": {"a": {"command": "x"}}, "chain": ${chain}}`;
  const chain = `["log", {"log": {"level": "\${LEVEL}", "arguments": "\${N}"}}, {"concurrency": "\${N}"},
    {"rate-limit": {"calls": "\${N:-3}", "per": "minute"}}, {"cache": {"tools": {"x": {"ttlMs": "\${N}000"}}}},
    {"redact": {"values": ["\${KEY}"]}}]`;
  expect(await checkConfig(text(chain), "/x/catenary.json", { env })).toEqual([]);
  expect(await checkConfig(text('[{"rate-limit": {"calls": "${KEY}x"}}]'), "/x/catenary.json", { env })).toMatchObject([
    { message: 'rate-limit: `calls` must be a whole number above 0, not "${KEY}x"' },
  ]);
});

it.each([
  ['[{"picky": {"tools": {"size": 2}, "size": 2}}]', 40],
  ['[{"picky": {"tools": {}, "size": 2}}]', 31],
  ['[{"picky": {"size": 2}}]', 21],
])("invalid options are reported at their position, or that of their parent: %s", async (chain, column) => {
  expect(await check(chain)).toMatchObject([{ line: 2, column, message: "picky: `tools.size` must be 1, not 2" }]);
});

it("invalid options are reported at their position in an array", async () => {
  const problems = await check('[{"ruled": {"rules": [{}, {"size": 2}]}}]');
  expect(problems).toMatchObject([{ line: 2, column: 45, message: "ruled: `rules.1.size` is wrong" }]);
});

it("invalid options are reported without the values of variables", async () => {
  expect(await check('[{"picky": {"size": "${SIZE}"}}]', { SIZE: "s3cret" })).toMatchObject([
    { message: 'picky: `tools.size` must be 1, not "${SIZE}"' },
  ]);
});
