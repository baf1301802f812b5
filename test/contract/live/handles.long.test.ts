// Handles of values keep no memory that the session needs: large values are dropped when nothing else holds them.

import { expect, it } from "vitest";
import { javascript, lisp, smalltalk } from "../../../src/live/index.ts";
import { startCode } from "../../support/live/code-run.ts";
import { jsLanguage } from "../../../src/live/js/index.ts";
import { lispLanguage } from "../../../src/live/lisp/index.ts";
import { hasSbcl } from "../../support/setup/sbcl.ts";
import { gstProgram } from "../../support/setup/smalltalk.ts";
import { LiveFixture } from "./live-fixture.ts";

const gst = gstProgram();
const DROPPED = /^The value of handle 1 was dropped: .* Evaluate the code again\.$/;

async function withFixture(fixture: LiveFixture, use: (fixture: LiveFixture) => Promise<void>): Promise<void> {
  try {
    await use(fixture);
  } finally {
    await fixture.client.close();
    await fixture.live.close();
  }
}

it("a JavaScript session survives large values that nothing holds, and keeps small ones", async () => {
  await withFixture(await LiveFixture.open(javascript(), "js"), async (fixture) => {
    await fixture.evaluate("globalThis.kept = 7");
    for (let count = 1; count <= 12; count += 1) {
      const { status, text } = await fixture.evaluate("new Array(6e6).fill(1.5)");
      expect({ status, text }).toMatchObject({
        status: "ok",
        text: expect.stringContaining(`[handle ${count}]`) as string,
      });
    }
    await fixture.evaluate("Array.from({ length: 300 }, (_, at) => at)");
    for (let count = 0; count < 3; count += 1) await fixture.evaluate("new Array(6e6).fill(1.5); 1");
    expect(await fixture.call("inspect", { handle: 13 })).toContain("Array, 301 parts");
    expect(await fixture.call("inspect", { handle: 1 })).toMatch(DROPPED);
    expect(await fixture.call("inspect", { handle: 99 })).toBe("There is no handle 99: the newest is 13.");
    expect((await fixture.evaluate("kept")).text).toBe("=> 7");
  });
});

it.runIf(hasSbcl())(
  "a Lisp session survives large values that nothing holds, and keeps small ones (needs SBCL)",
  async () => {
    await withFixture(await LiveFixture.open(lisp(), "lisp"), async (fixture) => {
      await fixture.evaluate("(defvar *kept* 7)");
      for (let count = 1; count <= 12; count += 1) {
        const { status, text } = await fixture.evaluate("(make-array 4000000 :initial-element 1)");
        expect({ status, text }).toMatchObject({
          status: "ok",
          text: expect.stringContaining(`[handle ${count}]`) as string,
        });
      }
      await fixture.evaluate("(loop for i below 300 collect i)");
      for (let count = 0; count < 4; count += 1) await fixture.evaluate("(sb-ext:gc :full t) 1");
      expect(await fixture.call("inspect", { handle: 13 })).toContain("300");
      expect(await fixture.call("inspect", { handle: 1 })).toMatch(DROPPED);
      expect((await fixture.evaluate("*kept*")).text).toBe("=> 7");
    });
  },
);

for (const [title, options, isInstalled] of [
  ["Amber", {}, true],
  ["GNU Smalltalk (needs gst)", { command: gst ?? "gst" }, gst !== undefined],
] as const) {
  it.runIf(isInstalled)(`a session of ${title} survives large values that nothing holds`, async () => {
    await withFixture(await LiveFixture.open(smalltalk(options), "smalltalk"), async (fixture) => {
      for (let count = 1; count <= 12; count += 1) {
        const { status, text } = await fixture.evaluate("Array new: 1000000");
        expect(status).toBe("ok");
        expect(text).toContain(`[handle ${count}]`);
      }
      expect(await fixture.call("inspect", { handle: 12 })).toContain("1000000 parts");
      expect(await fixture.call("inspect", { handle: 99 })).toMatch(/^There is no handle 99[:;] the newest is 12/);
    });
  });
}

it("code mode has no handles, since none of its tools takes one", async () => {
  const code = await startCode(jsLanguage({}));
  try {
    const { content } = await code.run("new Array(1000).fill(1)");
    expect(content[0]?.text).toMatch(/^=> \[/);
    expect(content[0]?.text).not.toContain("[handle");
  } finally {
    await code.close();
  }
});

it.runIf(hasSbcl())("code mode has no handles in Lisp either (needs SBCL)", async () => {
  const code = await startCode(lispLanguage());
  try {
    expect(await code.text("(make-array 1000 :initial-element 1)")).not.toContain("[handle");
  } finally {
    await code.close();
  }
});
