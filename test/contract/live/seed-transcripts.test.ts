// Replays the transcripts of the seeds about a Lisp and a Pharo server against `catenary serve` with live Lisp and
// Smalltalk. Each response must contain everything that the transcript shows; where a seed only sketches an output, the
// tables below have the real one. test/contract/messages checks that the transcripts are those of the seeds.

import { afterEach, describe, expect, it } from "vitest";
import { packageVersion } from "../../../src/core/files.ts";
import { expectNoProcesses } from "../cli/cli-process.ts";
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

/** The seeds and our first release happen to have the same version. */
const OTHER_VERSION: readonly Deviation[] =
  packageVersion() === "0.1.0" ? [] : [{ path: "/result/serverInfo/version", found: /^".+"$/, reason: OTHER_NAME }];

const DEVIATIONS: readonly Deviation[] = [
  ...OTHER_VERSION,
  { path: "/result/serverInfo/name", found: /^"catenary-lisp"$/, reason: OTHER_NAME },
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

const OTHER_ENGINE = "The sessions run on Amber, so Pharo is not named.";

const SMALLTALK_DEVIATIONS: readonly Deviation[] = [
  ...OTHER_VERSION,
  { path: "/result/serverInfo/name", found: /^"catenary-smalltalk"$/, reason: OTHER_NAME },
  {
    path: "/result/capabilities/tools/listChanged",
    found: /^true$/,
    reason: "We tell clients when a list has changed.",
  },
  { path: "/result/capabilities/resources/listChanged", found: /^true$/, reason: "We tell clients." },
  { path: "/result/capabilities/resources/subscribe", found: /^true$/, reason: "Definitions can be subscribed to." },
  { path: "/result/capabilities/prompts/listChanged", found: /^true$/, reason: "We tell clients." },
  { line: 139, path: "/result/tools/0/description", found: /Smalltalk expression/, reason: OTHER_ENGINE },
  {
    line: 139,
    path: "/result/tools/0/inputSchema/properties/expression/description",
    found: /^"Smalltalk expression to evaluate"$/,
    reason: OTHER_ENGINE,
  },
  {
    line: 199,
    path: "/result/content/0/text",
    found: /^"\[ERROR\] UnknownVariableError\\nThe variable foo is not defined"$/,
    reason: "The seed sketches it; this is our text.",
  },
  { line: 224, path: "/result/resources/0/description", found: /Smalltalk/, reason: OTHER_ENGINE },
  {
    line: 260,
    path: "/result/contents/0/type",
    found: /^undefined$/,
    reason: "The contents of a resource have no type.",
  },
  { line: 260, path: "/result/contents/0/text", found: /^"Amber [\d.]+"$/, reason: OTHER_ENGINE },
  { line: 284, path: "/result/resourceTemplates/0/description", found: /class/, reason: OTHER_ENGINE },
  { line: 313, path: "/result/prompts/0/description", found: /^"Review a class"$/, reason: OTHER_ENGINE },
];

const used = new Set<Deviation>();

const LISP = TRANSCRIPTS.filter(({ server }) => server === "lisp");
const PHARO = TRANSCRIPTS.filter(({ server }) => server === "pharo");

const programs: ServeProcess[] = [];
afterEach(async () => {
  for (const program of programs.splice(0)) {
    await program.kill();
    await expectNoProcesses(program.run.mark);
  }
});

/** What an entry of the server shows and the response lacks. */
function differences(deviations: readonly Deviation[], seed: string, { line, text }: Entry, found: unknown): string[] {
  const shown: unknown = JSON.parse(text);
  return missing(shown, withListedOf(shown, found)).flatMap(({ path, ...values }) => {
    const isKnown = EXCEPTIONS.some((one) => seed.startsWith(one.seed) && one.line === line && one.path === path);
    const instead = deviations.find((one) => (one.line ?? line) === line && one.path === path);
    if (instead !== undefined) used.add(instead);
    if (isKnown || instead?.found.test(JSON.stringify(values.found)) === true) return [];
    return [`line ${line ?? "-"} ${path}: ${JSON.stringify(values)}`];
  });
}

const LISTS = ["tools", "resources", "resourceTemplates", "prompts"] as const;

/** A seed shows one entry of a list; the others are ignored. */
function withListedOf(shown: unknown, found: unknown): unknown {
  type Named = { readonly name: string };
  type Listing = { readonly result?: Readonly<Record<string, readonly Named[] | undefined>> };
  const { result } = found as Listing;
  for (const list of LISTS) {
    const names = (shown as Listing).result?.[list]?.map(({ name }) => name);
    if (names === undefined || result?.[list] === undefined) continue;
    return {
      ...(found as object),
      result: { ...result, [list]: result[list].filter(({ name }) => names.includes(name)) },
    };
  }
  return found;
}

async function play(
  live: "lisp" | "smalltalk",
  deviations: readonly Deviation[],
  { seed, revision, entries }: Transcript,
): Promise<void> {
  const program = new ServeProcess({ [live]: { live } });
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
    const found = entry.within === undefined ? answer : answer[entry.within];
    expect(differences(deviations, seed, entry, found)).toEqual([]);
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
      await play("lisp", DEVIATIONS, transcript);
    },
  );

  it("uses every entry of the table", () => {
    expect(DEVIATIONS.filter((one) => !used.has(one))).toEqual([]);
  });
});

describe("a live Smalltalk behind `catenary serve`", () => {
  it.each(PHARO.map((transcript) => [transcript.seed, transcript.name, transcript] as const))(
    "seed %s, %s",
    async (_seed, _name, transcript) => {
      await play("smalltalk", SMALLTALK_DEVIATIONS, transcript);
    },
  );

  it("uses every entry of the table", () => {
    expect(PHARO).not.toEqual([]);
    expect(SMALLTALK_DEVIATIONS.filter((one) => !used.has(one))).toEqual([]);
  });
});
