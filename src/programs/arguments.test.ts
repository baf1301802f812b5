// What callers may pass to a program: the command line that arguments become, what is refused, and which command lines
// patterns allow.

import { expect, it } from "vitest";
import { commandLine, inputSchema, type ProgramArguments, refusal, toProgramArguments } from "./arguments.ts";
import { parseHelp } from "./help.ts";

const LIST = parseHelp(`Usage: list [OPTION]... [FILE]...
  -a, --all               all entries
      --sort=WORD         how to sort
  -w, --width <n>         the width
  -d, --data <data>       data
      --color[=WHEN]      colours
  -j [N]                  jobs
  -C <path>               folder
  -I, --ignore=PATTERN    can be given multiple times
      --when {now,later}  when
`);
const GIT = parseHelp(
  "usage: git [-C <path>] [-c <name>=<value>] [--exec-path[=<path>]] [--no-pager] <command> [<args>]",
);

function argv(given: object, help = LIST, extraOptions = false): string[] | string {
  const { value, issues } = toProgramArguments(help, extraOptions, given) as {
    value?: ProgramArguments;
    issues?: readonly { readonly path?: readonly unknown[]; readonly message: string }[];
  };
  if (value !== undefined) return [...value.options, ...value.positional];
  return (issues ?? []).map(({ path = [], message }) => `${path.join(".")} ${message}`).join("; ");
}

it.each<[string, object, string[]]>([
  ["flags", { all: true, color: false }, ["--all"]],
  [
    "values as the help writes them",
    { sort: "size", data: "x", C: "/tmp" },
    ["--sort=size", "--data", "x", "-C", "/tmp"],
  ],
  ["numbers", { width: 80 }, ["--width", "80"]],
  ["optional values, joined", { color: true, j: 4 }, ["--color", "-j4"]],
  ["optional values with a name", { color: "auto" }, ["--color=auto"]],
  ["repeated options", { ignore: ["*.a", "*.b"] }, ["--ignore=*.a", "--ignore=*.b"]],
  ["positional arguments, after the options", { _args: ["x", "-", "b c"], all: true }, ["--all", "x", "-", "b c"]],
  ["one positional argument without an array", { _args: "x" }, ["x"]],
  ["nothing", {}, []],
])("arguments become: %s", (_, given, expected) => {
  expect(argv(given)).toEqual(expected);
});

it("arguments become never other options: a value with a dash is joined to its option", () => {
  expect(argv({ sort: "--delete", data: "--output=/etc/passwd", color: "-x" })).toEqual([
    "--sort=--delete",
    "--data=--output=/etc/passwd",
    "--color=-x",
  ]);
  expect(argv({ C: "--delete" })).toBe('C must not begin with "-", because -C takes it as a word of its own');
  expect(argv({ j: -1 })).toBe('j must not begin with "-", because -j takes it as a word of its own');
});

it("arguments become: an error for options among the positional arguments, even after --", () => {
  const rule = "must not have options, which are arguments of their own; write the file -x as ./-x";
  for (const word of ["--delete", "-rf", "--"]) {
    expect(argv({ _args: ["file", word, "-exec"] })).toBe(`_args ${rule} (got ${JSON.stringify(word)})`);
  }
});

it("arguments become: a subcommand and its options; options of the program itself cannot hide before it", () => {
  expect(argv({ "no-pager": true, _args: ["log", "--oneline", "-5"] }, GIT)).toEqual([
    "--no-pager",
    "log",
    "--oneline",
    "-5",
  ]);
  expect(argv({ _args: ["--exec-path=/tmp/x", "log"] }, GIT)).toMatch(/^_args must begin with the subcommand/);
  expect(argv({ _args: ["-c", "alias.x=!sh", "x"] }, GIT, true)).toMatch(/^_args must begin with the subcommand/);
});

it.each<[object, string]>([
  [{ alll: true }, "alll is not an option of this program; did you mean all?"],
  [{ a: true }, "a is not an option of this program; did you mean all?"],
  [{ "--all": true }, "--all is not an option of this program; did you mean all?"],
  [{ files: ["x"] }, "files is not an option of this program; arguments that are not options belong in _args"],
  [
    { constructor: true },
    "constructor is not an option of this program; arguments that are not options belong in _args",
  ],
  [{ all: "yes" }, "all must be true or false, not a string"],
  [{ sort: true }, "sort must be a string, not true or false"],
  [{ sort: ["a", "b"] }, "sort may be given only once, so it must not be an array"],
  [{ sort: { a: 1 } }, "sort must be a string"],
  [{ sort: "a\0b" }, "sort must not contain a NUL character"],
  [{ width: "wide" }, "width must be a number"],
  [{ when: "never" }, "when must be one of now, later"],
  [{ ignore: [1, null] }, "ignore must be a string, or an array of them"],
  [{ _args: ["a\0b"] }, "_args must not contain a NUL character"],
  [{ _args: [{}] }, "_args must be an array of strings"],
])("arguments become: an error for %j", (given, expected) => {
  expect(argv(given)).toBe(expected);
});

it("arguments become: options that the help does not list, if they are allowed", () => {
  expect(argv({ newer: "x", z: true, level: ["1", "2"], n: 3, _args: ["--raw"] }, LIST, true)).toEqual([
    "--newer=x",
    "-z",
    "--level=1",
    "--level=2",
    "-n",
    "3",
    "--raw",
  ]);
  expect(argv({ "x --delete": true }, LIST, true)).toBe("x --delete is not a valid name of an option");
  expect(argv({ n: "-rf" }, LIST, true)).toMatch(/^n must not begin with "-"/);
});

const check = (given: object, rules: { include?: string[]; exclude?: string[] }, help = GIT): string => {
  const { value } = toProgramArguments(help, false, given) as { value: ProgramArguments };
  return refusal("git", value, rules)?.replace(/.*is not allowed/, "refused") ?? "ok";
};

it("patterns: allow whole command lines, with the options of the program in their place", () => {
  const rules = { include: ["git status*", "git log*"] };
  const refused = "refused; the patterns that are allowed: git status*, git log*";
  expect(check({ _args: ["status"] }, rules)).toBe("ok");
  expect(check({ _args: ["log", "--oneline"] }, rules)).toBe("ok");
  expect(check({ _args: ["push"] }, rules)).toBe(refused);
  expect(check({}, rules)).toBe(refused);
  expect(check({ c: "core.pager=evil", _args: ["log"] }, rules)).toBe(refused);
  expect(check({ "exec-path": "/tmp/evil", _args: ["status"] }, rules)).toBe(refused);
  expect(check({ "no-pager": true, _args: ["log"] }, { include: ["git --no-pager log*"] })).toBe("ok");
  expect(check({ _args: ["log"] }, { include: [] })).toBe("refused; the patterns that are allowed: ");
});

it("patterns let no options or other subcommands through, unless a * stands where one can be", () => {
  const strict = { include: ["git status", "git diff --stat", "git log --oneline -- *"] };
  expect(check({ _args: ["diff", "--stat"] }, strict)).toBe("ok");
  expect(check({ _args: ["log", "--oneline", "--", "docs"] }, strict)).toBe("ok");
  expect(check({ _args: ["log", "--oneline", "--output=x", "--", "docs"] }, strict)).toMatch(/^refused/);
  const difftool = { _args: ["difftool", "-y", "-x", "touch x"] };
  expect(check(difftool, strict)).toMatch(/^refused/);
  expect(check(difftool, { include: ["git diff", "git diff *"] })).toMatch(/^refused/);
  expect(check(difftool, { include: ["git diff*"] })).toBe("ok");
});

it("patterns: deny before they allow, whatever options of the program come first", () => {
  const rules = { include: ["git *"], exclude: ["git push*", "*--output*"] };
  expect(check({ _args: ["log"] }, rules)).toBe("ok");
  expect(check({ _args: ["push"] }, rules)).toBe('refused: the pattern "git push*" denies it');
  expect(check({ c: "a=b", C: "/x", _args: ["push", "-f"] }, rules)).toBe('refused: the pattern "git push*" denies it');
  expect(check({ _args: ["log", "--output=x"] }, rules)).toBe('refused: the pattern "*--output*" denies it');
});

it("patterns see a word with a space or a quote as one word", () => {
  expect(commandLine(["git", "log", "a b", 'say "hi"', "", "tab\t", "é", "it's"])).toBe(
    'git log "a b" "say \\"hi\\"" "" "tab\\t" é "it\'s"',
  );
  const rules = { include: ["git log* -- docs"] };
  expect(check({ _args: ["log", "-1", "--", "docs"] }, rules)).toBe("ok");
  expect(check({ _args: ["log", "--output=x -- docs"] }, rules)).toMatch(/^refused/);
  expect(check({ _args: ["log x", "--", "docs"] }, rules)).toMatch(/^refused/);
});

it("the schema has the types, choices and spellings of the options", () => {
  expect(inputSchema(LIST, false)).toMatchObject({
    type: "object",
    additionalProperties: false,
    properties: {
      _args: { type: "array", items: { type: "string" } },
      all: { type: "boolean", description: "all entries (--all, -a)" },
      width: { type: "number" },
      color: { type: ["string", "boolean"] },
      ignore: { type: "array", items: { type: "string" } },
      when: { type: "string", enum: ["now", "later"] },
      C: { type: "string", description: "folder (-C)" },
    },
  });
  expect(inputSchema(GIT, true)).toMatchObject({ additionalProperties: true });
});
