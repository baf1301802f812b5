// The limits that the operator of a live server has set are the most that callers can choose; the memory of the programs
// that a session starts counts; and one caller's many sessions do not make the server forget the limits of another.

import { afterEach, expect, it } from "vitest";
import { AuthError, type Authenticator } from "../../../src/core/authentication.ts";
import { connect, serve, type Client } from "../../../src/index.ts";
import { javascript, type Live } from "../../../src/live/index.ts";
import { LiveFixture, textOf } from "./live-fixture.ts";
import { IS_LONG } from "../../support/thoroughness.ts";

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(closing.splice(0).map((close) => close()));
});

async function open(limits: Parameters<typeof javascript>[0]): Promise<LiveFixture> {
  const fixture = await LiveFixture.open(javascript(limits), "js");
  closing.push(() => fixture.close());
  return fixture;
}

it("a limit that the operator has set cannot be raised by a caller, nor switched off", async () => {
  const fixture = await open({ limits: { timeoutMs: 1_000, memoryMb: 128, outputChars: 50 } });
  for (const timeout of [0, 60]) {
    expect(await fixture.evaluate("for (;;);", { timeout })).toMatchObject({ status: "timeout" });
  }
  expect(await fixture.call("configure-limits", { timeout: 0 })).toContain(
    "timeout must be from 0.001 to 1, which the operator of this server has set as the most; got 0",
  );
  expect(await fixture.call("configure-limits", { memory: 16_384 })).toContain("memory must be from 64 to 128, which");
  expect(await fixture.call("configure-limits", { "max-output": 51 })).toContain(
    "max-output must be from 1 to 50, which",
  );
  const lower = await fixture.call("configure-limits", { timeout: 0.3, memory: 100 });
  expect(lower).toContain("timeout: 0.3 seconds");
  expect(lower).toContain("memory: 100 MB");
  // A caller may raise its own limit again, up to that of the operator.
  expect(await fixture.call("configure-limits", { timeout: 1 })).toContain("timeout: 1 seconds");
});

it("a limit that the operator has set that is 0 is no limit, and limits that are not set can be changed", async () => {
  const fixture = await open({ limits: { timeoutMs: 0 } });
  expect(await fixture.call("configure-limits", { timeout: 3_600, memory: 1_000 })).toContain("timeout: 3600 seconds");
  expect(await fixture.call("configure-limits", { timeout: 0 })).toContain("timeout: none");
});

it.runIf(IS_LONG && process.platform === "linux")("the memory of programs that a session starts counts", async () => {
  const fixture = await open({ limits: { memoryMb: 64 } });
  const hog =
    "const hog = []; for (let n = 0; n < 44; n += 1) hog.push(Buffer.alloc(16 << 20, 1)); setTimeout(() => {}, 60_000)";
  const code = `await new Promise((resolve) => {
    require("node:child_process").spawn(process.execPath, ["-e", ${JSON.stringify(hog)}]).on("exit", resolve);
  })`;
  const result = await fixture.evaluate(code, { timeout: 120 });
  expect(result).toMatchObject({ status: "lost", state: "lost" });
  expect(result.notice).toContain("its process and the programs that it started used more than 576 MB of memory");
});

const auth: Authenticator = {
  authenticate: async ({ headers }) => {
    const [, principal] = /^Bearer (\w+)$/.exec(headers["authorization"] ?? "") ?? [];
    if (principal === undefined) throw new AuthError(401, "Who are you?", "Bearer");
    return { principal };
  },
};

it.runIf(IS_LONG)("many sessions of one caller do not make the server forget the limits of another", async () => {
  const live: Live = javascript();
  const front = await serve(live, { http: { port: 0, auth } });
  const as = (who: string): Promise<Client> =>
    connect(front.url ?? "", { headers: { authorization: `Bearer ${who}` } });
  const [ada, bob] = await Promise.all([as("ada"), as("bob")]);
  closing.push(async () => {
    await Promise.all([ada.close(), bob.close()]);
    await front.close();
    await live.close();
  });
  await bob.callTool("configure-limits", { session: "mine", timeout: 7 });
  for (let n = 0; n < 1_100; n += 50) {
    await Promise.all(
      Array.from({ length: 50 }, (_, at) => ada.callTool("configure-limits", { session: `s${n + at}` })),
    );
  }
  expect(textOf(await bob.callTool("configure-limits", { session: "mine" }))).toContain("timeout: 7 seconds");
  expect(textOf(await bob.callTool("list-sessions"))).toMatch(/^1 session:/);
});
