// Every name that an entry of the package exports has a doc comment, which editors show, and so has every field of the
// options that a user sets. The types of the protocol itself, which `catenary/client` and `catenary/server` export as
// they are in src/protocol/model/, are documented by the specification.

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "./page.ts";

const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");

const { exports } = JSON.parse(read("package.json")) as { exports: Record<string, string | { types: string }> };
const ENTRIES = Object.values(exports).flatMap((entry) =>
  typeof entry === "string" ? [] : [entry.types.replace("./dist/", "src/").replace(/\.d\.ts$/, ".ts")],
);

/** Types whose fields a user sets. */
const SET_BY_USERS =
  /^(?:[A-Z]\w*(?:Options|Limits|Handlers|Listeners|Settings|Credentials|Identity|Rule)|Limits|Command|Input)$/;

const DECLARATION = "export (?:async |declare |abstract )*(?:function|class|interface|type|const)";

/** The exported names of a file with the files that declare them. */
function exportsOf(file: string): (readonly [name: string, file: string])[] {
  const text = read(file);
  const lists = (pattern: RegExp): (readonly [name: string, from: string])[] =>
    [...text.matchAll(pattern)].flatMap(([, names = "", from]) =>
      names
        .split(",")
        .map((name) => name.trim().replace(/^type | as \w+$/g, ""))
        .filter((name) => name !== "")
        .map((name) => [name, from === undefined ? file : join(dirname(file), from)] as const),
    );
  const imported = new Map(lists(/^import (?:type )?\{([^}]*)\} from "(\.[^"]+)"/gm));
  return [
    ...[...text.matchAll(new RegExp(`^${DECLARATION} (\\w+)`, "gm"))].map(([, name = ""]) => [name, file] as const),
    // Types of packages are documented there.
    ...lists(/^export (?:type )?\{([^}]*)\} from "(\.[^"]+)"/gm),
    ...lists(/^export (?:type )?\{([^}]*)\};/gm).map(([name]) => [name, imported.get(name) ?? file] as const),
    ...[...text.matchAll(/^export (?:type )?\* from "([^"]+)"/gm)].flatMap(([, from = ""]) =>
      from.includes("protocol/model") ? [] : exportsOf(join(dirname(file), from)),
    ),
  ].filter(([, at]) => !at.includes("protocol/model"));
}

/** What has no doc comment: the name, or fields of it. A function with several signatures needs one comment. */
function undocumented(name: string, file: string): string[] {
  const lines = read(file).split("\n");
  const hasComment = (index: number): boolean => lines[index - 1]?.trimEnd().endsWith("*/") === true;
  const found = [...lines.keys()].filter((index) => new RegExp(`^${DECLARATION} ${name}\\b`).test(lines[index] ?? ""));
  if (!found.some(hasComment)) return [`${name} (${file})`];
  if (!SET_BY_USERS.test(name)) return [];
  return found.flatMap((begin) => {
    const length = lines.slice(begin).findIndex((line) => /^\}|;$/.test(line) && !line.startsWith("  "));
    return [...lines.keys()].slice(begin + 1, begin + length).flatMap((index) => {
      const field = /^ {2}(?:readonly )?(\w+)\??[:(<]/.exec(lines[index] ?? "")?.[1];
      return field === undefined || hasComment(index) ? [] : [`${name}.${field} (${file})`];
    });
  });
}

describe.each(ENTRIES)("%s", (entry) => {
  it("an entry point of the package: exports only names with a doc comment", () => {
    const names = exportsOf(entry);
    expect(names.length).toBeGreaterThan(2);
    expect(names.flatMap(([name, file]) => undocumented(name, file))).toEqual([]);
  });
});
