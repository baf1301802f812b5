// Tokens in a real keychain: gnome-keyring in its own D-Bus session and home directory. As root, missing packages are
// installed; otherwise these tests are skipped with a reason. The errors without a keychain are tested everywhere.

import { execFile, spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { installDebianPackages } from "../../../test/support/debian.ts";
import { compiledImport } from "../../../test/support/programs.ts";
import type { ConnectionError } from "../../core/errors.ts";
import { keychainTokens } from "./token-stores.ts";

const run = promisify(execFile);
const DAEMON = "/usr/bin/gnome-keyring-daemon";
const BUS = "/usr/bin/dbus-run-session";
const PACKAGES = ["gnome-keyring", "dbus"];
const SOURCE = compiledImport("token-stores.ts", import.meta.url);
const evaluate = (script: string): string[] => ["--input-type=module", "-e", script];

/** Why there is no keychain to test with. */
async function missing(): Promise<string | undefined> {
  if (process.platform !== "linux") return "they are tested on Linux only";
  if (existsSync(DAEMON) && existsSync(BUS)) return undefined;
  if (await installDebianPackages(...PACKAGES)) return undefined;
  return `packages are missing and could not be installed (apt-get install ${PACKAGES.join(" ")})`;
}

const home = mkdtempSync(join(tmpdir(), "catenary-keychain-"));
afterAll(() => rmSync(home, { recursive: true, force: true }));
afterEach(() => {
  vi.unstubAllEnvs();
  vi.doUnmock("@napi-rs/keyring");
  vi.resetModules();
});

const refusal = async (promise: Promise<unknown>): Promise<ConnectionError> => {
  const error: unknown = await promise.then(
    () => expect.fail("it was not refused"),
    (error: unknown) => error,
  );
  return error as ConnectionError;
};

it("tokens in a keychain that is not available are an error that names the package to install", async () => {
  vi.stubEnv("XDG_STATE_HOME", home);
  vi.doMock("@napi-rs/keyring", () => {
    throw new Error("Cannot find package '@napi-rs/keyring'");
  });
  vi.resetModules();
  const store = (await import("./token-stores.ts")).keychainTokens();
  for (const use of [() => store.get("a"), () => store.set("a", "the secret")]) {
    const error = await refusal(use());
    expect(error).toMatchObject({ name: "ConnectionError", kind: "refused" });
    expect(error.message).toContain("npm install @napi-rs/keyring");
    expect(error.message).toContain("fileTokens()");
    expect(error.message).not.toContain("the secret");
  }
});

// In its own process, since the library keeps the first bus address that it sees.
it.runIf(process.platform === "linux")(
  "tokens in a keychain that is not available are an error that names the service to start",
  async () => {
    const script = `import { keychainTokens } from ${SOURCE};
      const store = keychainTokens();
      const works = [() => store.get("a"), () => store.set("a", "the secret"), () => store.set("a", undefined)];
      for (const work of works) await work().catch((error) => console.log(JSON.stringify({ ...error, message: error.message })));`;
    const env = { ...process.env, XDG_STATE_HOME: home, DBUS_SESSION_BUS_ADDRESS: `unix:path=${join(home, "none")}` };
    const { stdout } = await run(process.execPath, evaluate(script), { env });
    const errors = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(errors.map(({ name, kind }) => `${name} ${kind}`)).toEqual(
      Array.from({ length: 3 }, () => "ConnectionError refused"),
    );
    for (const { message } of errors) {
      expect(message).toContain("Secret Service");
      expect(message).toContain("fileTokens()");
      expect(message).not.toContain("the secret");
    }
  },
);

it("tokens in a keychain that is not available need known options", () => {
  const misspelt = { services: "x" } as Parameters<typeof keychainTokens>[0];
  expect(() => keychainTokens(misspelt)).toThrow(
    new TypeError("keychainTokens() has no option `services`; did you mean `service`?"),
  );
});

it("tokens in a keychain that is not available are still locked, in the state directory", async () => {
  vi.stubEnv("XDG_STATE_HOME", join(home, "state"));
  const store = keychainTokens();
  const events: string[] = [];
  const work = (name: string) => async () => {
    events.push(`${name} begins`);
    await new Promise((resolve) => setImmediate(resolve));
    events.push(`${name} ends`);
  };
  await Promise.all([store.exclusively("a", work("1")), keychainTokens().exclusively("a", work("2"))]);
  expect(events.filter((line) => line.endsWith("begins"))).toHaveLength(2);
  expect(events[1]).toBe(events[0]?.replace("begins", "ends"));
  expect(existsSync(join(home, "state", "catenary", "keychain.locks"))).toBe(true);
});

const why = await missing();

if (why !== undefined) {
  const skipped = `tokens in a real keychain (stored, replaced, split, shared by processes) are not tested: ${why}`;
  console.warn(skipped);
  it.skipIf(process.env["CI"] !== "true")(skipped, () => expect.fail(skipped));
} else {
  describe("tokens in a real keychain", () => {
    let session: ReturnType<typeof spawn> | undefined;
    let address = "";

    beforeAll(async () => {
      // The session ends with its stdin, and stops the daemon.
      const script = `printf unlocked | ${DAEMON} --unlock --components=secrets >/dev/null; echo "$DBUS_SESSION_BUS_ADDRESS"; cat >/dev/null`;
      session = spawn(BUS, ["--", "sh", "-c", script], {
        stdio: ["pipe", "pipe", "ignore"],
        env: { ...process.env, HOME: home, XDG_RUNTIME_DIR: home, XDG_DATA_HOME: home, XDG_CACHE_HOME: home },
      });
      address = await new Promise<string>((resolve, reject) => {
        session?.stdout?.once("data", (line: Buffer) => resolve(line.toString().trim()));
        session?.once("exit", (code) => reject(new Error(`The D-Bus session ended with ${code}`)));
      });
    });

    afterAll(async () => {
      const ended = new Promise((resolve) => session?.once("exit", resolve));
      session?.stdin?.end();
      await ended;
    });

    const open = (options: Parameters<typeof keychainTokens>[0] = {}): ReturnType<typeof keychainTokens> => {
      vi.stubEnv("XDG_STATE_HOME", home);
      vi.stubEnv("XDG_RUNTIME_DIR", home);
      vi.stubEnv("DBUS_SESSION_BUS_ADDRESS", address);
      return keychainTokens(options);
    };
    /** The names of all entries of a service. */
    const entries = async (service: string): Promise<string[]> => {
      const { findCredentialsAsync } = await import("@napi-rs/keyring");
      return (await findCredentialsAsync(service)).map(({ account }) => account).toSorted();
    };

    it("tokens in a real keychain are stored, replaced and deleted", async () => {
      const store = open();
      expect(await store.get("a key with spaces https://a.example/mcp")).toBeUndefined();
      await store.set("a key with spaces https://a.example/mcp", "1 ü 🔑");
      await store.set("b", "=");
      expect(await open().get("a key with spaces https://a.example/mcp")).toBe("1 ü 🔑");
      expect(await entries("catenary")).toEqual(["a key with spaces https://a.example/mcp", "b"]);
      await store.set("a key with spaces https://a.example/mcp", "2");
      expect([await store.get("a key with spaces https://a.example/mcp"), await store.get("b")]).toEqual(["2", "="]);
      await store.set("a key with spaces https://a.example/mcp", undefined);
      await store.set("b", undefined);
      await store.set("b", undefined);
      expect(await store.get("b")).toBeUndefined();
      expect(await entries("catenary")).toEqual([]);
    });

    it("tokens in a real keychain are missing if another program wrote the entry, and replace it", async () => {
      const store = open({ service: "others" });
      const { AsyncEntry } = await import("@napi-rs/keyring");
      for (const text of ["", "a password", "#x", "#0.ab"]) {
        await new AsyncEntry("others", "a", { linux: { store: "secret-service" } }).setPassword(text);
        expect(await store.get("a")).toBeUndefined();
      }
      await store.set("a", "1");
      expect(await store.get("a")).toBe("1");
    });

    it("tokens in a real keychain may be long, under long keys", async () => {
      const store = open({ service: "long" });
      const [one, two] = [`${"k".repeat(5_000)}1`, `${"k".repeat(5_000)}2`];
      const value = "v".repeat(50_000);
      await store.set(one, value);
      expect([await store.get(one), await store.get(two)]).toEqual([value, undefined]);
      expect((await entries("long")).map((name) => name.length <= 200)).toEqual([true]);
    });

    it("tokens in a real keychain are shared by processes, one at a time", async () => {
      const store = open({ service: "shared" });
      await store.set("count", "0");
      const script = `import { keychainTokens } from ${SOURCE};
        const store = keychainTokens({ service: "shared" });
        for (let i = 0; i < 10; i += 1) {
          await store.exclusively("count", async () => store.set("count", String(Number(await store.get("count")) + 1)));
        }`;
      await Promise.all([1, 2, 3].map(() => run(process.execPath, evaluate(script))));
      expect(await store.get("count")).toBe("30");
    });
  });
}
