// Lists on disk: read back as written, for their caller only, and limited in number. Lists in memory, and those
// that are read from an upstream: limited in length.

import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, expect, it, onTestFinished, vi } from "vitest";
import { eventually } from "../../../test/support/waiting.ts";
import { fakeContext } from "../../../test/support/handlers/fake-client.ts";
import type { Handler } from "../../core/handler.ts";
import { McpError } from "../../protocol/errors.ts";
import { type StoredLists, ListsFile, ListsKeeper, type ListsOwner, ListsStore } from "./stored-lists.ts";
import type { UpstreamConnection } from "./supervisor.ts";
import { IS_LONG } from "../../../test/support/thoroughness.ts";

let folder = "";
beforeEach(() => {
  const cache = mkdtempSync(join(tmpdir(), "catenary-files-"));
  onTestFinished(() => rmSync(cache, { recursive: true, force: true }));
  vi.stubEnv("CATENARY_CACHE", cache);
  onTestFinished(() => void vi.unstubAllEnvs());
  folder = join(cache, "catalogues");
});

const LISTS: StoredLists = { discovered: { resultType: "complete" }, lists: {} };

it("are found by the identity of the upstream and the caller", async () => {
  await new ListsFile("a", "ada").write(LISTS);
  expect(await new ListsFile("a", "ada").read()).toEqual(LISTS);
  expect(await new ListsFile("b", "ada").read()).toBeUndefined();
  expect(await new ListsFile("a", "bob").read()).toBeUndefined();
  expect(await new ListsFile("a").read()).toBeUndefined();
  const [name = ""] = readdirSync(folder);
  expect([statSync(folder).mode & 0o777, statSync(join(folder, name)).mode & 0o777]).toEqual([0o700, 0o600]);
});

const OF_ADA: StoredLists = { ...LISTS, lists: { "tools/list": [{ name: "t" }] } };

it("of callers without a principal are known to a principal, until what it sees differs", async () => {
  await new ListsFile("a").write(LISTS);
  const ada = new ListsFile("a", "ada");
  expect(await ada.read()).toEqual(LISTS);
  await ada.write(LISTS);
  expect(readdirSync(folder)).toHaveLength(1);
  await ada.write(OF_ADA);
  expect(await ada.read()).toEqual(OF_ADA);
  expect(await new ListsFile("a").read()).toEqual(LISTS);
  expect(await new ListsFile("a", "bob").read()).toEqual(LISTS);
  // The lists are the same again, for example because the server was updated and doctor has listed it.
  await new ListsFile("a").write(OF_ADA);
  await ada.write(OF_ADA);
  expect(readdirSync(folder)).toHaveLength(1);
});

it.runIf(IS_LONG)("are at most a thousand: the oldest are deleted", async () => {
  mkdirSync(folder, { mode: 0o700 });
  for (let n = 0; n < 1_000; n += 1) {
    writeFileSync(join(folder, `${n}.json`), "{}");
    utimesSync(join(folder, `${n}.json`), n, n);
  }
  await new ListsFile("new").write(LISTS);
  const names = readdirSync(folder);
  expect(names).toHaveLength(900);
  expect(names).toContain("999.json");
  expect(names).not.toContain("0.json");
  expect(await new ListsFile("new").read()).toEqual(LISTS);
});

it.skipIf(process.getuid === undefined)("are neither read nor written where other users can write", async () => {
  await new ListsFile("a").write(LISTS);
  chmodSync(folder, 0o777);
  expect(await new ListsFile("a").read()).toBeUndefined();
  await new ListsFile("b").write(LISTS);
  expect(readdirSync(folder)).toHaveLength(1);
  chmodSync(folder, 0o700);
  expect(await new ListsFile("a").read()).toEqual(LISTS);
});

it("are not kept if the folder cannot be created", async () => {
  vi.stubEnv("CATENARY_CACHE", "/proc/catenary");
  const file = new ListsFile("mine");
  await file.write(LISTS);
  expect(await file.read()).toBeUndefined();
});

it("are ignored if they are not valid or too long", async () => {
  const file = new ListsFile("mine");
  await file.write(LISTS);
  const [name = ""] = readdirSync(folder);
  const wrong: readonly unknown[] = [
    { discovered: { resultType: "input_required" }, lists: {} },
    { discovered: { resultType: "complete", capabilities: null }, lists: {} },
    { ...LISTS, lists: { "tools/list": "x" } },
    { ...LISTS, lists: { "tools/list": [null] } },
    { ...LISTS, more: "x".repeat(5 * 1024 * 1024) },
  ];
  for (const one of wrong) {
    writeFileSync(join(folder, name), JSON.stringify(one));
    expect(await file.read()).toBeUndefined();
  }
  writeFileSync(join(folder, name), JSON.stringify({ ...LISTS, lists: { "tools/list": [{ name: "t" }] } }));
  expect((await file.read())?.lists["tools/list"]).toEqual([{ name: "t" }]);
});

const MEGABYTE = 1024 * 1024;

it("cannot be changed, since all callers get the same one", async () => {
  const store = new ListsStore(new ListsFile("a"));
  await store.set({ ...LISTS, lists: { "tools/list": [{ name: "t", annotations: { title: "T" } }] } });
  for (const known of [await store.known(), await new ListsStore(new ListsFile("a")).known()]) {
    const [tool] = (known ?? LISTS).lists["tools/list"] as [{ name: string; annotations: { title: string } }];
    expect(() => (tool.name = "u")).toThrow("Cannot assign to read only property 'name'");
    expect(() => (tool.annotations.title = "U")).toThrow("Cannot assign to read only property 'title'");
  }
});

it.runIf(IS_LONG)("are let go of if all together are too long, and read again from their files", async () => {
  const tool = { name: "t", description: "x".repeat(3.5 * MEGABYTE) };
  const stored = { ...LISTS, lists: { "tools/list": [tool] } };
  const stores = Array.from({ length: 20 }, (_, n) => new ListsStore(new ListsFile(n)));
  for (const store of stores) await store.set(stored);
  expect(await stores[0]?.known()).toEqual(stored);
  // Without their files, only those in memory are known: 18 of these fit.
  rmSync(folder, { recursive: true });
  const known = await Promise.all(stores.map((store) => store.known()));
  expect(known.filter((one) => one !== undefined)).toHaveLength(18);
  for (const store of stores) await store.set(undefined);
});

/** Reads the lists of an upstream with this handler into a store. `onStart` is called before the first read. */
async function readFrom(
  handler: Handler,
  owner: Partial<ListsOwner> = {},
  onStart: (keeper: ListsKeeper) => void = () => undefined,
): Promise<ListsStore> {
  const store = new ListsStore(new ListsFile("read"));
  const discovered = { resultType: "complete", capabilities: { tools: {}, prompts: {}, resources: {} } };
  const opened = { connection: { handler, discovered } } as unknown as UpstreamConnection;
  const stored = vi.spyOn(store, "set");
  const keeper = new ListsKeeper(store, {
    isOwn: false,
    background: () => fakeContext().context,
    isCurrent: () => true,
    notifyChanged: () => undefined,
    ...owner,
  });
  keeper.start(opened);
  onTestFinished(() => keeper.close());
  onStart(keeper);
  await eventually(() => expect(stored).toHaveBeenCalledTimes(1));
  return store;
}

it.runIf(IS_LONG)("are not read to the end if an upstream's lists are too long", async () => {
  const requests: string[] = [];
  const endless: Handler = async ({ method }) => {
    requests.push(method);
    if (method === "subscriptions/listen") return new Promise(() => undefined);
    const item = { name: `n${requests.length}`, uri: `u:${requests.length}`, description: "x".repeat(8 * MEGABYTE) };
    return { tools: [item], nextCursor: `c${requests.length}` };
  };
  expect(await (await readFrom(endless)).known()).toBeUndefined();
  // The first list stops at 16 MiB, and the others are not read.
  expect(requests.filter((method) => method === "tools/list")).toHaveLength(2);
  expect(requests.filter((method) => method.endsWith("/list"))).toHaveLength(2);
  expect(existsSync(folder)).toBe(false);
});

it("leave out a list that an upstream does not have, and are not changed by a failure", async () => {
  let answer: Handler = async ({ method }) => {
    if (method === "subscriptions/listen") return new Promise(() => undefined);
    if (method === "tools/list") return { tools: [{ name: "t" }] };
    throw new McpError(-32601, "Method not found");
  };
  const store = await readFrom((request, context) => answer(request, context));
  expect((await store.known())?.lists).toEqual({ "tools/list": [{ name: "t" }] });
  answer = () => Promise.reject(new Error("broken"));
  expect((await store.known())?.lists).toEqual({ "tools/list": [{ name: "t" }] });
});

it("are deleted if they have become too long, and callers are notified", async () => {
  const old = { ...LISTS, lists: { "tools/list": [{ name: "old" }] } };
  const file = new ListsFile("read");
  await file.write(old);
  const notifyChanged = vi.fn<ListsOwner["notifyChanged"]>();
  const tool = { name: "new", description: "x".repeat(5 * MEGABYTE) };
  const long: Handler = async ({ method }) =>
    method === "subscriptions/listen" ? new Promise(() => undefined) : { tools: [tool] };
  const store = await readFrom(long, { notifyChanged });
  await eventually(() => expect(notifyChanged.mock.calls).toEqual([[["tools", "prompts", "resources"]]]));
  expect(await store.known()).toBeUndefined();
  expect(await file.read()).toBeUndefined();
  // Fewer characters than the limit, but more bytes.
  await file.write(old);
  await file.write({ ...LISTS, lists: { "tools/list": [{ name: "ä".repeat(3 * MEGABYTE) }] } });
  expect(readdirSync(folder)).toEqual([]);
});

it("of a session with one client are read once after a start", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const methods: string[] = [];
  let changed = (): void => undefined;
  const handler: Handler = async ({ method }, { notify }) => {
    methods.push(method);
    if (method === "tools/list") return { tools: [] };
    if (method !== "subscriptions/listen") throw new McpError(-32601, "Method not found");
    changed = () => notify({ method: "notifications/tools/list_changed" });
    return new Promise(() => undefined);
  };
  const reading = readFrom(handler, { isOwn: true });
  await vi.advanceTimersByTimeAsync(100);
  await reading;
  const before = methods.length;
  changed();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(methods).toHaveLength(before);
});

it("notify callers only of lists that differ, after a start and after each report of the upstream", async () => {
  let tools = ["a"];
  let report = (_method: string): void => undefined;
  const requests: string[] = [];
  const handler: Handler = async ({ method }, { notify }) => {
    requests.push(method);
    if (method === "subscriptions/listen") {
      report = (changed) => notify({ method: changed });
      return new Promise(() => undefined);
    }
    return { tools: tools.map((name) => ({ name })), prompts: [], resources: [], resourceTemplates: [] };
  };
  const notifyChanged = vi.fn<ListsOwner["notifyChanged"]>();
  const reads = (): number => requests.filter((method) => method === "resources/templates/list").length;
  const store = await readFrom(handler, { notifyChanged });
  // The same lists, read by another run.
  await readFrom(handler, { notifyChanged });
  const before = reads();
  report("notifications/tools/list_changed");
  await eventually(() => expect(reads()).toBe(before + 1));
  expect(notifyChanged).not.toHaveBeenCalled();
  tools = ["a", "b"];
  report("notifications/prompts/list_changed");
  await eventually(() => expect(notifyChanged.mock.calls).toEqual([[["tools"]]]));
  expect(store).toBeDefined();
});

it("notify callers of a change that the upstream reports before its lists are known", async () => {
  const handler: Handler = async ({ method }, { notify }) => {
    if (method === "subscriptions/listen") {
      notify({ method: "notifications/tools/list_changed" });
      return new Promise(() => undefined);
    }
    return { tools: [{ name: "a" }], prompts: [], resources: [], resourceTemplates: [] };
  };
  const notifyChanged = vi.fn<ListsOwner["notifyChanged"]>();
  await readFrom(handler, { notifyChanged });
  await eventually(() => expect(notifyChanged).toHaveBeenCalledTimes(1));
});

it("notify callers who were answered by the upstream itself, even if its lists are the stored ones again", async () => {
  const lists = {
    "tools/list": [{ name: "a" }],
    "prompts/list": [],
    "resources/list": [],
    "resources/templates/list": [],
  };
  await new ListsFile("read").write({ ...LISTS, lists });
  const handler: Handler = async ({ method }) =>
    method === "subscriptions/listen"
      ? new Promise(() => undefined)
      : { tools: [{ name: "a" }], prompts: [], resources: [], resourceTemplates: [] };
  const notifyChanged = vi.fn<ListsOwner["notifyChanged"]>();
  const request = { method: "tools/list", params: {} };
  const prompts = { method: "prompts/list", params: {} };
  await readFrom(handler, { notifyChanged }, (keeper) => {
    keeper.answered(request, { tools: [] });
    keeper.answered(prompts, { prompts: [] });
  });
  await eventually(() => expect(notifyChanged.mock.calls).toEqual([[["tools"]]]));
  await readFrom(handler, { notifyChanged }, (keeper) => {
    keeper.answered(request, { tools: [{ name: "a" }] });
    keeper.answered(prompts, { prompts: [] });
    keeper.answered(prompts, { prompts: [], nextCursor: "1" });
  });
  await eventually(() => expect(notifyChanged.mock.calls.slice(1)).toEqual([[["prompts"]]]));
});

it("notify the client of a session of its own of a change that is reported during the first read", async () => {
  let report = (): void => undefined;
  const handler: Handler = async ({ method }, { notify }) => {
    if (method === "subscriptions/listen") {
      report = () => notify({ method: "notifications/tools/list_changed" });
      return new Promise(() => undefined);
    }
    if (method === "resources/list") report();
    return { tools: [{ name: "a" }], prompts: [], resources: [], resourceTemplates: [] };
  };
  await readFrom(handler);
  const notifyChanged = vi.fn<ListsOwner["notifyChanged"]>();
  await readFrom(handler, { isOwn: true, notifyChanged });
  await eventually(() => expect(notifyChanged.mock.calls).toEqual([[["tools", "prompts", "resources"]]]));
});
