// Every name that the main entries export has a doc comment, which editors show. The types of the protocol itself, which
// `catenary/client` and `catenary/server` export as they are in src/protocol/model/, are documented by the specification.

import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { ROOT } from "./page.ts";

const ENTRIES = ["src/index.ts", "src/server/index.ts", "src/testing.ts"];

const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");

/** The exported names of a file with the files that declare them. */
function exportsOf(file: string): (readonly [name: string, file: string])[] {
  const text = read(file);
  const own = [...text.matchAll(/^export (?:async )?(?:function|class|interface|type|const) (\w+)/gm)].map(
    ([, name = ""]) => [name, file] as const,
  );
  const passedOn = [...text.matchAll(/^export (?:type )?\{([^}]*)\} from "([^"]+)"/gm)].flatMap(
    ([, names = "", from = ""]) =>
      names
        .split(",")
        .map((name) => name.trim().replace(/^type /, ""))
        .filter((name) => name !== "")
        .map((name) => [name, join(dirname(file), from)] as const),
  );
  return [...own, ...passedOn].filter(([, at]) => !at.includes("protocol/model"));
}

function isDocumented(name: string, file: string): boolean {
  const lines = read(file).split("\n");
  const declaration = new RegExp(`^export (?:async |declare )?(?:function|class|interface|type|const) ${name}\\b`);
  const found = lines.flatMap((line, index) => (declaration.test(line) ? [index] : []));
  return found.some((index) => lines[index - 1]?.trimEnd().endsWith("*/") === true);
}

describe.each(ENTRIES)("%s", (entry) => {
  it("exports only names with a doc comment", () => {
    const missing = exportsOf(entry).filter(([name, file]) => !isDocumented(name, file));
    expect(missing.map(([name, file]) => `${name} (${file})`)).toEqual([]);
    expect(exportsOf(entry).length).toBeGreaterThan(5);
  });
});
