// The official suite as a program: what scenarios it has, and what it found when they were run. Its own exit code
// forgives what a revision does not score, so only the checks that it writes down are read.

import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Installed } from "./install.ts";

const execute = promisify(execFile);

const LIST_MS = 30_000;
const RUN_MS = 150_000;
/** The newest revision is where the suite runs what belongs to an extension. */
const EXTENSION = "extension";

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

/** By scenario. */
export type Results = Map<string, readonly Check[]>;

export class Suite {
  readonly #installed: Installed;

  constructor(installed: Installed) {
    this.#installed = installed;
  }

  /** Every scenario for servers that the suite knows. */
  async scenarios(): Promise<Scenario[]> {
    const text = await this.#say(["list", "--server"], LIST_MS);
    const lines = [...text.matchAll(/^ +- (\S+) \[(.+)\]$/gm)];
    return lines.map(([, name = "", at = ""]) => ({ name, at: at.split(",") }));
  }

  /** Those that it runs for a revision, whether or not they count there. */
  async required(revision: string): Promise<string[]> {
    const text = await this.#say(["list", "--requirements", revision], LIST_MS);
    const [, servers = ""] = /^Server scenarios.*\n((?: +- \S+\n)+)/m.exec(text) ?? [];
    const scored = [...servers.matchAll(/- (\S+)/g)];
    const unscored = [...text.matchAll(/^ +- (\S+) \[server\]$/gm)];
    return [...scored, ...unscored].map(([, name = ""]) => name);
  }

  /** All that a revision asks for, one scenario after the other. */
  runRequired(url: string, revision: string): Promise<Results> {
    return this.#run(url, ["--requirements", revision]);
  }

  /** All that it has for a revision, for one that has no such set. */
  runAll(url: string, revision: string): Promise<Results> {
    return this.#run(url, ["--suite", "all", "--spec-version", revision]);
  }

  runScenario(url: string, scenario: string, revision: string): Promise<Results> {
    return this.#run(url, ["--scenario", scenario, "--spec-version", revision]);
  }

  async #run(url: string, what: readonly string[]): Promise<Results> {
    const folder = await mkdtemp(join(tmpdir(), "catenary-conformance-"));
    try {
      // It exits with 1 where a check fails, which is for the reader of the checks to find.
      await this.#say(["server", "--url", url, ...what, "-o", folder], RUN_MS).catch((error: unknown) => {
        if ((error as { readonly code?: unknown }).code !== 1) throw error;
      });
      return await resultsIn(folder);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async #say(args: readonly string[], timeout: number): Promise<string> {
    const { node, script } = this.#installed;
    const { stdout } = await execute(node, [script, ...args], { timeout, maxBuffer: 64 * 1024 * 1024 });
    return stdout;
  }
}

/** Whether a scenario is for a revision; what belongs to an extension is run at the newest. */
export function isAt({ at }: Scenario, revision: string, newest: string): boolean {
  return at.includes(revision) || (revision === newest && at.includes(EXTENSION));
}

/** Each scenario has a folder, named by it and by the time. */
async function resultsIn(folder: string): Promise<Results> {
  const results: Results = new Map();
  for (const name of await readdir(folder)) {
    const [, scenario] = /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(name) ?? [];
    if (scenario === undefined) throw new Error(`The suite wrote "${name}", which is no scenario's folder`);
    const checks = await readFile(join(folder, name, "checks.json"), "utf8");
    results.set(scenario, JSON.parse(checks) as Check[]);
  }
  return results;
}
