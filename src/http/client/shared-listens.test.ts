// Many resource subscriptions of a caller over few listens: grants, updates, ends, and servers that refuse a combined one.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { IS_LONG } from "../../../test/support/thoroughness.ts";
import type { Context, Handler, Notification, Result } from "../../core/handler.ts";
import { McpError } from "../../protocol/errors.ts";
import { sharingListens } from "./shared-listens.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

interface OpenListen {
  readonly uris: readonly string[];
  readonly context: Context;
  end(error?: Error): void;
}

/** A server that grants up to `maxUris` in one listen. */
function stage(maxUris = Infinity, refuse?: Error) {
  const open = new Set<OpenListen>();
  let most = 0;
  let opened = 0;
  const handler: Handler = async ({ params }, context) => {
    const filter = params["notifications"] as { readonly resourceSubscriptions: readonly string[] };
    const uris = filter.resourceSubscriptions;
    if (uris.length > maxUris && refuse !== undefined) throw refuse;
    const notifications = { resourceSubscriptions: uris.slice(0, maxUris) };
    await Promise.resolve();
    context.notify({ method: "notifications/subscriptions/acknowledged", params: { notifications } });
    context.signal.throwIfAborted();
    return new Promise<Result>((resolve, reject) => {
      const end = (error?: Error): void => {
        open.delete(listen);
        if (error === undefined) resolve({ resultType: "complete" });
        else reject(error);
      };
      const listen: OpenListen = { uris, context, end };
      open.add(listen);
      opened += 1;
      most = Math.max(most, open.size);
      context.signal.addEventListener("abort", () => end(new Error("aborted")), { once: true });
    });
  };
  const shared = sharingListens(handler);
  const update = (uri: string): void => {
    for (const { uris, context } of open) {
      if (uris.some((one) => uri.startsWith(one)))
        context.notify({ method: "notifications/resources/updated", params: { uri } });
    }
  };
  const subscribe = (uri: string, key = "one") => {
    const heard: string[] = [];
    const stop = new AbortController();
    const notify = ({ method, params }: Notification): void =>
      void heard.push(method.endsWith("acknowledged") ? "granted" : String(params?.["uri"]));
    const context = { signal: stop.signal, notify, caller: { key } } as unknown as Context;
    const params = { notifications: { resourceSubscriptions: [uri] } };
    const outcome = shared({ method: "subscriptions/listen", params }, context).catch((error: unknown) => error);
    return { uri, heard, stop, outcome };
  };
  return { open, subscribe, update, most: () => most, opened: () => opened };
}

const uri = (at: number): string => `r:${String(at).padStart(5, "0")}`;

it.runIf(IS_LONG)("sharingListens needs few listens for many subscriptions, and each gets its updates", async () => {
  const { open, subscribe, update, most } = stage();
  const all = [];
  for (let at = 0; at < 700; at += 1) {
    all.push(subscribe(uri(at)));
    await vi.advanceTimersByTimeAsync(0);
  }
  // Eight alone, those that are still read, and the combined ones.
  expect(most()).toBeLessThan(64);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(open.size).toBeLessThan(16);
  for (const { uri, heard } of all) {
    update(uri);
    expect(heard).toEqual(["granted", uri]);
  }
});

it("sharingListens opens few listens for many that come at once", async () => {
  const { open, subscribe, opened } = stage();
  const all = Array.from({ length: 100 }, (_, at) => subscribe(uri(at)));
  await vi.advanceTimersByTimeAsync(2_000);
  expect(open.size).toBe(1);
  expect(opened()).toBeLessThan(110);
  for (const { heard } of all) expect(heard).toEqual(["granted"]);
});

it("sharingListens loses no update while listens are combined", async () => {
  const { subscribe, update } = stage();
  const first = subscribe(uri(0));
  for (let at = 1; at < 100; at += 1) {
    subscribe(uri(at));
    update(uri(0));
    await vi.advanceTimersByTimeAsync(0);
    update(uri(0));
    await vi.advanceTimersByTimeAsync(100);
  }
  // The first update comes before the grant. One may arrive twice, on the old listen and the new one.
  expect(first.heard.filter((one) => one === uri(0)).length).toBeGreaterThanOrEqual(197);
});

it("sharingListens reports a part of a resource to the subscription of the resource", async () => {
  const { subscribe, update } = stage();
  const all = Array.from({ length: 20 }, (_, at) => subscribe(uri(at)));
  await vi.advanceTimersByTimeAsync(2_000);
  update(`${uri(3)}/part`);
  expect(all.map(({ heard }) => heard.length)).toEqual(all.map((_, at) => (at === 3 ? 2 : 1)));
});

it("sharingListens tells notes://10/x apart from notes://1", async () => {
  const { subscribe, update } = stage();
  const all = Array.from({ length: 20 }, (_, at) => subscribe(`notes://${at}`));
  await vi.advanceTimersByTimeAsync(2_000);
  update("notes://10/x");
  for (const { uri, heard } of all) {
    expect(heard).toEqual(uri === "notes://10" ? ["granted", "notes://10/x"] : ["granted"]);
  }
});

it("sharingListens keeps callers apart", async () => {
  const { open, subscribe } = stage();
  for (const key of ["one", "two"]) for (let at = 0; at < 20; at += 1) subscribe(uri(at), key);
  await vi.advanceTimersByTimeAsync(2_000);
  expect([...open].map(({ uris }) => uris.length)).toEqual([20, 20]);
});

it("sharingListens ends one subscription without the others, and the listen with the last", async () => {
  const { open, subscribe, update } = stage();
  const all = Array.from({ length: 20 }, (_, at) => subscribe(uri(at)));
  await vi.advanceTimersByTimeAsync(2_000);
  for (const { stop, outcome, heard, uri } of all) {
    expect(open.size).toBe(1);
    stop.abort(new Error("enough"));
    expect(await outcome).toMatchObject({ kind: "cancelled", message: "Cancelled: enough" });
    update(uri);
    expect(heard).toEqual(["granted"]);
  }
  await vi.advanceTimersByTimeAsync(0);
  expect(open.size).toBe(0);
});

it("sharingListens ends all subscriptions of a listen that the server ends", async () => {
  for (const error of [undefined, new Error("gone")]) {
    const { open, subscribe } = stage();
    const all = Array.from({ length: 20 }, (_, at) => subscribe(uri(at)));
    await vi.advanceTimersByTimeAsync(2_000);
    for (const listen of open) listen.end(error);
    for (const { outcome } of all) expect(await outcome).toEqual(error ?? { resultType: "complete" });
  }
});

it.each([
  ["refuses", McpError.of("invalid_params", "Too many")],
  ["grants only a part of", undefined],
])("sharingListens leaves subscriptions alone if the server %s a combined listen", async (_name, refuse) => {
  const { open, subscribe, update } = stage(5, refuse);
  const all = Array.from({ length: 30 }, (_, at) => subscribe(uri(at)));
  await vi.advanceTimersByTimeAsync(2_000);
  expect(open.size).toBe(30);
  for (const { uri, heard } of all) {
    update(uri);
    expect(heard).toEqual(["granted", uri]);
  }
});

it("sharingListens passes on the error of a single subscription", async () => {
  const failure = McpError.of("invalid_params", "Unknown");
  expect(await stage(0, failure).subscribe("r:1").outcome).toBe(failure);
});
