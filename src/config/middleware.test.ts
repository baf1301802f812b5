// Links as a config names them: the options that reach their makers, and what is said of options that are wrong. The
// makers are the test's own; the real ones are tried by the samples.

import { afterEach, describe, expect, it, vi } from "vitest";
import { OptionError } from "../core/options.ts";
import type { Link, Middleware } from "../core/handler.ts";
import { checkConfig } from "./load.ts";
import type { Problem } from "./problems.ts";

const run: Middleware = (request, context, next) => next(request, context);
const close = vi.fn(async () => undefined);
const made = vi.fn((_options?: unknown): Link => ({ name: "made", run, close }));
const picky = (options?: unknown): Link => {
  const { size } = options as { size?: unknown };
  if (size !== 1) throw new OptionError("picky", "tools.size", `must be 1, not ${JSON.stringify(size)}`);
  return { name: "picky", run };
};
const links = new Map([
  ["made", made],
  ["picky", picky],
]);
afterEach(() => {
  vi.clearAllMocks();
});

function check(chain: string, env: Record<string, string> = {}): Promise<Problem[]> {
  const text = `{"mcpServers": {"a": {"command": "x"}}, "inputs": [{"id": "i", "type": "promptString"}],\n"chain": ${chain}}`;
  return checkConfig(text, "/x/catenary.json", { env, links });
}

describe("a link", () => {
  it.each([
    ['["made"]', undefined],
    ['["${LINK}"]', undefined],
    ['[{"made": {"a": ["${LINK}", 1, null, true]}}]', { a: ["made", 1, null, true] }],
    ['[{"made": 5}]', 5],
  ])("written %s is made once, with its options, and closed", async (chain, options) => {
    expect(await check(chain, { LINK: "made" })).toEqual([]);
    expect(made.mock.calls).toEqual([[options]]);
    expect(close).toHaveBeenCalledOnce();
  });

  it("is not made where a variable is missing, or an input must be asked for first", async () => {
    expect(await check('[{"made": {"a": "${NONE}"}}]')).toMatchObject([{ message: "The variable NONE is not set" }]);
    expect(await check('[{"made": {"a": "${input:i}"}}, "${input:i}"]')).toEqual([]);
    expect(made).not.toHaveBeenCalled();
  });

  it("is not called by the value of a variable where there is none of that name", async () => {
    expect(await check('["${LINK}"]', { LINK: "s3cret" })).toEqual([
      {
        line: 2,
        column: 11,
        severity: "error",
        message: 'There is no link "${LINK}"',
        hint: 'there are made, picky; one of your own is written {"use": "./mine.ts"}',
      },
    ]);
  });
});

describe("options that are wrong", () => {
  it.each([
    ['[{"picky": {"tools": {"size": 2}, "size": 2}}]', 40],
    ['[{"picky": {"tools": {}, "size": 2}}]', 31],
    ['[{"picky": {"size": 2}}]', 21],
  ])("are told where they stand, or near it: %s", async (chain, column) => {
    expect(await check(chain)).toMatchObject([{ line: 2, column, message: "picky: `tools.size` must be 1, not 2" }]);
  });

  it("are not told with the values of variables", async () => {
    expect(await check('[{"picky": {"size": "${SIZE}"}}]', { SIZE: "s3cret" })).toMatchObject([
      { message: 'picky: `tools.size` must be 1, not "${SIZE}"' },
    ]);
  });
});
