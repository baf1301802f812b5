// Compares recordings of the wire: `node --import tsx test/support/wire/compare.ts BEFORE AFTER`. A line is lost if every
// run of BEFORE has it and no run of AFTER, and new if no run of BEFORE has it and some run of AFTER. What only some runs
// have depends on timing, and is not reported as lost.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseRecording, type Recording } from "./recording.ts";

const [before, after] = process.argv.slice(2);
if (before === undefined || after === undefined) {
  process.stderr.write("Usage: node --import tsx test/support/wire/compare.ts BEFORE AFTER\n");
  process.exit(1);
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((path) => path.endsWith(".txt"));
}

function readIn(folder: string, file: string): Recording | undefined {
  try {
    return parseRecording(readFileSync(join(folder, file), "utf8"));
  } catch {
    return undefined;
  }
}

let differences = 0;
let same = 0;
for (const file of [...new Set([...filesIn(before), ...filesIn(after)])].toSorted()) {
  const [old, recent] = [readIn(before, file), readIn(after, file)];
  if (old === undefined || recent === undefined) {
    process.stdout.write(`${file}: recorded only ${old === undefined ? "after" : "before"}\n`);
    continue;
  }
  const lost = [...old.counts].filter(([line, count]) => count === old.runs && !recent.counts.has(line));
  const added = [...recent.counts].filter(([line]) => !old.counts.has(line));
  same += [...recent.counts.keys()].filter((line) => old.counts.has(line)).length;
  const lines = [...lost.map(([line]) => `- ${line}`), ...added.map(([line]) => `+ ${line}`)];
  if (lines.length > 0) process.stdout.write(`${file}\n${lines.map((line) => `  ${line}\n`).join("")}`);
  differences += lines.length;
}
process.stdout.write(`${same} lines are the same, ${differences} differ\n`);
process.exitCode = differences === 0 ? 0 : 6;
