// The official suite as a program: what scenarios it has for a side, and what it found when they were run. Its own
// exit code forgives what a revision does not score, so only what it writes down is read: the checks of a scenario
// and, of a client, what that said. What of this is good is judged elsewhere.

import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { constants, setPriority, tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Installed } from "./install-suite.ts";

const execute = promisify(execFile);

/** Where the command of a client is run. */
export const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const LIST_MS = 30_000;
const RUN_MS = 300_000;
/** What a client may take for a scenario: the suite starts those of a set all at once. */
const CLIENT_MS = 120_000;
/** The newest revision is where the suite runs what belongs to an extension. */
export const EXTENSION = "extension";

export interface Check {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly status: "SUCCESS" | "FAILURE" | "WARNING" | "SKIPPED" | "INFO";
  readonly errorMessage?: string;
  readonly details?: unknown;
}

export interface Scenario {
  readonly name: string;
  /** Revisions, or the word "extension". */
  readonly at: readonly string[];
}

export interface Outcome {
  readonly checks: readonly Check[];
  /** What a client wrote on stdout and stderr. */
  readonly said: string;
  readonly noise: string;
}

/** By scenario. */
export type Results = Map<string, Outcome>;

/** Whom it judges. A server is named by its address, a client by its command, with a space between its words. */
export type Side = "server" | "client";

export class Suite {
  readonly #installed: Installed;
  readonly #side: Side;

  constructor(installed: Installed, side: Side) {
    this.#installed = installed;
    this.#side = side;
  }

  /** Every scenario for its side that the suite knows. */
  async scenarios(): Promise<Scenario[]> {
    const text = await this.#say(["list", `--${this.#side}`], LIST_MS);
    const lines = [...text.matchAll(/^ +- (\S+) \[(.+)\]$/gm)];
    return lines.map(([, name = "", at = ""]) => ({ name, at: at.split(",") }));
  }

  /** Those that it runs for a revision, whether or not they count there. */
  async required(revision: string): Promise<string[]> {
    const text = await this.#say(["list", "--requirements", revision], LIST_MS);
    const title = this.#side === "server" ? "Server" : "Client";
    const [, ours = ""] = new RegExp(`^${title} scenarios.*\\n((?: +- \\S+\\n)+)`, "m").exec(text) ?? [];
    const scored = [...ours.matchAll(/- (\S+)/g)];
    const unscored = [...text.matchAll(new RegExp(`^ +- (\\S+) \\[${this.#side}\\]$`, "gm"))];
    return [...scored, ...unscored].map(([, name = ""]) => name);
  }

  /** All that a revision asks for: of a server one scenario after the other, of a client all at once. */
  runRequired(subject: string, revision: string): Promise<Results> {
    return this.#run(subject, ["--requirements", revision]);
  }

  /** All that it has for a revision, for one that has no such set. */
  runAll(subject: string, revision: string): Promise<Results> {
    return this.#run(subject, ["--suite", "all", "--spec-version", revision]);
  }

  runScenario(subject: string, scenario: string, revision: string): Promise<Results> {
    return this.#run(subject, ["--scenario", scenario, "--spec-version", revision]);
  }

  async #run(subject: string, what: readonly string[]): Promise<Results> {
    const folder = await mkdtemp(join(tmpdir(), "catenary-conformance-"));
    const whom = this.#side === "server" ? ["--url", subject] : ["--command", subject, "--timeout", String(CLIENT_MS)];
    try {
      // It exits with 1 where a check fails, which is for the reader of the checks to find.
      await this.#say([this.#side, ...whom, ...what, "-o", folder], RUN_MS).catch((error: unknown) => {
        if ((error as { readonly code?: unknown }).code !== 1) throw error;
      });
      return await resultsIn(folder, this.#side === "server" ? "server-" : "");
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async #say(args: readonly string[], timeout: number): Promise<string> {
    const { node, script } = this.#installed;
    const running = execute(node, [script, ...args], { cwd: ROOT, timeout, maxBuffer: 64 * 1024 * 1024 });
    const { pid } = running.child;
    // It starts dozens of clients at once: the tests that run beside it must not starve.
    if (this.#side === "client" && pid !== undefined) setPriority(pid, constants.priority.PRIORITY_BELOW_NORMAL);
    return (await running).stdout;
  }
}

/** Whether a scenario is for a revision; what belongs to an extension is run at the newest. */
export function isAt({ at }: Scenario, revision: string, newest: string): boolean {
  return at.includes(revision) || (revision === newest && at.includes(EXTENSION));
}

/** Each scenario has a folder, named by it and by the time; a name of two words stands in two folders. */
async function resultsIn(folder: string, prefix: string): Promise<Results> {
  const results: Results = new Map();
  const files = await readdir(folder, { recursive: true });
  const read = (...path: string[]): Promise<string> => readFile(join(folder, ...path), "utf8");
  for (const file of files.filter((name) => basename(name) === "checks.json")) {
    const of = dirname(file);
    const [, scenario] = /^(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(of) ?? [];
    if (scenario === undefined || !scenario.startsWith(prefix))
      throw new Error(`The suite wrote "${of}", which is no scenario's folder`);
    const [checks, said, noise] = await Promise.all([
      read(file),
      read(of, "stdout.txt").catch(() => ""),
      read(of, "stderr.txt").catch(() => ""),
    ]);
    results.set(scenario.slice(prefix.length), { checks: JSON.parse(checks) as Check[], said, noise });
  }
  return results;
}

// What the checks of a scenario come to: which of them are not as they should be, in words that tell where to look,
// and how many were met. A check is good or it is a fault; the few that only tell something are named by each side.


const MOST_DETAILS = 2_000;

/** All that is not a success, but for what the suite only tells. */
export function faultsOf(checks: readonly Check[], isTold: (check: Check) => boolean): string[] {
  const bad = checks.filter((check) => check.status !== "SUCCESS" && !isTold(check));
  return bad.map(({ status, id, name, description, errorMessage, details }) =>
    [`${status} ${id} (${name}): ${description}`, errorMessage, JSON.stringify(details)?.slice(0, MOST_DETAILS)].join(
      "\n  ",
    ),
  );
}

/** How many different checks were met: a scenario repeats some of them with every request. */
export function met(checks: readonly Check[]): number {
  return new Set(checks.filter(({ status }) => status === "SUCCESS").map(({ id, name }) => `${id} ${name}`)).size;
}

export interface Judged {
  readonly name: string;
  readonly checks: readonly Check[];
  readonly isTold: (check: Check) => boolean;
}

/** For the reader of a failure: which scenarios are in trouble, at one look. */
export function tell(title: string, all: readonly Judged[]): void {
  const counted = all.map(({ name, checks, isTold }) => ({ name, good: met(checks), bad: faultsOf(checks, isTold) }));
  const troubled = counted.filter(({ bad }) => bad.length > 0);
  if (troubled.length === 0) return;
  const rows = troubled.map(({ name, good, bad }) => `  ${name}: ${good} met, ${bad.length} not`);
  console.log(`${title}, ${troubled.length} of ${all.length} scenarios:\n${rows.join("\n")}`);
}
