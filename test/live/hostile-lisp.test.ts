// Hostile Common Lisp, sent by a caller of the tools, row by row, while another session must be answered.

import { afterAll, beforeAll, describe, it } from "vitest";
import { lisp } from "../../src/live/index.ts";
import { hasSbcl } from "../support/setup/sbcl.ts";
import { LISP_ROWS } from "./hostile-lisp.ts";
import { Ground } from "./hostile.ts";
import { Stage } from "./stage.ts";

describe.runIf(hasSbcl())("hostile Lisp", () => {
  let stage: Stage;
  let ground: Ground;
  beforeAll(async () => {
    stage = await Stage.open(lisp({ limits: { memoryMb: 256 } }), "lisp");
    const define = (number: number): string => `(defparameter *earlier* ${number})`;
    ground = new Ground(stage, { define, recall: "*earlier*", unknown: "UNBOUND-VARIABLE" });
    await ground.open();
  }, 60_000);
  afterAll(async () => {
    await stage?.close();
    console.error(ground.report("Common Lisp"));
  });

  it.each(LISP_ROWS)("$name", async (row) => {
    await ground.play(row);
  });

  it("in eight sessions at once", async () => {
    await ground.playTogether("(loop)", 8);
  });
});
