// Parsing of flags, and the error for each mistake.

import { expect, it } from "vitest";
import { boolean, strings } from "../core/fields.ts";
import { UsageError } from "./command.ts";
import { flag, flagLines, oneOf, parseFlags, seconds, section } from "./flags.ts";

const FLAGS = {
  http: flag("ADDRESS", ""),
  path: flag("PATH", "", { expected: "a path" }),
  "allow-host": flag("NAME", strings("")),
  json: boolean(""),
};

const parsed = (...args: readonly string[]): unknown => parseFlags("serve", args, FLAGS);

it("a command line is parsed", () => {
  expect(parsed("a.js", "--path", "/x", "--allow-host", "a", "--allow-host=b", "--json", "--", "--c")).toMatchObject({
    words: ["a.js", "--c"],
    values: { path: "/x", "allow-host": ["a", "b"], json: true },
  });
  expect(parsed("--path=--odd")).toMatchObject({ values: { path: "--odd" } });
  expect(parsed()).toMatchObject({ words: [], values: {} });
});

it.each([
  [["--pat", "/x"], "There is no option --pat; did you mean --path?"],
  [["--allow-hosts", "a"], "There is no option --allow-hosts; did you mean --allow-host?"],
  [["--allow"], "There is no option --allow; did you mean --allow-host?"],
  [["--jsno"], "There is no option --jsno; did you mean --json?"],
  [["--verbose"], "There is no option --verbose; catenary serve --help lists the options"],
  [["--constructor"], "There is no option --constructor; catenary serve --help lists the options"],
  [["-x"], "There is no option -x; catenary serve --help lists the options"],
  [["-j"], "There is no option -j; catenary serve --help lists the options"],
  [["-p", "3000"], "There is no option -p; did you mean --http :PORT?"],
  [["--port", "3000"], "There is no option --port; did you mean --http :PORT?"],
  [["--port=3000"], "There is no option --port; did you mean --http :PORT?"],
  [["-e", "A=b"], "There is no option -e; catenary serve --help lists the options"],
  [["--path"], "--path needs a path"],
  [["--path", "--json"], "--path needs a path"],
  [["--path="], "--path needs a path"],
  [["--allow-host"], "--allow-host needs a value"],
  [["--path", "/x", "--path=/y"], "--path was given twice, and takes one value"],
  [["--json=yes"], "--json takes no value"],
])("a command line: %j is refused in one message", (args, message) => {
  expect(() => parsed(...args)).toThrow(new UsageError(message));
});

const flags = {
  level: oneOf("LEVEL", "The [level](levels.md), `high` or `low`.", ["high", "low"], "level"),
  ...section("More", { wait: seconds("How long to wait."), tag: flag("TAG", strings("A tag.")) }),
  follow: { ...boolean("Goes on."), short: "f" },
};

it("flags convert and check their values", () => {
  const { values } = parseFlags("try", ["--wait", "1.5", "--level=low", "-f", "--tag", "a", "--tag", "b"], flags);
  expect(values).toEqual({ wait: 1_500, level: "low", follow: true, tag: ["a", "b"] });
  expect(() => parseFlags("try", ["--level", "hihg"], flags)).toThrow(
    new UsageError("--level hihg is not a valid level; did you mean high?"),
  );
});

it("flags are listed under their headings, without Markdown, and wrapped", () => {
  expect(flagLines(flags, 36)).toEqual([
    "  --level LEVEL  The level, high or",
    "                 low.",
    "",
    "More:",
    "  --wait SECONDS How long to wait.",
    "  --tag TAG      A tag. Repeatable.",
    "",
    "Options:",
    "  -f, --follow   Goes on.",
  ]);
});
