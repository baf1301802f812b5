// Sessions belong to the authenticated principal: over HTTP, no other principal can reach them, also through a chain.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
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
  const state = mkdtempSync(join(tmpdir(), "catenary-ownership-"));
  beforeAll(async () => {
    vi.stubEnv("XDG_STATE_HOME", state);
    live = javascript();
    front = await serve(how === "by itself" ? live : chain().to({ js: live }), { http: { port: 0, auth } });
    [ada, bob] = await Promise.all([as("ada"), as("bob")]);
  });
  afterAll(async () => {
    await ada?.close();
    await bob?.close();
    await front?.close();
    await live?.close();
    vi.unstubAllEnvs();
    rmSync(state, { recursive: true, force: true });
  });

  const evaluate = async (who: Client, code: string, session?: string): Promise<EvaluationWithText> =>
    withText(await who.callTool("evaluate-js", { code, ...(session && { session }) }));
  const call = async (who: Client, tool: string, session: string): Promise<string> =>
    textOf(await who.callTool(tool, { session }));

  it("a live server refuses unauthenticated callers", async () => {
    await expect(connect(front.url ?? "")).rejects.toThrow(/401|unauthorized|Who are you/i);
  });

  it("a live server gives each principal its own session of the same name", async () => {
    await evaluate(ada, 'const secret = "of ada"');
    await evaluate(bob, 'const secret = "of bob"');
    expect((await evaluate(ada, "secret")).values).toEqual(["'of ada'"]);
    expect((await evaluate(bob, "secret")).values).toEqual(["'of bob'"]);
  });

  it("a live server neither shows nor opens the sessions of another principal", async () => {
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

  it("a live server keeps long output, transcript, handles, checkpoints and changes from other principals", async () => {
    const changes: unknown[] = [];
    const subscription = await bob.listen({ resourceSubscriptions: ["live://session/own/definitions"] }, (change) =>
      changes.push(change),
    );
    const { text } = await evaluate(ada, 'const mine = 1; console.log("of ada".repeat(5_000)); process', "own");
    const [uri = ""] = /live:\/\/session\/own\/output\/\d+/.exec(text) ?? [];
    expect((await ada.readResource(uri)).contents).toMatchObject([
      { text: expect.stringContaining("of ada") as string },
    ]);
    expect(textOf(await ada.callTool("save-session", { session: "own", checkpoint: "own" }))).toMatch(/^Saved/);
    for (const name of ["own", "ada\nown", "../own"]) {
      for (const what of ["transcript", "definitions", uri.slice("live://session/own/".length)])
        await expect(bob.readResource(`live://session/${encodeURIComponent(name)}/${what}`)).rejects.toThrow(
          /not found|A session name has/,
        );
    }
    await evaluate(bob, "0", "own");
    await expect(bob.readResource(uri)).rejects.toThrow("not found");
    expect(textOf(await bob.callTool("inspect", { session: "own", handle: 1 }))).toMatch(/^There is no handle 1/);
    const restored = await bob.callTool("restore-session", { session: "own", checkpoint: "own" });
    expect(textOf(restored)).toBe("There is no checkpoint own; none was saved");
    expect(changes).toEqual([]);
    await subscription.close();
  });

  it("a live server gives a principal that reconnects its earlier sessions", async () => {
    const again = await as("ada");
    expect((await evaluate(again, "secret")).values).toEqual(["'of ada'"]);
    await again.close();
  });
});
