// The options of `programs()`, for code and for configs.

import {
  boolean,
  count,
  either,
  expecting,
  field,
  msOrZero,
  path,
  refine,
  required,
  secretMap,
  stringMap,
  strings,
  text,
  type OptionsOf,
} from "../core/fields.ts";
import { isObject } from "../core/values.ts";

const NAMES = strings(
  "The programs, by name (looked up on the PATH) or path. Each is one tool, with the name of the program.",
);

export const PROGRAMS = {
  programs: required("", {
    ...NAMES,
    check: (value, place) => {
      const names = NAMES.check(value ?? [], place);
      if (names.length === 0) throw place.error('must name at least one program, such as ["git"]');
      return names;
    },
  }),
  name: text("The name of the server."),
  descriptions: stringMap("Descriptions of the tools, by program. Default: what the help of the program says."),
  cwd: path("The folder that the programs run in. Default: that of this process."),
  env: secretMap("Environment variables for the programs, added to those that they inherit."),
  inheritEnv: either(
    "Which variables of our environment the programs get. false: those that most programs need, such as PATH and HOME. true: all but our own secrets. An array: those of false, and those of these names, with `*`.",
    boolean(""),
    strings(""),
  ).or(false),
  include: expecting(
    'an array of patterns, such as ["git log --oneline"]',
    strings(
      "Patterns of the command lines that may be run, such as `git log --oneline -- *`. `*` matches any characters, so `git diff*` also allows `git difftool`. Default: all.",
    ),
  ),
  exclude: expecting(
    'an array of patterns, such as ["git push*"]',
    strings("Patterns of command lines that may not be run, even if `include` has them."),
  ),
  extraOptions: boolean("Whether callers may give options that the help of the program does not list.").or(false),
  okExitCodes: refine(
    field(
      'Exit codes other than 0 that are no failure, by program, such as {"grep": [1]}. Default: none.',
      { type: "object" },
      "an object",
      (value): value is Readonly<Record<string, readonly number[]>> => isObject(value),
    ),
    (codes, place) => {
      for (const [name, list] of Object.entries(codes)) {
        if (Array.isArray(list) && list.every((code) => Number.isInteger(code))) continue;
        throw place.at(name).error("must be an array of exit codes, such as [1]");
      }
    },
  ),
  timeoutMs: msOrZero("Milliseconds after which a program is ended; 0: never.", "bounded").or(30_000),
  maxOutputBytes: count(
    "How many bytes of the output of a program are kept, for each of stdout and stderr: its beginning and its end.",
  ).or(100_000),
};

/** Options of `programs()`. */
export type ProgramsOptions = OptionsOf<typeof PROGRAMS>;
