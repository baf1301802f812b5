// How long a client waits for a completion in a live session with 10,000 symbols of its own, in each language, beside a
// session that has none. Both ask for names that begin in the same way, in turns. The limit is for the whole answer.

import { spawnSync } from "node:child_process";
import { connect, type Client } from "catenary";
import { javascript, lisp, smalltalk } from "catenary/live";
import { BASELINE, createFigure, median, OURS, takeTurns, type Figure } from "./figures.ts";
import type { Measurement } from "./measurement.ts";

const SYMBOLS = 10_000;
const CHUNK = 500;
const ROUNDS = 100;
const WARM_UP = 10;
const MAX_MS = 20;

interface Subject {
  readonly name: string;
  readonly create: () => ReturnType<typeof javascript>;
  readonly tool: string;
  /** Code that defines the symbols with these numbers. */
  readonly define: (numbers: readonly number[]) => string;
  readonly typed: string;
}

const SUBJECTS: readonly Subject[] = [
  {
    name: "JavaScript",
    create: () => javascript(),
    tool: "evaluate-js",
    define: (numbers) => `var ${numbers.map((n) => `symbol${n} = ${n}`).join(", ")}; 1`,
    typed: "symbol12",
  },
  {
    name: "Common Lisp",
    create: () => lisp(),
    tool: "evaluate-lisp",
    define: (numbers) => numbers.map((n) => `(defvar symbol${n} ${n})`).join(" "),
    typed: "(list symbol12",
  },
  {
    name: "Smalltalk (Amber)",
    create: () => smalltalk(),
    tool: "evaluate-smalltalk",
    // Selectors, which a block that is not evaluated makes known too.
    define: (numbers) => `[${numbers.map((n) => `nil symbol${n}`).join(". ")}]. 1`,
    typed: "nil symbol12",
  },
];

const REF = { type: "ref/resource", uri: "live://session/{name}/completions/{code}" } as const;

async function complete(client: Client, session: string, typed: string): Promise<readonly string[]> {
  const { completion } = await client.complete(REF, { name: "code", value: typed }, { arguments: { name: session } });
  return completion.values;
}

async function measureLanguage({ name, create, tool, define, typed }: Subject, rounds: number): Promise<Figure> {
  const server = create();
  const client = await connect(server);
  try {
    const evaluate = async (session: string, code: string): Promise<void> => {
      const { isError, content } = await client.callTool(tool, { session, code });
      if (isError === true) throw new Error(`${name}: ${JSON.stringify(content)}`);
    };
    const numbers = Array.from({ length: SYMBOLS }, (_none, n) => n);
    for (let at = 0; at < SYMBOLS; at += CHUNK) await evaluate("full", define(numbers.slice(at, at + CHUNK)));
    await evaluate("empty", "1");
    const found = await complete(client, "full", typed);
    if (found.length < 100) throw new Error(`${name}: ${found.length} completions of ${typed}`);
    const measure = (session: string) => async (): Promise<number> => {
      const startedAt = performance.now();
      await complete(client, session, typed);
      return performance.now() - startedAt;
    };
    const subjects = { [BASELINE]: measure("empty"), [OURS]: measure("full") };
    await takeTurns(subjects, WARM_UP);
    const times = await takeTurns(subjects, rounds);
    return createFigure("completion", name, "ms", times, { extra: MAX_MS - median(times[BASELINE] ?? []) });
  } finally {
    await client.close();
    await server.close();
  }
}

export const measureCompletion: Measurement = async ({ onProgress, divisor }) => {
  const figures: Figure[] = [];
  for (const subject of SUBJECTS) {
    if (subject.tool === "evaluate-lisp" && spawnSync("sbcl", ["--version"]).status !== 0) {
      onProgress("left out completion in Lisp: SBCL is not installed (apt-get install sbcl)");
      continue;
    }
    onProgress(`completion in ${subject.name}: ${ROUNDS / divisor} rounds with ${SYMBOLS} symbols`);
    figures.push(await measureLanguage(subject, ROUNDS / divisor));
  }
  return figures;
};
