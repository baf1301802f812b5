// The official conformance suite, run against the everything server: every scenario that it has for a server over
// Streamable HTTP, in every revision that it knows, whether the suite scores it or not. Which scenarios there are is
// asked of the suite, so that none can go missing; when one is good stands in server-scenarios.ts.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startEverything, type EverythingProcess } from "./everything-programs.ts";
import { installedSuite } from "./install-suite.ts";
import { ALONE, heldAt, judge, LEFT_OUT, runHeld, tellOf, WITH_SET } from "./server-scenarios.ts";
import { Suite, type Results } from "./suite.ts";

const RUN_MS = 320_000;

const installed = await installedSuite();

if (typeof installed === "string") {
  const left = `the official conformance suite at ${[...ALONE, ...WITH_SET].join(", ")} is left out: ${installed}`;
  console.warn(left);
  it.skipIf(process.env["CI"] !== "true")(left, () => expect.fail(left));
} else {
  const suite = new Suite(installed, "server");
  const known = await suite.scenarios();

  describe.each([...ALONE, ...WITH_SET])("the official suite at %s", (revision) => {
    const held = heldAt(known, revision);
    const hasSet = WITH_SET.includes(revision);
    const results: Results = new Map();
    let server: EverythingProcess;

    beforeAll(async () => {
      // Where there is a set, it speaks all revisions at once.
      server = await startEverything(...(hasSet ? [] : ["--revisions", revision]));
      for (const [name, outcome] of await runHeld(suite, server.url, revision, held)) results.set(name, outcome);
    }, RUN_MS);

    afterAll(async () => {
      tellOf(revision, results);
      await server?.end();
    });

    it.each(held)("%s", (scenario) => judge(scenario, revision, results.get(scenario)));

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
