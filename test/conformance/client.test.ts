// Runs the official conformance suite against the everything client: every scenario for a client, in every revision
// (in a short run the newest), whether the suite scores it or not. The suite starts one client process for each
// scenario, all at once. No check may fail, warn or be skipped. The number of different checks must be as expected,
// because the suite also passes a scenario in which nothing ran. The client must end as expected, which the suite does
// not check.

import { relative } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { COUNTS } from "./client/check-counts.ts";
import { IS_LONG } from "../support/thoroughness.ts";
import { EVERYTHING_CLIENT } from "./everything-programs.ts";
import { installSuite } from "./install-suite.ts";
import {
  countMet,
  EXTENSION,
  findFaults,
  printFaults,
  ROOT,
  Suite,
  type Check,
  type Outcome,
  type Results,
} from "./suite.ts";

const NEWEST = "2026-07-28";
/** Revisions with a fixed set of requirements in the suite. */
const WITH_REQUIREMENTS = ["2025-11-25", NEWEST];
const WITHOUT_REQUIREMENTS = ["2025-03-26", "2025-06-18"];

/** They test a host that loads skills. We are not one, so they would only test the everything client itself. */
const EXCLUDED = [
  "sep-2640-client-no-prefetch",
  "sep-2640-client-verify-digest",
  "sep-2640-client-verify-size",
  "sep-2640-client-verify-frontmatter",
];

/** Checks whose status INFO is only information. In others INFO means that the suite could not check. */
const INFORMATIONAL = new Set([
  "incoming-request",
  "outgoing-response",
  "incoming-auth-request",
  "outgoing-auth-response",
  "outgoing-sse-event",
  "outgoing-stream-close",
  "scope-retry-auth-attempt",
  "server-info",
]);
/** Checks of messages that a client of the newest revision never sends. */
const NEVER_SENT = new Set(["ClientMcpMethodHeader_initialize", "ClientMcpMethodHeader_notifications_initialized"]);

const isInformational = ({ status, id, name }: Check): boolean =>
  (status === "INFO" && INFORMATIONAL.has(id)) || (status === "SKIPPED" && NEVER_SENT.has(name));

/** Scenarios in which the server or its authorization server must not be trusted: the client has to fail. */
const UNTRUSTED = new Set([
  "auth/iss-normalized",
  "auth/iss-supported-missing",
  "auth/iss-unexpected",
  "auth/iss-wrong-issuer",
  "auth/metadata-issuer-mismatch",
  "auth/resource-mismatch",
  "auth/scope-retry-limit",
]);

/** What the client of a scenario has to print. */
function expectedOutput(scenario: string, revision: string): RegExp {
  if (UNTRUSTED.has(scenario)) return /^unauthorized: /;
  return new RegExp(`^done in ${revision}\n$`);
}

function expectConformance(scenario: string, revision: string, outcome: Outcome | undefined): void {
  if (outcome === undefined) expect.fail(`The suite did not run ${scenario}`);
  const { checks, stdout, stderr } = outcome;
  // First, since it has the reason if the client did not send what a check waits for.
  expect(stderr).toBe("");
  expect(findFaults(checks, isInformational)).toEqual([]);
  expect(stdout).toMatch(expectedOutput(scenario, revision));
  expect(countMet(checks)).toBe(COUNTS[revision]?.[scenario]);
}

/**
 * The suite appends the URL. It starts dozens of clients at once, so they have a lower priority: otherwise they would
 * starve the suite, which has to answer them, and the tests that run at the same time.
 */
const CLIENT = `nice -n 10 node ${relative(ROOT, EVERYTHING_CLIENT)}`;
const RUN_TIMEOUT_MS = 920_000;

const installed = await installSuite();

if (typeof installed === "string") {
  const revisions = [...WITHOUT_REQUIREMENTS, ...WITH_REQUIREMENTS].join(", ");
  const skipped = `the official conformance suite for clients at ${revisions} was skipped: ${installed}`;
  console.warn(skipped);
  it.skipIf(process.env["CI"] !== "true")(skipped, () => expect.fail(skipped));
} else {
  const suite = new Suite(installed, "client", expectConformance);
  const known = await suite.scenarios();

  const tested = IS_LONG ? [...WITHOUT_REQUIREMENTS, ...WITH_REQUIREMENTS] : [NEWEST];
  describe.each(tested)("the official suite for clients at %s", (revision) => {
    const hasRequirements = WITH_REQUIREMENTS.includes(revision);
    // The requirements of every revision include the extensions.
    const all = known.filter(
      ({ revisions }) => revisions.includes(revision) || (hasRequirements && revisions.includes(EXTENSION)),
    );
    const scenarios = all.map(({ name }) => name).filter((name) => !EXCLUDED.includes(name));
    const results: Results = new Map();

    beforeAll(async () => {
      const found = await (hasRequirements ? suite.runRequired(CLIENT, revision) : suite.runAll(CLIENT, revision));
      for (const [name, outcome] of found) results.set(name, outcome);
    }, RUN_TIMEOUT_MS);

    afterAll(() => {
      printFaults(
        revision,
        [...results].map(([name, { checks }]) => ({ name, checks, isInformational })),
      );
    });

    it.each(scenarios)("the official suite for clients: %s", (scenario) =>
      expectConformance(scenario, revision, results.get(scenario)),
    );

    it("the official suite for clients has run all scenarios of the suite, and no others", async () => {
      expect([...results.keys()].toSorted()).toEqual(scenarios.toSorted());
      if (hasRequirements) expect(scenarios.toSorted()).toEqual((await suite.required(revision)).toSorted());
    });
  });

  it("has no revision that is missing here, and only the extension of no revision is excluded", () => {
    const revisions = new Set(known.flatMap((scenario) => scenario.revisions));
    expect([...revisions].toSorted()).toEqual([...WITHOUT_REQUIREMENTS, ...WITH_REQUIREMENTS, EXTENSION].toSorted());
    const excluded = known.filter(({ name }) => EXCLUDED.includes(name));
    expect(excluded).toEqual(EXCLUDED.map((name) => ({ name, revisions: [EXTENSION] })));
  });
}
