// Links from plain JSON, as a config file has them; what is wrong with the options is told by their names.

import { expect, it } from "vitest";
import { LINKS, OptionError } from "./index.ts";

const make = (name: string, options?: unknown) => () => LINKS.get(name)!(options);

it("makes every link by its name", () => {
  const options: Record<string, unknown> = {
    filter: { tools: { only: ["a*"] } },
    log: undefined,
    "rate-limit": { calls: 1, per: "second" },
    rename: { tools: { a: "b" } },
    retry: undefined,
    timeout: 1_000,
  };
  expect([...LINKS.keys()]).toEqual(Object.keys(options));
  for (const name of LINKS.keys()) expect(make(name, options[name])().name).toBe(name);
});

it.each([
  ["log", { level: "debug" }, "level", 'log: `level` must be "info" or "warning" or "error", not "debug"'],
  ["log", { format: "xml" }, "format", 'log: `format` must be "text" or "json", not "xml"'],
  ["log", { arguments: -1 }, "arguments", "log: `arguments` must be a whole number above 0, not -1"],
  ["log", { arguments: "yes" }, "arguments", 'log: `arguments` must be a whole number above 0, not "yes"'],
  ["log", { write: "stdout" }, "write", 'log: `write` must be a function, not "stdout"'],
  ["log", 5, "", "log: must be an object with level, format, arguments, write"],
  ["timeout", undefined, "ms", "timeout: `ms` or `idle` must say how many milliseconds"],
  ["timeout", null, "", "timeout: must be a number of milliseconds, or an object with ms, idle, methods"],
  ["timeout", 0, "ms", "timeout: `ms` must be milliseconds above 0, to 2147483647, not 0"],
  ["timeout", { ms: "5s" }, "ms", 'timeout: `ms` must be milliseconds above 0, to 2147483647, not "5s"'],
  ["timeout", { sm: 5 }, "sm", "timeout: `sm` is no option of it; did you mean `ms`?"],
  [
    "timeout",
    { ms: 5, methods: ["tools/cal"] },
    "methods",
    'timeout: `methods` has a wrong name: "tools/cal" is no method; did you mean "tools/call"?',
  ],
  [
    "timeout",
    { ms: 5, methods: ["subscriptions/listen"] },
    "methods",
    "timeout: `methods` must not have subscriptions/listen: a listen is meant to last",
  ],
  [
    "timeout",
    { ms: 5, methods: "tools/call" },
    "methods",
    'timeout: `methods` must be an array of texts that are not empty, not "tools/call"',
  ],
  ["retry", { attempts: 0 }, "attempts", "retry: `attempts` must be a whole number above 0, not 0"],
  ["retry", { attempts: 1.5 }, "attempts", "retry: `attempts` must be a whole number above 0, not 1.5"],
  ["rate-limit", {}, "calls", "rate-limit: `calls` must say how many calls may be made"],
  ["rate-limit", { calls: 1 }, "per", 'rate-limit: `per` must be "second", "minute" or "hour"; or `perMs` says it'],
  ["rate-limit", { calls: 1, per: "second", perMs: 5 }, "perMs", "rate-limit: `perMs` and `per` are one too many"],
  [
    "rate-limit",
    { calls: 1, per: "day" },
    "per",
    'rate-limit: `per` must be "second" or "minute" or "hour", not "day"',
  ],
  [
    "rename",
    { descriptions: { tool: {} } },
    "descriptions.tool",
    "rename: `descriptions.tool` is no option of it; did you mean `tools`?",
  ],
  ["filter", { tools: { not: [""] } }, "tools.not", "filter: `tools.not` must be an array of texts that are not empty"],
])("%s refuses %j", (name, options, option, message) => {
  const error = (() => {
    try {
      return make(name, options)();
    } catch (thrown) {
      return thrown;
    }
  })();
  expect(error).toBeInstanceOf(OptionError);
  expect(error).toBeInstanceOf(TypeError);
  expect(error).toMatchObject({ message, option });
});
