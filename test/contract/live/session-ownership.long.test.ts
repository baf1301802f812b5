// Sessions belong to the authenticated principal: over HTTP, no other principal can reach them, also through a chain.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AuthError, type Authenticator } from "../../../src/core/authentication.ts";
import { chain, connect, serve, type Client, type Serving } from "../../../src/index.ts";
import { javascript, type Live } from "../../../src/live/index.ts";
import { textOf, withText, type EvaluationWithText } from "./live-fixture.ts";

const auth: Authenticator = {
  authenticate: async ({ headers }) => {
    const [, principal] = /^Bearer (\w+)$/.exec(headers["authorization"] ?? "") ?? [];
    if (principal === undefined) throw new AuthError(401, "Who are you?", "Bearer");
    return { principal };
  },
};

describe.each(["by itself", "behind a chain"])("a live server %s", (how) => {
  let live: Live;
  let front: Serving;
  let ada: Client;
  let bob: Client;
  const as = (who: string): Promise<Client> =>
    connect(front.url ?? "", { headers: { authorization: `Bearer ${who}` } });
  beforeAll(async () => {
    live = javascript();
    front = await serve(how === "by itself" ? live : chain().to({ js: live }), { http: { port: 0, auth } });
    [ada, bob] = await Promise.all([as("ada"), as("bob")]);
  });
  afterAll(async () => {
    await ada?.close();
    await bob?.close();
    await front?.close();
    await live?.close();
  });

  const evaluate = async (who: Client, code: string, session?: string): Promise<EvaluationWithText> =>
    withText(await who.callTool("evaluate-js", { code, ...(session && { session }) }));
  const call = async (who: Client, tool: string, session: string): Promise<string> =>
    textOf(await who.callTool(tool, { session }));

  it("refuses unauthenticated callers", async () => {
    await expect(connect(front.url ?? "")).rejects.toThrow(/401|unauthorized|Who are you/i);
  });

  it("gives each principal its own session of the same name", async () => {
    await evaluate(ada, 'const secret = "of ada"');
    await evaluate(bob, 'const secret = "of bob"');
    expect((await evaluate(ada, "secret")).values).toEqual(["'of ada'"]);
    expect((await evaluate(bob, "secret")).values).toEqual(["'of bob'"]);
  });

  it("neither shows nor opens the sessions of another principal", async () => {
    await evaluate(ada, "const treasure = 1", "vault");
    const listed = textOf(await bob.callTool("list-sessions"));
    expect(listed).toMatch(/^1 session:\n {2}main: /);
    expect(await call(bob, "close-session", "vault")).toBe("There is no session vault.");
    expect(await call(bob, "interrupt-session", "vault")).toBe("Nothing is running in session vault.");
    await call(bob, "reset-session", "vault");
    await bob.callTool("configure-limits", { session: "vault", timeout: 0.1 });
    expect((await evaluate(ada, "treasure", "vault")).values).toEqual(["1"]);
    expect(textOf(await ada.callTool("configure-limits", { session: "vault" }))).toContain("timeout: 30 seconds");
  });

  it("gives a principal that reconnects its earlier sessions", async () => {
    const again = await as("ada");
    expect((await evaluate(again, "secret")).values).toEqual(["'of ada'"]);
    await again.close();
  });
});
