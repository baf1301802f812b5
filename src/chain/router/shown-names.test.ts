// Names that were shown are remembered on disk, for the next start and for other processes with the same config.

import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { ShownNames } from "./shown-names.ts";
import { IS_LONG } from "../../../test/support/thoroughness.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-names-"));
  vi.stubEnv("XDG_STATE_HOME", folder);
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const names = (): string => join(folder, "catenary", "names");
const file = (): string => join(names(), readdirSync(names()).find((name) => name.endsWith(".json")) ?? "");

/** As another process would open it. */
async function reopen(): Promise<ShownNames> {
  return new ShownNames(file()).addJson(JSON.parse(readFileSync(file(), "utf8")));
}

it("are in a file that only the user can read, and are read at the next start", async () => {
  const first = await ShownNames.open(`${folder}/a.json`);
  expect(await ShownNames.open(`${folder}/a.json`)).toBe(first);
  first.use("notes", "rules");
  expect(first.add("tools", "notes", "my tool!", "my_tool_-0000000")).toBe(true);
  expect(first.add("tools", "notes", "my tool!", "my_tool_-0000000")).toBe(false);
  first.add("prompts", "notes", "__proto__", "__proto__");
  await first.saved();
  expect(statSync(file()).mode & 0o077).toBe(0);
  const second = await reopen();
  expect(second.shownName("tools", "notes", "my tool!")).toBe("my_tool_-0000000");
  expect(second.owner("prompts", "__proto__")).toEqual({ upstream: "notes", name: "__proto__" });
  expect(second.owner("tools", "__proto__")).toBeUndefined();
  second.use("notes", "other rules");
  expect(second.owner("tools", "my_tool_-0000000")).toBeUndefined();
});

it("of another process stay", async () => {
  const one = await ShownNames.open(`${folder}/b.json`);
  one.use("notes", "r");
  one.add("tools", "notes", "a", "a");
  await one.saved();
  const other = await reopen();
  other.use("notes", "r");
  other.use("mail", "r");
  other.add("tools", "mail", "b", "b");
  await other.saved();
  // This process does not know of mail, and has shown the name for its own item.
  one.add("tools", "notes", "c", "c");
  one.use("mail", "r");
  one.add("tools", "notes", "b", "b");
  await one.saved();
  const last = await reopen();
  expect(["a", "b", "c"].map((name) => last.owner("tools", name)?.upstream)).toEqual(["notes", "mail", "notes"]);
});

it("of an upstream that is no longer configured pass to another", async () => {
  const one = await ShownNames.open(`${folder}/c.json`);
  one.use("gone", "r");
  one.add("tools", "gone", "a", "a");
  await one.saved();
  const other = await reopen();
  other.use("notes", "r");
  other.add("tools", "notes", "a", "a");
  await other.saved();
  expect((await reopen()).owner("tools", "a")).toEqual({ upstream: "notes", name: "a" });
});

it.each([
  ["no JSON", "{"],
  ["another format", '{"version": 99, "upstreams": []}'],
  [
    "other values",
    '{"version": 1, "upstreams": [null, {"name": "n", "rules": "r", "tools": [1, ["a"], ["b", "b c"]]}]}',
  ],
])("ignore a file with %s", async (_what, text) => {
  const one = await ShownNames.open(`${folder}/${_what}.json`);
  one.use("n", "r");
  one.add("tools", "n", "a", "a");
  await one.saved();
  writeFileSync(file(), text);
  one.add("tools", "n", "b", "b");
  await one.saved();
  expect((await reopen()).owner("tools", "a")).toEqual({ upstream: "n", name: "a" });
});

it.runIf(IS_LONG)("are forgotten if one upstream shows too many, the oldest first, and only its own", () => {
  const shown = new ShownNames();
  shown.use("notes", "r");
  shown.use("evil", "r");
  shown.add("tools", "notes", "a", "a");
  for (let at = 0; at < 10_001; at += 1) shown.add("tools", "evil", `t.${at}`, `t${at}`);
  expect([shown.owner("tools", "t0"), shown.owner("tools", "t1")?.upstream]).toEqual([undefined, "evil"]);
  expect(shown.owner("tools", "a")?.upstream).toBe("notes");
});

it.runIf(IS_LONG)("take a limited number of bytes, whatever names a server has", async () => {
  const all = await ShownNames.open(`${folder}/long.json`);
  all.use("notes", "r");
  all.use("mail", "r");
  all.add("tools", "mail", "mine", "mine");
  for (let at = 0; at < 100; at += 1) all.add("tools", "notes", `${at}${"\u0001".repeat(10_000)}`, `shown_${at}`);
  expect(all.owner("tools", "shown_99")).toBeDefined();
  expect(all.owner("tools", "shown_0")).toBeUndefined();
  expect(all.owner("tools", "mine")).toBeDefined();
  // One that is too long alone is not remembered, and does not displace the others.
  expect(all.add("tools", "notes", "x".repeat(2 * 1024 * 1024), "huge")).toBe(false);
  expect(all.owner("tools", "shown_99")).toBeDefined();
  await all.saved();
  expect(statSync(file()).size).toBeLessThan(1.1 * 1024 * 1024);
});

it("are remembered until the process ends if they cannot be written", async () => {
  vi.stubEnv("XDG_STATE_HOME", "/proc/catenary");
  const shown = await ShownNames.open("nowhere");
  shown.use("notes", "r");
  shown.add("tools", "notes", "a", "a");
  await shown.saved();
  expect(shown.owner("tools", "a")?.upstream).toBe("notes");
});

it("do not change when a list is longer than all that is remembered", async () => {
  const shown = new ShownNames();
  shown.use("notes", "rules");
  const add = () => {
    for (let at = 0; at < 12_000; at += 1) shown.add("tools", "notes", `t${at}`, `t${at}`);
  };
  add();
  const { version } = shown;
  add();
  expect(shown.version).toBe(version);
  expect(shown.add("tools", "notes", "my tool!", "my_tool_-0000000")).toBe(true);
});
