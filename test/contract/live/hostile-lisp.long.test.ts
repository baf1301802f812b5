// Hostile Common Lisp through the tools, while another session keeps working.

import { afterAll, beforeAll, describe, it } from "vitest";
import { lisp } from "../../../src/live/index.ts";
import { hasSbcl } from "../../support/setup/sbcl.ts";
import { LISP_CASES } from "./hostile-lisp-cases.ts";
import { HostileHarness, RETRIES } from "./hostile-harness.ts";
import { LiveFixture } from "./live-fixture.ts";

describe.runIf(hasSbcl())("hostile Lisp", RETRIES, () => {
  let fixture: LiveFixture;
  let harness: HostileHarness;
  beforeAll(async () => {
    fixture = await LiveFixture.open(lisp({ limits: { memoryMb: 256 } }), "lisp");
    const define = (number: number): string => `(defparameter *earlier* ${number})`;
    harness = new HostileHarness(fixture, { define, recall: "*earlier*", unknown: "UNBOUND-VARIABLE" });
    await harness.open();
  });
  afterAll(async () => {
    await fixture?.close();
    console.error(harness.report("Common Lisp"));
  });

  it.each(LISP_CASES)("hostile Lisp: $name", async (hostile) => {
    await harness.run(hostile);
  });

  it("hostile Lisp in eight sessions at once", async () => {
    await harness.runTogether("(loop)", 8);
  });
});
