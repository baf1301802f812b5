// Visits through a loopback redirect: which URLs are opened, how the user gets them, and how long it waits.

import { expect, it } from "vitest";
import { authorize, closes, never, send, startVisit } from "../../../test/support/auth/loopback-redirect.ts";
import { ConnectionError } from "../../core/errors.ts";
import { loopbackRedirect } from "./loopback-redirect.ts";

it.each([
  [`${["java", "script:"].join("")}alert(1)?state=s1`],
  ["file:///etc/passwd?state=s1"],
  ["data:text/html,x?state=s1"],
  ["https://login.example@evil.example/authorize?state=s1"],
])("the user is not sent to %s", async (address) => {
  const refuse = (): never => expect.fail("it must not be shown");
  const redirect = loopbackRedirect({ open: refuse, onAddress: refuse });
  await expect(redirect.visit(new URL(address), { signal: never })).rejects.toMatchObject({ kind: "refused" });
});

it("the user is not sent away without a state, or with one that is in use", async () => {
  const { redirect, uri, callback } = await startVisit();
  for (const url of [new URL("https://login.example/authorize"), authorize("")]) {
    await expect(redirect.visit(url, { signal: never })).rejects.toThrow("no `state`");
  }
  await expect(redirect.visit(authorize("s1"), { signal: never })).rejects.toThrow("same state");
  await send(`${uri}?code=1&state=s1`);
  await callback;
});

it("the user gets the URL, opened or not", async () => {
  const shown: [string, boolean][] = [];
  const onAddress = (url: URL, opened: boolean): void => void shown.push([url.href, opened]);
  const stop = new AbortController();
  for (const open of [() => undefined, () => Promise.reject(new Error("no browser here"))]) {
    const before = shown.length;
    const visit = loopbackRedirect({ open, onAddress }).visit(authorize(), { signal: stop.signal });
    visit.catch(() => undefined);
    await expect.poll(() => shown.length).toBe(before + 1);
  }
  stop.abort();
  expect(shown).toEqual([
    [authorize().href, true],
    [authorize().href, false],
  ]);
});

it("the user is not waited for if the URL cannot be shown", async () => {
  const open = (): Promise<void> => Promise.reject(new Error("no browser here"));
  const redirect = loopbackRedirect({ open });
  const uri = await redirect.uri;
  const visit = redirect.visit(authorize(), { signal: never });
  await expect(visit).rejects.toBeInstanceOf(ConnectionError);
  await expect(visit).rejects.toMatchObject({ kind: "refused", message: expect.stringContaining("no browser here") });
  await closes(uri);
});

it("the user may come back before `open` has returned", async () => {
  const redirect = loopbackRedirect({
    open: async (url) => {
      await send(`${await redirect.uri}?code=1&state=${url.searchParams.get("state")}`);
      await new Promise(() => undefined);
    },
  });
  expect((await redirect.visit(authorize(), { signal: never })).searchParams.get("code")).toBe("1");
});

it("the user is waited for until the timeout", async () => {
  const { uri, callback } = await startVisit({ timeoutMs: 30 });
  await expect(callback).rejects.toMatchObject({ kind: "timeout", message: expect.stringContaining(uri) });
  await closes(uri);
});

it("the user is waited for until the signal is aborted", async () => {
  const stop = new AbortController();
  const { redirect, uri, callback } = await startVisit({}, authorize(), stop.signal);
  stop.abort(new Error("no longer wanted"));
  await expect(callback).rejects.toThrow("no longer wanted");
  await closes(uri);
  await expect(redirect.visit(authorize(), { signal: stop.signal })).rejects.toThrow("no longer wanted");
});
