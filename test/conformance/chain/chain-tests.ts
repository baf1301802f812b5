// One run of the official suite through a chain: the everything server behind `catenary serve CONFIG --http`, as a
// program that the gateway starts or at an address, in all revisions or only some. Every scenario is held to what it is
// held to without the chain, but for what losses.ts names.

import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { expectNoProcesses, CliProcess } from "../../contract/cli/cli-process.ts";
import { startEverything, type EverythingProcess, EVERYTHING_SERVER } from "../everything-programs.ts";
import { installedSuite } from "../install-suite.ts";
import { heldAt, isTold, judge, NEWEST, runHeld, tellOf, WITH_SET } from "../server-scenarios.ts";
import { Suite, type Outcome, type Results, met } from "../suite.ts";

const RUN_MS = 320_000;
const END_MS = 30_000;
/** Nothing is under way any more: whoever takes so long is killed. */
const LATE_MS = 15_000;
/** How the gateway says that it was told to end. */
const CLOSING = "catenary: closing; ";

const installed = await installedSuite();
if (typeof installed === "string") throw new Error(`The official conformance suite is not here: ${installed}`);
const suite = new Suite(installed, "server");
const known = await suite.scenarios();

/** A gateway as people start one, and the server behind it where it is no program of the gateway's. */
class Chained {
  #folder: string | undefined;
  #server: EverythingProcess | undefined;
  #gateway: CliProcess | undefined;

  async start({ wire, revisions }: Behind): Promise<string> {
    const spoken = revisions === undefined ? [] : ["--revisions", revisions.join(",")];
    if (wire === "http") this.#server = await startEverything(...spoken);
    const end =
      this.#server === undefined
        ? { command: process.execPath, args: [EVERYTHING_SERVER, "--stdio", ...spoken] }
        : { url: this.#server.url };
    const folder = mkdtempSync(join(tmpdir(), "catenary-conformance-"));
    this.#folder = folder;
    const config = join(folder, "catenary.json");
    writeFileSync(config, JSON.stringify({ mcpServers: { everything: end } }));
    const gateway = new CliProcess(["serve", config, "--http", "127.0.0.1:0", "--json"], {
      env: { CATENARY_CACHE: join(folder, "cache") },
    });
    this.#gateway = gateway;
    await Promise.race([once(gateway.process.stdout, "data"), gateway.exited]);
    if (gateway.out === "") throw new Error(`The gateway did not start: ${gateway.err}`);
    return (JSON.parse(gateway.out) as { readonly url: string }).url;
  }

  /** Inherited by all that the gateway starts. */
  get mark(): string {
    return this.#gateway?.mark ?? "";
  }

  /** Ends all of it, in the order of the chain; what it has left to say, and how the gateway ended. */
  async end(): Promise<{ readonly code: number | null | undefined; readonly said: string[] }> {
    const gateway = this.#gateway;
    gateway?.process.kill("SIGTERM");
    const late = setTimeout(() => gateway?.process.kill("SIGKILL"), LATE_MS);
    const code = await gateway?.exited;
    clearTimeout(late);
    await this.#server?.end();
    if (this.#folder !== undefined) rmSync(this.#folder, { recursive: true, force: true });
    const lines = [...(gateway?.err.split("\n") ?? []), ...(this.#server?.noise ?? [])];
    return { code, said: lines.filter((line) => line !== "" && !line.startsWith(CLOSING)) };
  }
}

/**
 * Callers that can be asked other things have another session with the end, and a program takes longer to start than
 * the suite waits in server-stateless for the one caller of that kind.
 */
async function warm(url: string): Promise<void> {
  const method = "tools/list";
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": NEWEST,
    "io.modelcontextprotocol/clientCapabilities": { elicitation: {} },
  };
  const answer = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": NEWEST,
      "mcp-method": method,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { _meta } }),
  });
  expect(await answer.text()).toContain("test_streaming_elicitation");
}

export function chainRun(revision: string, behind: Behind): void {
  const { wire, revisions } = behind;
  const speaking = revisions === undefined ? "" : ` that speaks only ${revisions.join(", ")}`;
  const title = `the official suite at ${revision}, through a chain to a server over ${wire}${speaking}`;
  const held = heldAt(known, revision);
  const lost = lossesOf(behind).filter(({ scenario }) => held.includes(scenario));
  const whole = held.filter((name) => !lost.some(({ scenario }) => scenario === name));

  describe(title, () => {
    const results: Results = new Map();
    const chained = new Chained();
    let ended: ReturnType<Chained["end"]> | undefined;
    const end = (): ReturnType<Chained["end"]> => (ended ??= chained.end());

    beforeAll(async () => {
      const url = await chained.start(behind);
      if (wire === "stdio" && revision === NEWEST) await warm(url);
      for (const [name, outcome] of await runHeld(suite, url, revision, held)) results.set(name, outcome);
    }, RUN_MS);

    afterAll(async () => {
      tellOf(title, new Map([...results].filter(([name]) => whole.includes(name))));
      await end();
    }, END_MS);

    it.each(whole)("%s", (scenario) => judge(scenario, revision, results.get(scenario)));

    for (const loss of lost) {
      it(`${loss.scenario}, but for what cannot cross: ${loss.because}`, () => {
        judgeLoss(loss, results.get(loss.scenario));
      });
    }

    it("has run all that the suite has, and no more", async () => {
      expect([...results.keys()].toSorted()).toEqual(held.toSorted());
      if (WITH_SET.includes(revision)) expect(held).toEqual(expect.arrayContaining(await suite.required(revision)));
    });

    it(
      "leaves a gateway that has complained of nothing, ends when it is told to, and leaves nothing behind",
      async () => {
        expect(await end()).toEqual({ code: 0, said: [] });
        await expectNoProcesses(chained.mark);
      },
      END_MS,
    );
  });
}

/** Just these checks are not met, for just this reason, and all the others are. */
function judgeLoss({ scenario, unmet, met: wanted }: Loss, outcome: Outcome | undefined): void {
  if (outcome === undefined) expect.fail(`The suite did not run ${scenario}`);
  const bad = outcome.checks.filter((check) => check.status !== "SUCCESS" && !isTold(check));
  const said = bad.map(({ status, id, errorMessage }) => `${status} ${id}: ${errorMessage ?? ""}`);
  expect(said).toEqual(unmet.map((pattern) => expect.stringMatching(pattern) as string));
  expect(met(outcome.checks)).toBe(wanted);
}

// What of the suite cannot cross a chain, by how the server stands behind it. Each entry names the checks that are then
// not met, with what the suite says of them, and why no gateway could do better, or ours does something else: all other
// checks of the scenario are held as ever. What is not named here crosses.


/** How the everything server stands behind the chain. */
export interface Behind {
  readonly wire: "stdio" | "http";
  /** What it speaks; all revisions where nothing is said. */
  readonly revisions?: readonly string[];
}

export interface Loss {
  readonly scenario: string;
  /** For which servers. */
  isAt(behind: Behind): boolean;
  readonly because: string;
  /** Status, name and message of each check that is not met. */
  readonly unmet: readonly RegExp[];
  /** How many are. */
  readonly met: number;
}

const hasNoSessions = ({ revisions }: Behind): boolean => revisions?.includes(NEWEST) === true;
const hasNoStateless = ({ revisions }: Behind): boolean => revisions?.includes(NEWEST) === false;

const LOSSES: readonly Loss[] = [
  {
    scenario: "server-sse-polling",
    isAt: (behind) => behind.wire === "stdio" || hasNoSessions(behind),
    because:
      "the server hangs up in mid-call so that its caller comes back; only the streams of sessions over HTTP can end and " +
      "be taken up again, so a pipe or an exchange tells the gateway nothing of it, and the call is answered whole",
    unmet: [/^INFO server-sse-content-type: $/],
    met: 0,
  },
  {
    scenario: "input-required-result-basic-elicitation",
    isAt: hasNoStateless,
    because:
      "the suite wants the key that the server gives its question; in a session a question has no key, so the gateway " +
      "makes one",
    unmet: [/^FAILURE sep-2322-elicitation-incomplete: inputRequests missing expected key "user_name"$/],
    met: 1,
  },
  {
    scenario: "input-required-result-ignore-extra-params",
    isAt: hasNoStateless,
    because:
      "the suite answers a question before it is asked, by the key that the server gives it; in a session a question has " +
      "no key, so the gateway asks it under one of its own",
    unmet: [/^WARNING sep-2322-ignore-unexpected-params: Server did not return complete result /],
    met: 1,
  },
  {
    scenario: "tasks-required-task-error",
    isAt: hasNoStateless,
    because:
      "a tool that is always a task is refused to callers that know no tasks only where nothing else can be done; the " +
      "gateway runs it and waits for its end, so that they can call it too",
    unmet: [/^FAILURE sep-2663-server-returns-missing-capability-when-required: .* returned a successful response /],
    met: 1,
  },
];

export function lossesOf(behind: Behind): readonly Loss[] {
  return LOSSES.filter(({ isAt }) => isAt(behind));
}
