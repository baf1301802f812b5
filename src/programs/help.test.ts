// The options that are read from help texts of the common layouts, and what is left out of them.

import { expect, it } from "vitest";
import { parseHelp, type ProgramOption } from "./help.ts";

/** An option in one line: its flag, aliases, value, type or choices, and whether it may be repeated. */
function shown({ flag, aliases, value, separator, type, choices, isRepeatable }: ProgramOption): string {
  const of = choices.length > 0 ? choices.join("|") : type;
  const given = value === "none" ? "" : value === "optional" ? `[=${of}]` : `${separator}${of}`;
  return `${[flag, ...aliases].join(",")}${given}${isRepeatable ? "..." : ""}`;
}

const options = (text: string): string[] => parseHelp(text).options.map(shown);

it("the help of: a GNU program", () => {
  const text = `Usage: ls [OPTION]... [FILE]...
List information about the FILEs (the current directory by default).

Mandatory arguments to long options are mandatory for short options too.
  -a, --all                  do not ignore entries starting with .
      --block-size=SIZE      with -l, scale sizes by SIZE when printing them;
                             e.g., '--block-size=M'
  -c                         with -lt: sort by ctime
                             -l is not needed

      --color[=WHEN]         color the output WHEN
  -A, --catenate, --concatenate   append
  -m, --max-count=NUM        stop after NUM lines
  -n, --lines=[-]NUM         print the first NUM lines
  -f FILE, --file=FILE, --makefile=FILE
                             Read FILE as a makefile.
      --help     display this help and exit
      --version  output version information and exit
`;
  expect(options(text)).toEqual([
    "--all,a",
    "--block-size=string",
    "-c",
    "--color[=string]",
    "--catenate,A,concatenate",
    "--max-count,m=number",
    "--lines,n=string",
    "--file,f,makefile=string",
  ]);
  const { summary, usage, hasSubcommands, options: found } = parseHelp(text);
  expect({ summary, usage, hasSubcommands }).toEqual({
    summary: "List information about the FILEs (the current directory by default).",
    usage: "ls [OPTION]... [FILE]...",
    hasSubcommands: false,
  });
  expect(found.map(({ description }) => description).slice(1, 3)).toEqual([
    "with -l, scale sizes by SIZE when printing them; e.g., '--block-size=M'",
    "with -lt: sort by ctime -l is not needed",
  ]);
});

it("the help of: git, which shows its options in the usage, with their names as they are written", () => {
  const help = parseHelp(`usage: git [-v | --version] [-h | --help] [-C <path>] [-c <name>=<value>]
           [--exec-path[=<path>]] [--html-path] [-p | --paginate | -P | --no-pager]
           [--git-dir=<path>] [--config-env=<name>=<envvar>]
           <command> [<args>]

These are common Git commands used in various situations:

start a working area (see also: git help tutorial)
   clone     Clone a repository into a new directory
   init      Create an empty Git repository or reinitialize an existing one
`);
  expect(help.options.map(shown)).toEqual([
    "-C string",
    "-c string",
    "--exec-path[=string]",
    "--html-path",
    "-p",
    "--paginate",
    "-P",
    "--no-pager",
    "--git-dir=string",
    "--config-env=string",
  ]);
  expect(help).toMatchObject({ hasSubcommands: true, subcommands: ["clone", "init"], summary: undefined });
});

it("the help of: a program with cobra, with its types and choices", () => {
  const help = parseHelp(`
Usage:  docker [OPTIONS] COMMAND

A self-sufficient runtime for containers

Common Commands:
  run         Create and run a new container from an image
  buildx*     Docker Buildx

Global Options:
      --config string      Location of client config files (default
                           "~/.docker")
  -H, --host list          Daemon socket to connect to
  -l, --log-level string   Set the logging level ("debug", "info",
                           "warn") (default "info")
      --retries int        How often
      --tls                Use TLS; implied by --tlsverify
  -v, --version            Print version information and quit

Run 'docker COMMAND --help' for more information on a command.
`);
  expect(help.options.map(shown)).toEqual([
    "--config string",
    "--host,H string...",
    "--log-level,l debug|info|warn",
    "--retries number",
    "--tls",
  ]);
  expect(help).toMatchObject({
    summary: "A self-sufficient runtime for containers",
    hasSubcommands: true,
    subcommands: ["run", "buildx"],
  });
});

it("the help of: a program with argparse, without an option of two values", () => {
  const help = parseHelp(`usage: prog [-h] [--level {1,2,3}] [-f FILE] [--names NAME [NAME ...]] file

Does things well.

options:
  -h, --help            show this help message and exit
  --level {1,2,3}       the level
  -f FILE, --file FILE  the file
  --names NAME [NAME ...]
                        names
  --replace OLD NEW     two values
`);
  expect(help.options.map(shown)).toEqual(["--level 1|2|3", "--file,f string", "--names string..."]);
  expect(help).toMatchObject({ summary: "Does things well.", hasSubcommands: false });
});

it("the help of: a program with clap or commander", () => {
  const text = `Usage: thing [OPTIONS] [COMMAND]

Options:
  -p, --port <PORT>      The port [default: 80]
      --color <WHEN>     When [possible values: auto, always, never]
  -v, --verbose...       More
      --[no-]cache       Use the cache
  -I, --include <DIR>... Folders
  -b, --cookie <data|filename>  Send cookies
  -n <n>                 Number of lines
  -e, --env <KEY=VALUE>  Can be given multiple times
  -s, --size <size>      The size (choices: "small", "large")
`;
  expect(options(text)).toEqual([
    "--port,p number",
    "--color auto|always|never",
    "--verbose,v",
    "--cache",
    "--no-cache",
    "--include,I string...",
    "--cookie,b string",
    "-n number",
    "--env,e string...",
    "--size,s small|large",
  ]);
  expect(parseHelp(text).hasSubcommands).toBe(true);
});

it("the help of: a program with Go's flag, with yargs, and of BSD", () => {
  expect(
    options('Usage of tool:\n  -addr string\n    \tthe address (default ":80")\n  -n int\n    \tnumber\n  -v\tmore'),
  ).toEqual(["-addr string", "-n number", "-v"]);
  const yargs = `app.js <file>

Options:
      --version  Show version number                            [boolean]
  -p, --port     The port                       [number] [default: 3000]
  -m, --mode     The mode               [string] [choices: "a", "b"]
  -x, --exclude  What to leave out                                [array]
  -q, --quiet    Less                                           [boolean]
`;
  expect(options(yargs)).toEqual(["--port,p=number", "--mode,m=a|b", "--exclude,x=string...", "--quiet,q"]);
  expect(options("usage: cp [-R [-H | -L]] [-fi | -n] source target")).toEqual(["-R", "-H", "-L", "-f", "-i", "-n"]);
});

it("leaves out options that stand for any number", () => {
  const text = "  -C, --context=NUM  print context\n  -NUM  same as --context=NUM\n  -COLUMN, --columns=COLUMN  output";
  expect(options(`Usage: grep [-WIDTH] [OPTION]...\n${text}`)).toEqual(["--context,C=number", "--columns=string"]);
});

it("finds nothing in an error, and in text that it does not understand", () => {
  for (const text of ["", "sh: 0: Illegal option --", "  -x}broken\n --=\n -", "\u0000\ufffd".repeat(1_000)]) {
    expect(parseHelp(text)).toMatchObject({ options: [], summary: undefined, hasSubcommands: false });
  }
});

it("removes colours and struck-over letters, and limits the number of options", () => {
  const bold = (word: string): string => [...word].map((letter) => `${letter}\b${letter}`).join("");
  expect(options(`\u001b[1mUsage:\u001b[0m x\n\n  ${bold("--all")}  everything`)).toEqual(["--all"]);
  const many = Array.from({ length: 1_000 }, (_, at) => `  --option${at}  one of many`).join("\n");
  expect(options(many)).toHaveLength(300);
});

it("takes time in proportion to the text", () => {
  for (const part of ["[", "--a ", "-a, ", "<a", '("a", ', "a".repeat(50), "  -a [a ", "{a,"]) {
    expect(() => parseHelp(`Usage: ${part.repeat(20_000)}\n  --x ${part.repeat(20_000)}`)).not.toThrow();
  }
});
