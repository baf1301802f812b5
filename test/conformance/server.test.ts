// Runs the official conformance suite against the everything server: every scenario for a server over Streamable HTTP,
// in every revision, whether the suite scores it or not. The list of scenarios comes from the suite, so that none can be
// missed; server-scenarios.ts says what each of them has to meet.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { IS_LONG } from "../support/thoroughness.ts";
import { startEverything, type EverythingProcess } from "./everything-programs.ts";
import { installSuite } from "./install-suite.ts";
import {
  EXCLUDED,
  NEWEST,
  expectConformance,
  reportFaults,
  runScenarios,
  scenariosAt,
  WITH_REQUIREMENTS,
  WITHOUT_REQUIREMENTS,
} from "./server-scenarios.ts";
import { EXTENSION, Suite, type Results } from "./suite.ts";

const RUN_TIMEOUT_MS = 920_000;

const installed = await installSuite();

if (typeof installed === "string") {
  const revisions = [...WITHOUT_REQUIREMENTS, ...WITH_REQUIREMENTS].join(", ");
  const skipped = `the official conformance suite at ${revisions} was skipped: ${installed}`;
  console.warn(skipped);
  it.skipIf(process.env["CI"] !== "true")(skipped, () => expect.fail(skipped));
} else {
  const suite = new Suite(installed, "server", expectConformance);
  const known = await suite.scenarios();

  const tested = IS_LONG ? [...WITHOUT_REQUIREMENTS, ...WITH_REQUIREMENTS] : [NEWEST];
  describe.each(tested)("the official suite at %s", (revision) => {
    const scenarios = scenariosAt(known, revision);
    const hasRequirements = WITH_REQUIREMENTS.includes(revision);
    const results: Results = new Map();
    let server: EverythingProcess;

    beforeAll(async () => {
      // With requirements, the server speaks all revisions at once.
      server = await startEverything(...(hasRequirements ? [] : ["--revisions", revision]));
      for (const [name, outcome] of await runScenarios(suite, server.url, revision, scenarios))
        results.set(name, outcome);
    }, RUN_TIMEOUT_MS);

    afterAll(async () => {
      reportFaults(revision, results);
      await server?.stop();
    });

    it.each(scenarios)("the official suite: %s", (scenario) =>
      expectConformance(scenario, revision, results.get(scenario)),
    );

    it("the official suite has run all scenarios of the suite, and no others", async () => {
      expect([...results.keys()].toSorted()).toEqual(scenarios.toSorted());
      if (hasRequirements) expect(scenarios).toEqual(expect.arrayContaining(await suite.required(revision)));
    });

    it("the official suite leaves a server that printed no error and exits on SIGTERM", async () => {
      expect(await server.stop()).toBe(0);
      expect(server.stderrLines).toEqual([]);
    });
  });

  it("has no revision that is missing here, and only the extension of no revision is excluded", async () => {
    const revisions = new Set(known.flatMap((scenario) => scenario.revisions));
    expect([...revisions].toSorted()).toEqual([...WITHOUT_REQUIREMENTS, ...WITH_REQUIREMENTS, EXTENSION].toSorted());
    const required = (await Promise.all(WITH_REQUIREMENTS.map((revision) => suite.required(revision)))).flat();
    const others = known.filter(
      (scenario) => scenario.revisions.includes(EXTENSION) && !required.includes(scenario.name),
    );
    expect(others.map(({ name }) => name)).toEqual(EXCLUDED);
  });
}
