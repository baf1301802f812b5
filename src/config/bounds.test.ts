// A config that names endless files, or has more of something than anyone needs, is answered with an error in bounded
// work. `check` and `import` read configs that may come from other people.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { outputOf } from "../../test/support/blocking-program.ts";
import { readClientFile } from "../cli/setup/client-servers.ts";
import { MAX_SERVERS } from "./document.ts";
import { checkConfig, loadConfigText } from "./load.ts";

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "catenary-bounds-"));
  if (process.platform !== "win32") outputOf("mkfifo", [join(folder, "pipe")]);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function messages(config: object, env: Record<string, string> = {}): Promise<string[]> {
  const problems = await checkConfig(JSON.stringify(config), join(folder, "catenary.json"), { env });
  return problems.filter(({ severity }) => severity === "error").map(({ message }) => message);
}

const withEnv = (value: unknown) => ({ mcpServers: { a: { command: process.execPath, env: { KEY: value } } } });

it.skipIf(process.platform === "win32").each(["/dev/zero", "./pipe", "/dev/tty", "."])(
  "a file in a config that does not end is not read: %s",
  async (path) => {
    const [message, ...others] = await messages(withEnv(`\${file:${path}}`));
    expect(others).toEqual([]);
    expect(message).toMatch(
      /^The file of \$\{file:\.\.\.\} cannot be read \((?:not a file of at most 1048576 bytes|E\w+)\)$/,
    );
  },
);

it.skipIf(process.platform === "win32")(
  "a file in a config that does not end is not read as an envFile, a module or an OpenAPI document",
  async () => {
    const servers = { a: { command: "x", envFile: "./pipe" }, b: { module: "./pipe" }, c: { openapi: "./pipe" } };
    const found = await messages({ mcpServers: servers });
    expect(found).toEqual(["a.envFile", "b.module", "c.openapi"].map((key) => `mcpServers.${key}: not a file`));
  },
);

it.skipIf(process.platform === "win32")(
  "a file in a config that does not end is not read as an envFile that becomes a pipe later",
  async () => {
    const text = JSON.stringify({ mcpServers: { a: { command: process.execPath, envFile: "./keys.env" } } });
    await writeFile(join(folder, "keys.env"), "KEY=1\n");
    const config = await loadConfigText(text, join(folder, "catenary.json"));
    await rm(join(folder, "keys.env"));
    outputOf("mkfifo", [join(folder, "keys.env")]);
    await expect(config.upstreams.get("a")!.resolve()).rejects.toThrow(
      "Cannot read the envFile: not a file of at most",
    );
  },
);

it("a file of ${file:...} may have a megabyte, and not more", async () => {
  await writeFile(join(folder, "key"), "k".repeat(1_048_576));
  expect(await messages(withEnv("${file:./key}"))).toEqual([]);
  await writeFile(join(folder, "key"), "k".repeat(1_048_577));
  expect(await messages(withEnv("${file:./key}"))).toEqual([expect.stringContaining("not a file of at most")]);
});

it("a string may have 1000 references, and not more", async () => {
  expect(await messages(withEnv("${HOME}".repeat(1_000)), { HOME: "/home/ada" })).toEqual([]);
  expect(await messages(withEnv("${HOME}".repeat(50_000)), { HOME: "/home/ada" })).toEqual([
    "50000 references in one string; the limit is 1000",
  ]);
});

it("variables that expand to too much are an error", async () => {
  const config = {
    mcpServers: { a: { command: "x", args: Array.from({ length: 1_000 }, () => "${BIG}".repeat(10)) } },
  };
  const found = await messages(config, { BIG: "x".repeat(100_000) });
  expect(new Set(found)).toEqual(new Set(["The variables expand to more than 33554432 characters"]));
});

it("one variable in very many strings is hidden by one rule", async () => {
  const args = Array.from({ length: 20_000 }, () => "${TOKEN}");
  const text = JSON.stringify({ mcpServers: { a: { command: process.execPath, args } } });
  const config = await loadConfigText(text, join(folder, "catenary.json"), { env: { TOKEN: "secret-token" } });
  const { createRedactor } = await import("./redaction.ts");
  const hide = createRedactor(config.upstreams.get("a")!.secrets);
  expect(hide("secret-token ".repeat(20_000))).toBe("${TOKEN} ".repeat(20_000));
});

const servers = Object.fromEntries(Array.from({ length: 20_000 }, (_, at) => [`s${at}`, { command: "x" }]));

it("20,000 servers are refused by check", async () => {
  expect(await messages({ mcpServers: servers })).toEqual([`mcpServers: 20000 servers; the limit is ${MAX_SERVERS}`]);
});

it("20,000 servers are refused by import", async () => {
  const file = join(folder, "client.json");
  await writeFile(file, JSON.stringify({ mcpServers: servers }));
  await expect(readClientFile(file, join(folder, "catenary.json"))).rejects.toThrow(
    `20000 servers; the limit is ${MAX_SERVERS}`,
  );
});

it("1,000 callers and profiles are read once each", async () => {
  const names = Array.from({ length: 1_000 }, (_, at) => `p${at}`);
  const profiles = Object.fromEntries(names.map((name) => [name, { servers: ["a"] }]));
  const callers = Object.fromEntries(
    names.map((name) => [name, { token: `${name}-${"t".repeat(40)}`, profile: name }]),
  );
  expect(await messages({ mcpServers: { a: { command: "x" } }, profiles, callers })).toEqual([]);
});
