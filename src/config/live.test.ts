// Live sessions in a config: their options reach src/live, which is loaded only by configs that have such an entry. No
// session is started here.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { Handler } from "../core/handler.ts";
import { evaluatesCode, EVALUATES_CODE } from "../core/handler-marks.ts";
import { loadedBy } from "../../test/support/house/rules.ts";
import { readSources } from "../../test/support/house/source.ts";
import type { Language } from "../live/tool.ts";
import { REVISIONS } from "../protocol/revisions/index.ts";
import type { Problem } from "./document.ts";
import { createGateway } from "./gateway.ts";
import { examineConfig, loadConfig } from "./load.ts";

const LATEST = REVISIONS[0]?.name;
const made: { readonly language: string; readonly options: unknown }[] = [];
const closed = vi.fn();

vi.mock("../live/server.ts", () => ({
  createLiveServer({ title }: Language, options: unknown): Handler {
    made.push({ language: title, options });
    const handler: Handler = async () => ({});
    return Object.defineProperties(handler, {
      [EVALUATES_CODE]: { value: true },
      close: { value: async () => closed() },
    });
  },
}));

let folder = "";
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-live-config-"));
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});
beforeEach(() => {
  made.length = 0;
  closed.mockClear();
});

function written(servers: object, more: object = {}): string {
  const file = join(folder, "catenary.json");
  writeFileSync(file, JSON.stringify({ mcpServers: servers, ...more }));
  return file;
}

it("a live entry uses the defaults of the language, and the folder of the config", async () => {
  const config = await loadConfig(written({ a: { live: "js" }, b: { live: "javascript" }, c: { live: "lisp" } }));
  expect([...config.upstreams.values()].map(({ kind, settings }) => ({ kind, settings }))).toEqual([
    { kind: "live", settings: { live: "js", cwd: folder, inheritEnv: false } },
    { kind: "live", settings: { live: "javascript", cwd: folder, inheritEnv: false } },
    { kind: "live", settings: { live: "lisp", cwd: folder, inheritEnv: false } },
  ]);
  const gateway = await createGateway(config);
  const options = { limits: {}, cwd: folder, inheritEnv: false };
  expect(made).toEqual([
    { language: "JavaScript", options },
    { language: "JavaScript", options },
    { language: "Common Lisp", options },
  ]);
  expect(evaluatesCode(gateway)).toBe(true);
  await gateway.close();
  expect(closed).toHaveBeenCalledTimes(3);
});

it("a live entry passes its options on, and keeps its mark with middleware and variables", async () => {
  const entry = {
    ...{
      live: "js",
      timeoutMs: 60_000,
      memoryMb: 1024,
      outputChars: 5000,
      printLength: 20,
      printDepth: 4,
      maxSessions: 3,
    },
    ...{
      idleMs: 0,
      cwd: "..",
      env: { KEY: "${API_KEY}" },
      inheritEnv: ["LANG"],
      program: "./node",
      permission: { read: ["./data"], net: false },
      use: ["log"],
    },
  };
  const config = await loadConfig(written({ js: entry }), { env: { API_KEY: "s3cret" } });
  const gateway = await createGateway(config);
  expect(made).toEqual([
    {
      language: "JavaScript",
      options: {
        limits: { timeoutMs: 60_000, memoryMb: 1024, outputChars: 5000, printLength: 20, printDepth: 4 },
        maxSessions: 3,
        idleMs: 0,
        cwd: join(folder, ".."),
        env: { KEY: "s3cret" },
        inheritEnv: ["LANG"],
        command: join(folder, "node"),
        permission: { read: [join(folder, "data")], net: false },
      },
    },
  ]);
  expect(evaluatesCode(gateway)).toBe(true);
  await gateway.close();
  expect(closed).toHaveBeenCalledOnce();
});

it("a live entry is loaded neither by a config without it, nor by a command before it is used", async () => {
  await (await createGateway(await loadConfig(written({ web: { url: "http://127.0.0.1:9/mcp" } })))).close();
  expect(made).toEqual([]);
  const sources = readSources(join(import.meta.dirname, "../.."), "src");
  for (const entry of ["config/index", "cli/main", "cli/commands/serve", "cli/commands/eval"]) {
    const { files } = loadedBy(`src/${entry}.ts`, sources);
    const live = [...files].filter((file) => file.startsWith("src/live/"));
    // The registry says what configs and commands need to know.
    expect(
      live.filter(
        (file) => !/^src\/live\/(?:languages|options|runtime|tool|\w+\/(?:entry|engine|scan|settings))\.ts$/.test(file),
      ),
    ).toEqual([]);
  }
});

it("a live entry is warned of options that it does not have, and of an old Node", async () => {
  const connection = {
    ...{ share: "shared", revision: LATEST, maxTimeoutMs: 1_000, startTimeoutMs: 1_000 },
    ...{ restart: { maxFailures: 2 }, remember: true },
  };
  const servers = {
    js: { live: "js", permission: true, ...connection },
    free: { live: "js", permission: false },
    other: { live: "js", permission: true, program: process.execPath },
  };
  const { problems } = await examineConfig(written(servers));
  const [ours = ""] = process.versions.node.split(".");
  const permission = `mcpServers.js.permission: needs Node 24 or later; this is Node ${ours}`;
  expect(problems.map(({ severity, message }) => `${severity}: ${message}`)).toEqual([
    ...(Number(ours) < 24 ? [`warning: ${permission}`] : []),
    ...Object.keys(connection).map((key) => `warning: mcpServers.js.${key}: ignored`),
  ]);
});

it("a live entry is refused if it cannot be created, unless that depends on an input", async () => {
  const inputs = [{ id: "vm", type: "promptString" }];
  const asked = { live: "smalltalk", program: "${input:vm}", image: "x.image" };
  const code = { language: "smalltalk", program: "${input:vm}", sandbox: false };
  const servers = {
    image: { live: "smalltalk", image: "x.image" },
    nonsense: { live: "smalltalk", attach: "nonsense" },
    both: { live: "smalltalk", attach: "http://127.0.0.1:8086", program: "gst" },
    vm: { live: "smalltalk", program: "pharo" },
    asked,
  };
  const { problems } = await examineConfig(written(servers, { inputs, code }));
  expect(problems.map(({ severity, message }) => `${severity}: ${message}`)).toEqual([
    "error: mcpServers.image.image: needs the virtual machine that runs it as the program",
    "error: mcpServers.nonsense.attach: must be an address such as http://127.0.0.1:8086",
    "error: mcpServers.both.attach: names an image that runs already, so it cannot be used with a program",
    'error: mcpServers.vm.program: is not gst, so it also needs "image": the file of a Pharo, Squeak or Cuis image',
  ]);
  const load = (answer: string): Promise<unknown> =>
    loadConfig(written({ asked }, { inputs, code }), { inputs: async () => answer });
  await expect(load("gst")).resolves.toMatchObject({ code: { program: "gst" } });
  await expect(load("pharo")).rejects.toThrow("code.program: is not gst");
});

it("a live entry has no key for its name, which would be ignored", async () => {
  const { problems } = await examineConfig(written({ js: { live: "js", name: "mine", description: "A session" } }));
  expect(problems.map(({ severity, message, hint }) => [severity, message, hint])).toEqual([
    ["error", "mcpServers.js.name: not a key here", "an entry has the name of its key under mcpServers"],
  ]);
});

it("a live entry is warned of a limits object, and refuses limits that a session would refuse", async () => {
  const wrong = {
    ...{ timeoutMs: 86_400_001, memoryMb: 63, outputChars: 0 },
    ...{ printLength: 1.5, printDepth: 1_001, maxSessions: 0 },
  };
  const { problems } = await examineConfig(
    written({ js: { live: "js", limits: { timeoutMs: 5 } }, other: { live: "js", ...wrong } }),
  );
  expect(problems.map(({ severity, message, hint }) => [severity, message, hint])).toEqual([
    [
      "error",
      "mcpServers.js.limits: not a key here",
      "write the limits directly in the entry: timeoutMs, memoryMb, outputChars, valueChars, printLength, printDepth, errorHoldMs",
    ],
    ["error", "mcpServers.other.timeoutMs: expected milliseconds from 0 to 86400000", undefined],
    ["error", "mcpServers.other.memoryMb: expected whole megabytes from 64 to 16384", undefined],
    ["error", "mcpServers.other.outputChars: expected a whole number of characters from 1 to 1000000", undefined],
    ["error", "mcpServers.other.printLength: expected a whole number from 1 to 100000", undefined],
    ["error", "mcpServers.other.printDepth: expected a whole number from 1 to 1000", undefined],
    ["error", "mcpServers.other.maxSessions: expected a whole number above 0", undefined],
  ]);
});

it("a live entry is checked for the program that it needs", async () => {
  const env = process.env["PATH"];
  process.env["PATH"] = folder;
  try {
    const servers = { js: { live: "js" }, lisp: { live: "lisp" }, other: { live: "js", program: "./no-node" } };
    const code = { language: "lisp", program: "./no-sbcl", sandbox: false };
    const { problems } = await examineConfig(written(servers, { code }));
    expect(problems).toEqual([
      {
        line: 1,
        column: 50,
        severity: "warning",
        message: 'Cannot start "sbcl": there is no command of that name on the PATH',
        hint: 'install it (apt-get install sbcl, or brew install sbcl), or write its path in "program"',
      },
      expect.objectContaining({
        message: expect.stringMatching(/^Cannot start ".*no-node"/) as string,
        hint: 'write the path of a Node executable in "program", or remove "program"',
      }),
      expect.objectContaining({
        severity: "warning",
        message: expect.stringMatching(/^Cannot start ".*no-sbcl"/) as string,
      }),
    ]);
  } finally {
    process.env["PATH"] = env;
  }
});

describe("where there can be no sandbox", () => {
  const reason = (problem: Problem): string => `${problem.column} ${problem.severity}: ${problem.message}`;
  const needs = process.platform === "linux" ? "a sandbox needs bubblewrap, but" : "a sandbox needs Linux";
  beforeEach(() => {
    vi.stubEnv("PATH", folder);
    // A sandbox that worked is remembered.
    vi.resetModules();
  });
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  it("where there can be no sandbox reports each place of a config that asks for one, as an error for code mode", async () => {
    const load = await import("./load.ts");
    const servers = { a: { live: "js", sandbox: true }, b: { live: "js", sandbox: { network: true } } };
    const others = { c: { live: "js", sandbox: false }, d: { live: "js" } };
    const off = { e: { live: "js", sandbox: true, enabled: false } };
    const file = written({ ...servers, ...others, ...off }, { code: true });
    const text = JSON.stringify({ mcpServers: { ...servers, ...others, ...off }, code: true });
    const { problems } = await load.examineConfig(file);
    const columns = [/"sandbox":true/, /"sandbox":\{/, /"code":true/].map((key) => text.search(key) + 1);
    expect(problems.map(reason)).toEqual(
      ["mcpServers.a.sandbox", "mcpServers.b.sandbox", "code"].map(
        (path, at) =>
          expect.stringContaining(
            `${columns[at]} ${path === "code" ? "error" : "warning"}: ${path}: ${needs}`,
          ) as string,
      ),
    );
    if (process.platform === "linux") expect(problems[2]?.hint).toContain("apt install bubblewrap");
    expect(problems[1]?.hint).toMatch(/or run without a sandbox \("sandbox": false\)$/);
    expect(problems[2]?.hint).toMatch(/or run without a sandbox \("code": \{"sandbox": false\} in the config\)$/);
  });

  it("where there can be no sandbox, code mode does not start, unless it is to run without", async () => {
    const [load, { createGateway: create }] = await Promise.all([import("./load.ts"), import("./gateway.ts")]);
    const web = { web: { url: "http://127.0.0.1:9/mcp" } };
    const start = async (code: object): Promise<void> => {
      const gateway = await create(await load.loadConfig(written(web, { code })));
      await gateway.close();
    };
    const refused = expect.objectContaining({
      line: 1,
      column: JSON.stringify({ mcpServers: web, code: {} }).length - 1,
      severity: "error",
      message: expect.stringContaining(`code.sandbox: ${needs}`) as string,
    }) as Problem;
    await expect(start({ sandbox: {} })).rejects.toMatchObject({ problems: [refused] });
    await start({ sandbox: false });
  });
});
