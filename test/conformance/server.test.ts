// The official conformance suite, run against the everything server: every scenario that it has for a server over
// Streamable HTTP, in every revision that it knows, whether the suite scores it or not. A scenario is good where no
// check failed, warned or was skipped, and at least one was met. Which scenarios there are is asked of the suite, so
// that none can go missing.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startEverything, type EverythingProcess } from "./everything-process.ts";
import { installedSuite } from "./install.ts";
import { isAt, Suite, type Check, type Outcome, type Results } from "./suite.ts";
import { faultsOf, met, tell } from "./verdict.ts";

const NEWEST = "2026-07-28";
/** For these the suite has a frozen set of what a server must do; the server speaks all revisions at once. */
const WITH_SET = ["2025-11-25", NEWEST];
/** Its client asks for a newer revision, so the server must be one that speaks nothing else. */
const ALONE = ["2025-03-26", "2025-06-18"];

/** An extension that no revision has: in neither of the suite's sets, and nothing that we say we do. */
const LEFT_OUT = ["sep-2640-skills-directory", "sep-2640-skills-enumeration", "sep-2640-skills-manifest"];
/** In this release the suite has only a place for it. */
const WITHOUT_CHECKS = "tasks-status-notifications";
/** What the suite only tells. Elsewhere the word INFO stands for a check that it could not make. */
const TOLD = new Set([
  "outgoing-request",
  "incoming-response",
  "incoming-sse-event",
  "stream-closed",
  // That answers are JSON where nothing but the answer is to be sent.
  "server-sse-streams-functional",
]);

const RUN_MS = 320_000;

const installed = await installedSuite();

const isTold = ({ status, id }: Check): boolean => status === "INFO" && TOLD.has(id);

function judge(scenario: string, outcome: Outcome | undefined): void {
  if (outcome === undefined) expect.fail(`The suite did not run ${scenario}`);
  const { checks } = outcome;
  if (scenario === WITHOUT_CHECKS) {
    expect(checks.map(({ id, status }) => `${status} ${id}`)).toEqual([`SKIPPED ${WITHOUT_CHECKS}`]);
    return;
  }
  expect(faultsOf(checks, isTold)).toEqual([]);
  expect(met(checks)).toBeGreaterThan(0);
}

if (typeof installed === "string") {
  const left = `the official conformance suite at ${[...ALONE, ...WITH_SET].join(", ")} is left out: ${installed}`;
  console.warn(left);
  it.skipIf(process.env["CI"] !== "true")(left, () => expect.fail(left));
} else {
  const suite = new Suite(installed, "server");
  const known = await suite.scenarios();

  describe.each([...ALONE, ...WITH_SET])("the official suite at %s", (revision) => {
    const wanted = known.filter((scenario) => isAt(scenario, revision, NEWEST)).map(({ name }) => name);
    const held = wanted.filter((name) => !LEFT_OUT.includes(name));
    const hasSet = WITH_SET.includes(revision);
    const results: Results = new Map();
    let server: EverythingProcess;

    beforeAll(async () => {
      server = await startEverything(...(hasSet ? [] : ["--revisions", revision]));
      const { url } = server;
      const found = await (hasSet ? suite.runRequired(url, revision) : suite.runAll(url, revision));
      for (const [name, outcome] of found) results.set(name, outcome);
      for (const name of held.filter((scenario) => !results.has(scenario))) {
        for (const [, outcome] of await suite.runScenario(url, name, revision)) results.set(name, outcome);
      }
    }, RUN_MS);

    afterAll(async () => {
      const judged = [...results].filter(([name]) => name !== WITHOUT_CHECKS);
      tell(
        revision,
        judged.map(([name, { checks }]) => ({ name, checks, isTold })),
      );
      await server?.end();
    });

    it.each(held)("%s", (scenario) => judge(scenario, results.get(scenario)));

    it("has run all that the suite has, and no more", async () => {
      expect([...results.keys()].toSorted()).toEqual(held.toSorted());
      if (hasSet) expect(held).toEqual(expect.arrayContaining(await suite.required(revision)));
    });

    it("leaves a server that has complained of nothing and ends when it is told to", async () => {
      expect(await server.end()).toBe(0);
      expect(server.noise).toEqual([]);
    });
  });

  it("knows no revision that is not held here, and leaves out only what belongs to none", async () => {
    const revisions = new Set(known.flatMap(({ at }) => at));
    expect([...revisions].toSorted()).toEqual([...ALONE, ...WITH_SET, "extension"].toSorted());
    const required = (await Promise.all(WITH_SET.map((revision) => suite.required(revision)))).flat();
    const others = known.filter(({ name, at }) => at.includes("extension") && !required.includes(name));
    expect(others.map(({ name }) => name)).toEqual(LEFT_OUT);
  });
}
