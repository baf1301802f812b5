// Middleware created from plain JSON, as in a config, and the errors that name a wrong option.

import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { OptionError } from "../../core/options.ts";
import { definedIn } from "../define.ts";
import * as builtIn from "./index.ts";

const MIDDLEWARE = definedIn(builtIn);

const create = (name: string, options?: unknown) => () => MIDDLEWARE.get(name)!(options);

/** For middleware that needs options. */
const OPTIONS: Record<string, unknown> = {
  audit: { file: "audit.jsonl" },
  authorize: { rules: [] },
  concurrency: 4,
  describe: { tools: { a: { title: "A" } } },
  filter: { tools: { include: ["a*"] } },
  inject: { headers: { "x-tenant": "acme" } },
  "rate-limit": { calls: 1, per: "second" },
  rename: { tools: { a: "b" } },
  timeout: 1_000,
};

it.each([...MIDDLEWARE.keys()])("creates %s, which is named as in a config", (name) => {
  expect(create(name, OPTIONS[name])().name).toBe(name);
});

it.each([...MIDDLEWARE])("creates %s with undefined for each option that is not required", (name, { definition }) => {
  const needed = Object({ ...OPTIONS, concurrency: { calls: 4 }, timeout: { totalMs: 1_000 } }[name]) as object;
  const absent = Object.fromEntries(Object.keys(definition.options).map((option) => [option, undefined]));
  expect(create(name, { ...absent, ...needed })().name).toBe(name);
});

it.each([...MIDDLEWARE])("has a doc comment for each option of %s in the declarations", (name, { definition }) => {
  const folder = fileURLToPath(new URL("../../../dist/chain", import.meta.url));
  const file = readdirSync(folder, { recursive: true, encoding: "utf8" }).find(
    (one) => basename(one) === `${name}.d.ts`,
  );
  const declarations = readFileSync(join(folder, file!), "utf8");
  for (const [option, { description }] of Object.entries(definition.options)) {
    expect(declarations).toMatch(new RegExp(`\\*/\\n    readonly ${option}\\??: `));
    expect(declarations).toContain(description);
  }
});

it.each([
  ["log", { level: "debug" }, "level", 'log: `level` must be "info", "warning" or "error", not "debug"'],
  ["log", { format: "xml" }, "format", 'log: `format` must be "text" or "json", not "xml"'],
  ["log", { arguments: -1 }, "arguments", "log: `arguments` must be a whole number above 0, not -1"],
  ["log", { arguments: "yes" }, "arguments", 'log: `arguments` must be a whole number above 0, not "yes"'],
  ["log", { write: "stdout" }, "write", 'log: `write` must be a function, so only code can set it, not "stdout"'],
  ["log", 5, "", "log: must be an object with `level`, `format`, `arguments`, `write`"],
  ["timeout", undefined, "totalMs", "timeout: `totalMs` or `idleMs` is required"],
  ["timeout", null, "", "timeout: must be a number of milliseconds, or an object with `totalMs`, `idleMs`, `methods`"],
  ["timeout", 0, "totalMs", "timeout: `totalMs` must be a number of milliseconds above 0, at most 2147483647, not 0"],
  [
    "timeout",
    { totalMs: "5s" },
    "totalMs",
    'timeout: `totalMs` must be a number of milliseconds above 0, at most 2147483647, not "5s"',
  ],
  ["timeout", { totalMS: 5 }, "totalMS", "timeout: `totalMS` is not an option; did you mean `totalMs`?"],
  [
    "timeout",
    { totalMs: 5, methods: ["tools/cal"] },
    "methods",
    'timeout: `methods` has a wrong name: "tools/cal" is not a method; did you mean "tools/call"?',
  ],
  [
    "timeout",
    { totalMs: 5, methods: ["subscriptions/listen"] },
    "methods",
    "timeout: `methods` must not have subscriptions/listen: subscriptions have no end",
  ],
  [
    "timeout",
    { totalMs: 5, methods: "tools/call" },
    "methods",
    'timeout: `methods` must be an array of non-empty strings, not "tools/call"',
  ],
  ["retry", { attempts: 0 }, "attempts", "retry: `attempts` must be a whole number above 0, not 0"],
  ["retry", { attempts: 1.5 }, "attempts", "retry: `attempts` must be a whole number above 0, not 1.5"],
  ["rate-limit", {}, "calls", "rate-limit: `calls` is required: how many calls may be made"],
  ["rate-limit", { calls: 1 }, "per", 'rate-limit: `per` must be "second", "minute" or "hour", or `perMs` must be set'],
  ["rate-limit", { calls: 1, per: "second", perMs: 5 }, "perMs", "rate-limit: `perMs` and `per` exclude each other"],
  ["rate-limit", { calls: 1, per: "day" }, "per", 'rate-limit: `per` must be "second", "minute" or "hour", not "day"'],
  [
    "rename",
    { descriptions: { tool: {} } },
    "descriptions.tool",
    "rename: `descriptions.tool` is not an option; did you mean `tools`?",
  ],
  ["audit", {}, "file", "audit: `file` is required: the path of the file"],
  ["audit", { file: "x", arguments: "all" }, "arguments", 'audit: `arguments` must be true, false or "hash"'],
  ["redact", { in: [] }, "in", 'redact: `in` must be an array of "results", "arguments"'],
  [
    "redact",
    { detect: ["token"] },
    "detect",
    'redact: `detect` must be an array of "tokens", "jwts", "private-keys", "cards", "emails"',
  ],
  ["validate", { results: "error" }, "results", 'validate: `results` must be "refuse", "warn" or "off", not "error"'],
  ["authorize", {}, "rules", "authorize: `rules` is required"],
  ["authorize", { rules: {} }, "rules", "authorize: `rules` must be an array of objects"],
  [
    "authorize",
    { rules: [{}, { caller: ["a"] }] },
    "rules.1.caller",
    "authorize: `rules.1.caller` is not an option; did you mean `callers`?",
  ],
  [
    "authorize",
    { rules: ["ada"] },
    "rules.0",
    'authorize: `rules.0` must be an object with `allow`, `callers`, `scopes`, `tools`, `prompts`, `resources`, not "ada"',
  ],
  [
    "authorize",
    { rules: [{ scopes: ["a b"] }] },
    "rules.0.scopes",
    "authorize: `rules.0.scopes` must be strings of visible ASCII, without spaces, quotes and backslashes",
  ],
  ["concurrency", { queue: 1 }, "calls", "concurrency: `calls` is required: how many calls may run at once"],
  ["concurrency", { calls: 1, queue: -1 }, "queue", "concurrency: `queue` must be a whole number, 0 or more, not -1"],
  ["breaker", { by: "all" }, "by", 'breaker: `by` must be "upstream" or "tool", not "all"'],
  ["describe", undefined, "", "describe: must have entries for `tools`, `prompts` or `resources`"],
  [
    "describe",
    { tools: { a: { annotations: { readonlyHint: true } } } },
    "tools.a.annotations.readonlyHint",
    "describe: `tools.a.annotations.readonlyHint` is not an option; did you mean `readOnlyHint`?",
  ],
  [
    "describe",
    { tools: { a: { inputSchema: {} } } },
    "tools.a.inputSchema",
    'describe: `tools.a.inputSchema` must have the type "object"',
  ],
  [
    "describe",
    { prompts: { a: 1 } },
    "prompts.a",
    "describe: `prompts.a` must be an object with `title`, `description`, `icons`, `arguments`, not 1",
  ],
  [
    "describe",
    { resources: { a: { icons: [{}] } } },
    "resources.a.icons",
    "describe: `resources.a.icons` must be an array of icons, such as [{ src: ... }]",
  ],
  [
    "cache",
    { tools: { a: {} } },
    "tools.a.ttlMs",
    "cache: `tools.a.ttlMs` is required: for how many milliseconds results are kept",
  ],
  ["cache", { lists: 5 }, "lists", "cache: `lists` must be an object with `ttlMs`, `public`, not 5"],
  ["confirm", { arguments: "yes" }, "arguments", 'confirm: `arguments` must be a whole number above 0, not "yes"'],
  ["confirm", { only: "some" }, "only", 'confirm: `only` must be "destructive" or "all", not "some"'],
  ["inject", {}, "", "inject: must have entries for `tools`, or `headers`"],
  ["inject", { tools: [] }, "tools", "inject: `tools` must be an object"],
  ["inject", { headers: { Host: "a" } }, "headers.Host", "inject: `headers.Host` is not a header that can be set"],
  ["inject", { headers: { "x-a": "a\n" } }, "headers.x-a", "inject: `headers.x-a` has a character that HTTP forbids"],
  [
    "filter",
    { tools: { exclude: [""] } },
    "tools.exclude",
    "filter: `tools.exclude` must be an array of non-empty strings",
  ],
])("%s refuses %j", (name, options, option, message) => {
  const error = (() => {
    try {
      return create(name, options)();
    } catch (thrown) {
      return thrown;
    }
  })();
  expect(error).toBeInstanceOf(OptionError);
  expect(error).toBeInstanceOf(TypeError);
  expect(error).toMatchObject({ message, option });
});
