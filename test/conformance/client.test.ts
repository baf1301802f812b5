// The official conformance suite, run against the everything client: every scenario that it has for a client, in every
// revision that it knows, whether the suite scores it or not. The suite starts one process for each scenario of a
// set, all at once. A scenario is good where no check failed, warned or was skipped, as many different checks were met
// as it has (some show a tick where nothing ran), and the client ended as it should: the suite does not look at that.

import { relative } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { COUNTS } from "./client/check-counts.ts";
import { EVERYTHING_CLIENT } from "./everything-programs.ts";
import { installedSuite } from "./install-suite.ts";
import { EXTENSION, ROOT, Suite, type Check, type Outcome, type Results, faultsOf, met, tell } from "./suite.ts";

const NEWEST = "2026-07-28";
/** For these the suite has a frozen set of what a client must do. */
const WITH_SET = ["2025-11-25", NEWEST];
const OTHERS = ["2025-03-26", "2025-06-18"];

/** Judges a host that loads skills, which we are not: the checks would be of the everything client's own making. */
const LEFT_OUT = [
  "sep-2640-client-no-prefetch",
  "sep-2640-client-verify-digest",
  "sep-2640-client-verify-size",
  "sep-2640-client-verify-frontmatter",
];

/** What the suite only tells. Elsewhere the word INFO stands for a check that it could not make. */
const TOLD = new Set([
  "incoming-request",
  "outgoing-response",
  "incoming-auth-request",
  "outgoing-auth-response",
  "outgoing-sse-event",
  "outgoing-stream-close",
  "scope-retry-auth-attempt",
  "server-info",
]);
/** Checks of what a client of the newest revision never sends. */
const NEVER_SENT = new Set(["ClientMcpMethodHeader_initialize", "ClientMcpMethodHeader_notifications_initialized"]);

const isTold = ({ status, id, name }: Check): boolean =>
  (status === "INFO" && TOLD.has(id)) || (status === "SKIPPED" && NEVER_SENT.has(name));

/** Where the end or its authorization server must not be trusted, the client has to say so and to stop. */
const REFUSED = new Set([
  "auth/iss-normalized",
  "auth/iss-supported-missing",
  "auth/iss-unexpected",
  "auth/iss-wrong-issuer",
  "auth/metadata-issuer-mismatch",
  "auth/resource-mismatch",
  "auth/scope-retry-limit",
]);

/** How a scenario's client should have ended. */
function endOf(scenario: string, revision: string): RegExp {
  if (REFUSED.has(scenario)) return /^unauthorized: /;
  return new RegExp(`^done in ${revision}\n$`);
}

function judge(scenario: string, revision: string, outcome: Outcome | undefined): void {
  if (outcome === undefined) expect.fail(`The suite did not run ${scenario}`);
  const { checks, said, noise } = outcome;
  expect(faultsOf(checks, isTold)).toEqual([]);
  expect(noise).toBe("");
  expect(said).toMatch(endOf(scenario, revision));
  expect(met(checks)).toBe(COUNTS[revision]?.[scenario]);
}

/** The suite adds the address. */
const CLIENT = `node ${relative(ROOT, EVERYTHING_CLIENT)}`;
const RUN_MS = 320_000;

const installed = await installedSuite();

if (typeof installed === "string") {
  const left = `the official conformance suite for clients at ${[...OTHERS, ...WITH_SET].join(", ")} is left out: ${installed}`;
  console.warn(left);
  it.skipIf(process.env["CI"] !== "true")(left, () => expect.fail(left));
} else {
  const suite = new Suite(installed, "client");
  const known = await suite.scenarios();

  describe.each([...OTHERS, ...WITH_SET])("the official suite for clients at %s", (revision) => {
    const hasSet = WITH_SET.includes(revision);
    // A set has what belongs to an extension, whichever revision it is for.
    const wanted = known.filter(({ at }) => at.includes(revision) || (hasSet && at.includes(EXTENSION)));
    const held = wanted.map(({ name }) => name).filter((name) => !LEFT_OUT.includes(name));
    const results: Results = new Map();

    beforeAll(async () => {
      const found = await (hasSet ? suite.runRequired(CLIENT, revision) : suite.runAll(CLIENT, revision));
      for (const [name, outcome] of found) results.set(name, outcome);
    }, RUN_MS);

    afterAll(() => {
      tell(
        revision,
        [...results].map(([name, { checks }]) => ({ name, checks, isTold })),
      );
    });

    it.each(held)("%s", (scenario) => judge(scenario, revision, results.get(scenario)));

    it("has run all that the suite has, and no more", async () => {
      expect([...results.keys()].toSorted()).toEqual(held.toSorted());
      if (hasSet) expect(held.toSorted()).toEqual((await suite.required(revision)).toSorted());
    });
  });

  it("knows no revision that is not held here, and leaves out only what belongs to none", () => {
    const revisions = new Set(known.flatMap(({ at }) => at));
    expect([...revisions].toSorted()).toEqual([...OTHERS, ...WITH_SET, EXTENSION].toSorted());
    const left = known.filter(({ name }) => LEFT_OUT.includes(name));
    expect(left).toEqual(LEFT_OUT.map((name) => ({ name, at: [EXTENSION] })));
  });
}
