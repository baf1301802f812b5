// What callers get through every transform, and through every ordered pair of transforms, is as it was recorded. The
// recordings of single transforms are kept as text, the others as checksums for each section. To record anew, set
// UPDATE_GOLDEN=1 and CATENARY_LONG=1, and read the diff. RECORD_FULL=FOLDER writes all recordings as text, so that those
// of two commits can be compared with `diff -r`.

import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it } from "vitest";
import { IS_LONG } from "../../support/thoroughness.ts";
import { PAIRS, SINGLES } from "./cases.ts";
import { CONFIGS } from "./configs.ts";
import { record, type Recording } from "./recorder.ts";

const GOLDEN = fileURLToPath(new URL("recorded/", import.meta.url));
const SUMS = join(GOLDEN, "checksums.txt");
const UPDATE = process.env["UPDATE_GOLDEN"] === "1";
const FULL = process.env["RECORD_FULL"];

const folder = mkdtempSync(join(tmpdir(), "catenary-recorded-"));
const sums = new Map(
  readText(SUMS)
    .split("\n")
    .filter((text) => text !== "")
    .map((text) => text.split(": ", 2) as [string, string]),
);
afterAll(() => {
  rmSync(folder, { recursive: true });
  if (UPDATE) writeFileSync(SUMS, [...sums].map(([name, sum]) => `${name}: ${sum}\n`).join(""));
});

/** Pairs of the short run, in which names are hidden, renamed and replaced. It also has each transform alone. */
const QUICK = new Set(["filter rename two", "rename filter two", "pin rename two", "search authorize two"]);
const CASES = [...SINGLES, ...PAIRS, ...CONFIGS].filter(
  ({ name, isText }) => IS_LONG || UPDATE || (isText && name.endsWith("two")) || QUICK.has(name),
);

it.each(CASES)("$name", async (tested) => {
  const recording = await record(tested, folder);
  const { isText } = tested;
  const name = tested.name.replaceAll(" ", "+");
  const text = textOf(recording);
  if (FULL !== undefined) {
    mkdirSync(FULL, { recursive: true });
    writeFileSync(join(FULL, `${name}.txt`), text);
  }
  const sum = sumOf(recording);
  if (UPDATE) {
    mkdirSync(GOLDEN, { recursive: true });
    if (isText) writeFileSync(join(GOLDEN, `${name}.txt`), text);
    else sums.set(tested.name, sum);
  } else if (isText) {
    expect(text).toBe(readText(join(GOLDEN, `${name}.txt`)));
  } else if (sum !== sums.get(tested.name)) {
    const file = join(mkdtempSync(join(tmpdir(), "catenary-differs-")), `${name}.txt`);
    writeFileSync(file, text);
    expect(sum, `What callers get is now in ${file}`).toBe(sums.get(tested.name));
  }
});

function readText(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (UPDATE) return "";
    throw error;
  }
}

/** What a second caller gets is left out where it is the same. */
function textOf(recording: Recording): string {
  return [...recording]
    .map(([section, lines]) => {
      const other = section.replace(/^bob/, "ada");
      const isSame = other !== section && recording.get(other)?.join("\n") === lines.join("\n");
      return `# ${section}\n${isSame ? `(the same as ${other})` : lines.join("\n")}\n`;
    })
    .join("\n");
}

function sumOf(recording: Recording): string {
  return [...recording]
    .map(([section, lines]) => `${section} ${createHash("sha256").update(lines.join("\n")).digest("hex").slice(0, 16)}`)
    .join(", ");
}
