// Runs the official suite as a program and reads its results. Its exit code ignores checks that do not count for a
// revision, so the tests judge the files that it writes: the checks of each scenario and the output of a client.

import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { InstalledSuite } from "./install-suite.ts";
import { PROGRAM_MS } from "../support/waiting.ts";

const execute = promisify(execFile);

/** The working directory of clients. */
export const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const RUN_TIMEOUT_MS = 900_000;
/** For one scenario of a client. It is long because the suite starts many clients at once. */
const CLIENT_TIMEOUT_MS = 300_000;
/**
 * How often a failed scenario is run again, alone. The suite starts dozens of clients at once, and some of its own time
 * limits are half a second, so that a busy machine fails them. A fault of ours fails alone too.
 */
const MAX_REPEATS = 2;
/** Marks the scenarios of extensions, which the suite runs at the newest revision. */
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
  /** Revisions, or EXTENSION. */
  readonly revisions: readonly string[];
}

export interface Outcome {
  readonly checks: readonly Check[];
  /** The output of the client; empty for a server. */
  readonly stdout: string;
  readonly stderr: string;
}

/** By scenario. */
export type Results = Map<string, Outcome>;

/** What it tests: a server, given by its URL, or a client, given by its command line. */
export type Side = "server" | "client";

/** Throws if a scenario did not go as it must. */
export type ExpectConformance = (scenario: string, revision: string, outcome: Outcome) => void;

/** What the subject needs before scenarios are run. */
export type Prepare = () => Promise<void>;

export class Suite {
  readonly #installed: InstalledSuite;
  readonly #side: Side;
  readonly #expectConformance: ExpectConformance;

  constructor(installed: InstalledSuite, side: Side, expectConformance: ExpectConformance) {
    this.#installed = installed;
    this.#side = side;
    this.#expectConformance = expectConformance;
  }

  /** All scenarios of the suite for this side. */
  async scenarios(): Promise<Scenario[]> {
    const text = await this.#execute(["list", `--${this.#side}`], PROGRAM_MS);
    const lines = [...text.matchAll(/^ +- (\S+) \[(.+)\]$/gm)];
    return lines.map(([, name = "", revisions = ""]) => ({ name, revisions: revisions.split(",") }));
  }

  /** The scenarios that `runRequired` runs for a revision, whether or not they are scored. */
  async required(revision: string): Promise<string[]> {
    const text = await this.#execute(["list", "--requirements", revision], PROGRAM_MS);
    const title = this.#side === "server" ? "Server" : "Client";
    const [, ours = ""] = new RegExp(`^${title} scenarios.*\\n((?: +- \\S+\\n)+)`, "m").exec(text) ?? [];
    const scored = [...ours.matchAll(/- (\S+)/g)];
    const unscored = [...text.matchAll(new RegExp(`^ +- (\\S+) \\[${this.#side}\\]$`, "gm"))];
    return [...scored, ...unscored].map(([, name = ""]) => name);
  }

  /** Runs the requirements of a revision: scenarios for a server one by one, those for a client all at once. */
  runRequired(subject: string, revision: string, prepare?: Prepare): Promise<Results> {
    return this.#runAndRepeat(subject, ["--requirements", revision], revision, prepare);
  }

  /** Runs all scenarios of a revision, for one without a set of requirements. */
  runAll(subject: string, revision: string, prepare?: Prepare): Promise<Results> {
    return this.#runAndRepeat(subject, ["--suite", "all", "--spec-version", revision], revision, prepare);
  }

  runScenario(subject: string, scenario: string, revision: string): Promise<Results> {
    // Without --force, the scenarios of extensions would not run for a client.
    const force = this.#side === "client" ? ["--force"] : [];
    return this.#run(subject, ["--scenario", scenario, "--spec-version", revision, ...force]);
  }

  async #runAndRepeat(
    subject: string,
    selection: readonly string[],
    revision: string,
    prepare?: Prepare,
  ): Promise<Results> {
    await prepare?.();
    const results = await this.#run(subject, selection);
    for (let repeat = 1; repeat <= MAX_REPEATS; repeat += 1) {
      for (const [name] of [...results].filter(([scenario, outcome]) => this.#hasFailed(scenario, revision, outcome))) {
        console.warn(`${name} at ${revision} failed, and is run again alone`);
        await prepare?.();
        for (const [, outcome] of await this.runScenario(subject, name, revision)) results.set(name, outcome);
      }
    }
    return results;
  }

  #hasFailed(scenario: string, revision: string, outcome: Outcome): boolean {
    try {
      this.#expectConformance(scenario, revision, outcome);
      return false;
    } catch {
      return true;
    }
  }

  async #run(subject: string, selection: readonly string[]): Promise<Results> {
    const folder = await mkdtemp(join(tmpdir(), "catenary-conformance-"));
    const target =
      this.#side === "server" ? ["--url", subject] : ["--command", subject, "--timeout", String(CLIENT_TIMEOUT_MS)];
    try {
      // It exits with 1 where a check failed; the tests find that in the results.
      await this.#execute([this.#side, ...target, ...selection, "-o", folder], RUN_TIMEOUT_MS).catch(
        (error: unknown) => {
          if ((error as { readonly code?: unknown }).code !== 1) throw error;
        },
      );
      return await readResults(folder, this.#side === "server" ? "server-" : "");
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async #execute(args: readonly string[], timeout: number): Promise<string> {
    const { node, script } = this.#installed;
    const options = { cwd: ROOT, timeout, maxBuffer: 64 * 1024 * 1024 };
    return (await execute(node, [script, ...args], options)).stdout;
  }
}

/** Whether a scenario is for a revision. Extensions belong to the newest. */
export function isFor({ revisions }: Scenario, revision: string, newest: string): boolean {
  return revisions.includes(revision) || (revision === newest && revisions.includes(EXTENSION));
}

/** Each scenario has a folder named by it and the time; a name with a slash has nested folders. */
async function readResults(folder: string, prefix: string): Promise<Results> {
  const results: Results = new Map();
  const files = await readdir(folder, { recursive: true });
  const read = (...parts: string[]): Promise<string> => readFile(join(folder, ...parts), "utf8");
  for (const file of files.filter((name) => basename(name) === "checks.json")) {
    const path = dirname(file);
    const [, scenario] = /^(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(path) ?? [];
    if (scenario === undefined || !scenario.startsWith(prefix))
      throw new Error(`Unexpected folder in the results of the suite: ${path}`);
    const [checks, stdout, stderr] = await Promise.all([
      read(file),
      read(path, "stdout.txt").catch(() => ""),
      read(path, "stderr.txt").catch(() => ""),
    ]);
    results.set(scenario.slice(prefix.length), { checks: JSON.parse(checks) as Check[], stdout, stderr });
  }
  return results;
}

const MAX_DETAILS_LENGTH = 2_000;

/** Describes every check that is neither a success nor informational. */
export function findFaults(checks: readonly Check[], isInformational: (check: Check) => boolean): string[] {
  const bad = checks.filter((check) => check.status !== "SUCCESS" && !isInformational(check));
  return bad.map(({ status, id, name, description, errorMessage, details }) =>
    [
      `${status} ${id} (${name}): ${description}`,
      errorMessage,
      JSON.stringify(details)?.slice(0, MAX_DETAILS_LENGTH),
    ].join("\n  "),
  );
}

/** The number of different checks that were met. A scenario repeats some of them for every request. */
export function countMet(checks: readonly Check[]): number {
  return new Set(checks.filter(({ status }) => status === "SUCCESS").map(({ id, name }) => `${id} ${name}`)).size;
}

export interface CheckedScenario {
  readonly name: string;
  readonly checks: readonly Check[];
  readonly isInformational: (check: Check) => boolean;
}

/** Prints a summary of the scenarios with faults. */
export function printFaults(title: string, all: readonly CheckedScenario[]): void {
  const counted = all.map(({ name, checks, isInformational }) => ({
    name,
    met: countMet(checks),
    faults: findFaults(checks, isInformational),
  }));
  const failed = counted.filter(({ faults }) => faults.length > 0);
  if (failed.length === 0) return;
  const rows = failed.map(({ name, met, faults }) => `  ${name}: ${met} met, ${faults.length} not`);
  console.log(`${title}, faults in ${failed.length} of ${all.length} scenarios:\n${rows.join("\n")}`);
}
