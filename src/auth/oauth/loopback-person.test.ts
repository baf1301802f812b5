// The person whom a loopback redirect sends to an authorization server: to which addresses, how they are told, and how
// long they are waited for.

import { describe, expect, it } from "vitest";
import { authorize, closes, never, send, sentOff } from "../../../test/support/loopback-visit.ts";
import { ConnectionError } from "../../core/errors.ts";
import { loopbackRedirect } from "./loopback-redirect.ts";

describe("the person", () => {
  it.each([
    [`${["java", "script:"].join("")}alert(1)?state=s1`],
    ["file:///etc/passwd?state=s1"],
    ["data:text/html,x?state=s1"],
    ["https://login.example@evil.example/authorize?state=s1"],
  ])("is not sent to %s", async (address) => {
    const refuse = (): never => expect.fail("nobody may be told it");
    const redirect = loopbackRedirect({ open: refuse, onAddress: refuse });
    await expect(redirect.visit(new URL(address), { signal: never })).rejects.toMatchObject({ kind: "refused" });
  });

  it("is not sent off without a state, or with one that is in use", async () => {
    const { redirect, uri, back } = await sentOff();
    for (const url of [new URL("https://login.example/authorize"), authorize("")]) {
      await expect(redirect.visit(url, { signal: never })).rejects.toThrow("no state");
    }
    await expect(redirect.visit(authorize("s1"), { signal: never })).rejects.toThrow("same state");
    await send(`${uri}?code=1&state=s1`);
    await back;
  });

  it("is told the address, opened or not", async () => {
    const told: [string, boolean][] = [];
    const onAddress = (url: URL, opened: boolean): void => void told.push([url.href, opened]);
    const stop = new AbortController();
    for (const open of [() => undefined, () => Promise.reject(new Error("no browser here"))]) {
      const before = told.length;
      const visit = loopbackRedirect({ open, onAddress }).visit(authorize(), { signal: stop.signal });
      visit.catch(() => undefined);
      await expect.poll(() => told.length).toBe(before + 1);
    }
    stop.abort();
    expect(told).toEqual([
      [authorize().href, true],
      [authorize().href, false],
    ]);
  });

  it("who cannot be told it is not waited for", async () => {
    const open = (): Promise<void> => Promise.reject(new Error("no browser here"));
    const redirect = loopbackRedirect({ open });
    const uri = await redirect.uri;
    const visit = redirect.visit(authorize(), { signal: never });
    await expect(visit).rejects.toBeInstanceOf(ConnectionError);
    await expect(visit).rejects.toMatchObject({ kind: "refused", message: expect.stringContaining("no browser here") });
    await closes(uri);
  });

  it("may come back before the browser is known to be open", async () => {
    const redirect = loopbackRedirect({
      open: async (url) => {
        await send(`${await redirect.uri}?code=1&state=${url.searchParams.get("state")}`);
        await new Promise(() => undefined);
      },
    });
    expect((await redirect.visit(authorize(), { signal: never })).searchParams.get("code")).toBe("1");
  });

  it("is waited for no longer than was said", async () => {
    const { uri, back } = await sentOff({ timeoutMs: 30 });
    await expect(back).rejects.toMatchObject({ kind: "timeout", message: expect.stringContaining(uri) });
    await closes(uri);
  });

  it("is waited for until the signal is aborted", async () => {
    const stop = new AbortController();
    const { redirect, uri, back } = await sentOff({}, authorize(), stop.signal);
    stop.abort(new Error("no longer wanted"));
    await expect(back).rejects.toThrow("no longer wanted");
    await closes(uri);
    await expect(redirect.visit(authorize(), { signal: stop.signal })).rejects.toThrow("no longer wanted");
  });
});
