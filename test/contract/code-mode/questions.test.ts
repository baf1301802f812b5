// What a tool asks while code calls it reaches the caller of run-code, in every revision and over both transports. The
// oldest revisions have no elicitation: there the call fails with the reason, and the model of the caller can be asked.

import { afterAll, describe, expect, it } from "vitest";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { IS_LONG } from "../../support/thoroughness.ts";
import { answering, NAMES, Received } from "../../matrix/chain-features.ts";
import { CodeFixture, runCode } from "./code-fixture.ts";

const [, , THIRD = ""] = NAMES;
const fixture = new CodeFixture();
afterAll(() => fixture.close());
let address: Promise<string> | undefined;

/** Over stdio, each caller has a gateway of its own; upstreams of both styles ask in their own way. */
const CASES = [
  ...NAMES.map((revision) => ({ transport: "HTTP", revision, server: NEWEST.name })),
  ...(IS_LONG ? [NEWEST, NEWEST_SESSION] : []).flatMap(({ name: server }) =>
    NAMES.map((revision) => ({ transport: "stdio", revision, server })),
  ),
  // The gateway does not know yet that this upstream asks, which cannot say for which call.
  ...(IS_LONG ? [] : [{ transport: "stdio", revision: NEWEST.name, server: NEWEST_SESSION.name }]),
];

describe.each(CASES)("a caller of $revision over $transport, with a server of $server", (one) => {
  it("a caller answers what tools ask during a run", async () => {
    const { transport, revision, server } = one;
    const received = new Received();
    const options = { ...answering("ada", received), revision };
    const client =
      transport === "HTTP"
        ? await fixture.connectHttp(await (address ??= fixture.http()), "ada", options)
        : await fixture.connectStdio(fixture.stdio({}, server), options);
    const code = (tool: string): string => `
      const ask = async (name) => {
        try { return await tools.matrix.${tool}({ name }) } catch (error) { return error.name + " " + error.message }
      };
      console.log((await Promise.all(["x", "y"].map(ask))).join("\\n"))`;
    const asked = await runCode(client, code("elicit_for"));
    if (revision < THIRD) {
      expect(asked.text).toMatch(/Error .*elicitation[^]*Error .*elicitation/);
      expect(received.requests).toEqual([]);
    } else {
      expect(asked.text).toContain("x: accept ada answers Who is x?\ny: accept ada answers Who is y?");
      expect([...new Set(received.requests)].toSorted()).toEqual(["Who is x?", "Who is y?"]);
    }
    const sampled = await runCode(client, code("sample_for"));
    for (const name of ["x", "y"]) {
      expect(sampled.text).toContain(`${name}: {"type":"text","text":"ada answers Describe ${name}"} by ada`);
    }
    expect((await runCode(client, code("roots_for"))).text).toContain("x: file:///ada\ny: file:///ada");
  });
});
