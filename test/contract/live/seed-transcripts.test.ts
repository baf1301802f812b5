// Replays the transcripts of the two seeds about a Lisp server against `catenary serve` with live Lisp. Each response
// must contain everything that the transcript shows; where a seed only sketches a Lisp's output, the table below has
// the real one. test/contract/messages checks that the transcripts are those of the seeds.

import { afterEach, describe, expect, it } from "vitest";
import { expectNoProcesses } from "../cli/cli-process.ts";
import { packageVersion } from "../../../src/core/files.ts";
import { hasSbcl } from "../../support/setup/sbcl.ts";
import { missing, LineValidator } from "../messages/transcript-checks.ts";
import { EXCEPTIONS } from "../messages/seed-exceptions.ts";
import { TRANSCRIPTS, type Entry, type Transcript } from "../messages/golden-transcripts.ts";
import { ServeProcess } from "./serve-process.ts";

interface Deviation {
  /** The line of the message in its seed; all messages if it is left out. */
  readonly line?: number;
  /** A JSON pointer to the value that differs. */
  readonly path: string;
  readonly found: RegExp;
  readonly reason: string;
}

const OTHER_NAME = "Our program has its own name.";
const SKETCH = "The seed sketches it; this is SBCL's text.";

const DEVIATIONS: readonly Deviation[] = [
  { path: "/result/serverInfo/name", found: /^"catenary-lisp"$/, reason: OTHER_NAME },
  // The seed and our first release happen to have the same version.
  ...(packageVersion() === "0.1.0"
    ? []
    : [{ path: "/result/serverInfo/version", found: /^".+"$/, reason: OTHER_NAME }]),
  { line: 118, path: "/result/tools/0/description", found: /Common Lisp/, reason: "Our text says more." },
  {
    line: 118,
    path: "/result/tools/0/inputSchema/properties/code/description",
    found: /\w/,
    reason: "Our text says more.",
  },
  {
    line: 180,
    path: "/result/content/0/text",
    found:
      /^"\[ERROR\] DIVISION-BY-ZERO\\narithmetic error DIVISION-BY-ZERO signalled\\n.*\\n\\n\[Backtrace\]\\n0: .*\(\/ 1 0\)/,
    reason: SKETCH,
  },
  {
    line: 242,
    path: "/result/content/0/text",
    found: /^"\[ERROR\] [A-Z-]+\\n.*CONDITION-TYPE.*\\n\\n\[Backtrace\]\\n0: /,
    reason: SKETCH,
  },
];

const used = new Set<Deviation>();

const LISP = TRANSCRIPTS.filter(({ server }) => server === "lisp");

const programs: ServeProcess[] = [];
afterEach(async () => {
  for (const program of programs.splice(0)) {
    await program.kill();
    await expectNoProcesses(program.run.mark);
  }
});

/** What an entry of the server shows and the response lacks. */
function differences(seed: string, { line, text }: Entry, found: unknown): string[] {
  const shown: unknown = JSON.parse(text);
  return missing(shown, withToolsOf(shown, found)).flatMap(({ path, ...values }) => {
    const isKnown = EXCEPTIONS.some((one) => seed.startsWith(one.seed) && one.line === line && one.path === path);
    const instead = DEVIATIONS.find((one) => (one.line ?? line) === line && one.path === path);
    if (instead !== undefined) used.add(instead);
    if (isKnown || instead?.found.test(JSON.stringify(values.found)) === true) return [];
    return [`line ${line ?? "-"} ${path}: ${JSON.stringify(values)}`];
  });
}

/** A seed shows one tool; the others are ignored. */
function withToolsOf(shown: unknown, found: unknown): unknown {
  type Listing = { readonly result?: { readonly tools?: readonly { readonly name: string }[] } };
  const named = (shown as Listing).result?.tools?.map(({ name }) => name);
  const { result } = found as Listing;
  if (named === undefined || result?.tools === undefined) return found;
  return {
    ...(found as object),
    result: { ...result, tools: result.tools.filter(({ name }) => named.includes(name)) },
  };
}

async function play({ seed, revision, entries }: Transcript): Promise<void> {
  const program = new ServeProcess({ lisp: { live: "lisp" } });
  programs.push(program);
  const judge = new LineValidator(revision);
  let answer: { readonly result?: unknown } = {};
  for (const entry of entries) {
    if (entry.from === "client") {
      judge.sent(entry.text);
      program.send(entry.text);
      continue;
    }
    if (entry.within === undefined) {
      const line = await program.next();
      expect(judge.received(line), line).toEqual([]);
      answer = JSON.parse(line) as typeof answer;
    }
    expect(differences(seed, entry, entry.within === undefined ? answer : answer[entry.within])).toEqual([]);
  }
  // Any unexpected message would come before this response.
  program.send('{"jsonrpc":"2.0","id":"last","method":"ping"}');
  expect(await program.next()).toBe('{"jsonrpc":"2.0","id":"last","result":{}}');
  expect(await program.end()).toEqual({ code: 0, unread: "" });
  expect(program.run.err).toBe("");
}

describe.runIf(hasSbcl())("a live Lisp behind `catenary serve`", () => {
  it("covers the transcripts of the seeds", () => {
    expect(LISP.length).toBeGreaterThan(10);
    expect(LISP.flatMap(({ entries }) => entries.filter(({ text }) => text.includes("evaluate-lisp")))).not.toEqual([]);
  });

  it.each(LISP.map((transcript) => [transcript.seed, transcript.name, transcript] as const))(
    "seed %s, %s",
    async (_seed, _name, transcript) => {
      await play(transcript);
    },
  );

  it("uses every entry of the table", () => {
    expect(DEVIATIONS.filter((one) => !used.has(one))).toEqual([]);
  });
});
