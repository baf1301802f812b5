// Tokens in a file: what is written, with which permissions, and which files are refused. Several processes with one
// file are tested in file-lock.test.ts.

import { chmodSync, chownSync, existsSync, linkSync, mkdirSync, mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { outputOf } from "../../../test/support/blocking-program.ts";
import { ConnectionError } from "../../core/errors.ts";
import { fileTokens } from "./token-stores.ts";

let home = "";
let file = "";

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "catenary-tokens-"));
  file = join(home, "state", "tokens.json");
});

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(home, { recursive: true, force: true });
});

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);

const refusal = async (promise: Promise<unknown>): Promise<string> => {
  const error: unknown = await promise.then(
    () => expect.fail("it was not refused"),
    (error: unknown) => error,
  );
  expect(error).toBeInstanceOf(ConnectionError);
  expect((error as ConnectionError).kind).toBe("refused");
  return (error as ConnectionError).message;
};

it("tokens in a file are kept for the next store, and deleted one by one", async () => {
  const store = fileTokens(file);
  expect(await store.get("a")).toBeUndefined();
  expect(existsSync(file)).toBe(false);
  await store.set("a", "1");
  await store.set("__proto__", "ü\n\u0000");
  const next = fileTokens(file);
  expect([await next.get("a"), await next.get("__proto__"), await next.get("toString")]).toEqual([
    "1",
    "ü\n\u0000",
    undefined,
  ]);
  await next.set("a", undefined);
  expect([await store.get("a"), await store.get("__proto__")]).toEqual([undefined, "ü\n\u0000"]);
});

it("tokens in a file are refused if the directory cannot be created", async () => {
  const directory = "/proc/catenary/state";
  const message = await refusal(fileTokens(`${directory}/tokens.json`).set("a", "1"));
  expect(message).toMatch(/^The directory \/proc\/catenary\S* could not be created: /);
});

it("tokens in a file are accessible to the owner only, with any umask, and leave no draft", async () => {
  const before = process.umask(0);
  try {
    await fileTokens(file).set("a", "1");
  } finally {
    process.umask(before);
  }
  expect([modeOf(file), modeOf(join(home, "state")), modeOf(`${file}.locks`)]).toEqual(["600", "700", "700"]);
  expect(readdirSync(join(home, "state")).toSorted()).toEqual(["tokens.json", "tokens.json.locks"]);
  expect(readdirSync(`${file}.locks`)).toEqual([]);
});

it("tokens in a file replace the draft of a writer that crashed", async () => {
  mkdirSync(join(home, "state"));
  writeFileSync(`${file}.new`, "half a te", { mode: 0o666 });
  await fileTokens(file).set("a", "1");
  expect([modeOf(file), existsSync(`${file}.new`)]).toEqual(["600", false]);
});

it("tokens in a file replace the file as a whole: a reader keeps the old one", async () => {
  const store = fileTokens(file);
  await store.set("a", "1");
  linkSync(file, join(home, "old"));
  await store.set("a", "2");
  expect(readFileSync(join(home, "old"), "utf8")).toContain('"1"');
  expect(await store.get("a")).toBe("2");
});

it("tokens in a file do not write unchanged values", async () => {
  const store = fileTokens(file);
  await store.set("a", "1");
  const { ino } = statSync(file);
  await store.set("a", "1");
  await store.set("none", undefined);
  expect(statSync(file).ino).toBe(ino);
});

it.each([
  ["XDG_STATE_HOME", () => vi.stubEnv("XDG_STATE_HOME", join(home, "xdg")), "xdg/catenary"],
  ["the home directory", () => vi.stubEnv("XDG_STATE_HOME", undefined), ".local/state/catenary"],
  [
    "the home directory, if XDG_STATE_HOME is relative",
    () => vi.stubEnv("XDG_STATE_HOME", "xdg"),
    ".local/state/catenary",
  ],
])("tokens in a file are in %s by default", async (_where, stub, directory) => {
  vi.stubEnv("HOME", home);
  stub();
  await fileTokens().set("a", "1");
  expect([modeOf(join(home, directory, "tokens.json")), modeOf(join(home, directory))]).toEqual(["600", "700"]);
});

it("refuses unknown options", () => {
  const misspelt = { waitMS: 5 } as Parameters<typeof fileTokens>[1];
  expect(() => fileTokens(file, misspelt)).toThrow(
    new TypeError("fileTokens() has no option `waitMS`; did you mean `waitMs`?"),
  );
});

describe("a token file", () => {
  beforeEach(async () => {
    await fileTokens(file).set("a", "the secret");
  });

  it.each([0o640, 0o604, 0o660, 0o644, 0o601])(
    "a token file is refused with mode %o, and not changed",
    async (mode) => {
      chmodSync(file, mode);
      for (const use of [() => fileTokens(file).get("a"), () => fileTokens(file).set("a", "2")]) {
        const message = await refusal(use());
        expect(message).toContain(`chmod 600 ${file}`);
        expect(message).not.toContain("the secret");
      }
      expect([modeOf(file), readFileSync(file, "utf8").includes("the secret")]).toEqual([mode.toString(8), true]);
    },
  );

  it("a token file is refused if it is a symbolic link, even to a valid one", async () => {
    const link = join(home, "link.json");
    symlinkSync(file, link);
    expect(await refusal(fileTokens(link).get("a"))).toContain("symbolic link");
    expect(await refusal(fileTokens(link).set("a", "2"))).toContain("symbolic link");
    expect(await fileTokens(file).get("a")).toBe("the secret");
  });

  it.runIf(process.getuid?.() === 0)("a token file is refused if it belongs to another user", async () => {
    chownSync(file, 12_345, 12_345);
    expect(await refusal(fileTokens(file).get("a"))).toContain("another user (uid 12345)");
    expect(await refusal(fileTokens(file).set("a", "2"))).toContain("another user");
  });

  it("a token file is refused if it is a pipe or a directory, without waiting", async () => {
    const pipe = join(home, "pipe");
    outputOf("/usr/bin/mkfifo", ["-m", "600", pipe]);
    expect(await refusal(fileTokens(pipe).get("a"))).toContain("not a regular file");
    expect(await refusal(fileTokens(home).get("a"))).toContain("not a regular file");
  });

  it("a token file has a lock directory that is refused if others can write to it", async () => {
    chmodSync(`${file}.locks`, 0o777);
    expect(await refusal(fileTokens(file).set("a", "2"))).toContain(`chmod 700 ${file}.locks`);
    expect(await refusal(fileTokens(file).exclusively("a", () => Promise.resolve()))).toContain("chmod 700");
  });

  it.each(["", "{", "[]", "null", '"a"', '{"a":1}', '{"a":"1"} x', '{"a":"the secret"'])(
    "a token file with the content %j is renamed, with a notice",
    async (text) => {
      writeFileSync(file, text);
      const notices: string[] = [];
      const store = fileTokens(file, { onNotice: (notice) => notices.push(notice) });
      const both = await Promise.all([
        store.get("a"),
        fileTokens(file, { onNotice: (notice) => notices.push(notice) }).get("a"),
      ]);
      expect(both).toEqual([undefined, undefined]);
      const aside = readdirSync(join(home, "state")).filter((name) => name.includes("broken"));
      expect(aside).toHaveLength(1);
      expect(notices).toHaveLength(1);
      expect(notices[0]).toContain(aside[0]);
      expect(notices[0]).not.toContain("the secret");
      expect(readFileSync(join(home, "state", aside[0] ?? ""), "utf8")).toBe(text);
      await store.set("a", "new");
      expect([await store.get("a"), modeOf(file)]).toEqual(["new", "600"]);
    },
  );

  it("a token file that is broken causes a process warning by default", async () => {
    writeFileSync(file, "{");
    const warned = new Promise<Error>((resolve) => process.once("warning", resolve));
    await fileTokens(file).set("a", "new");
    expect((await warned).message).toContain("was renamed to");
  });

  it("a token file that cannot be written is named in the error, and not changed", async () => {
    mkdirSync(`${file}.new`);
    writeFileSync(join(`${file}.new`, "in the way"), "");
    expect(await refusal(fileTokens(file).set("a", "2"))).toContain(file);
    expect(await fileTokens(file).get("a")).toBe("the secret");
  });
});
