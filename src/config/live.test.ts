// Live sessions in a config: what is said of them comes to the live room as it is called there, which is loaded by the
// configs that have them and by no other. No session is started here.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import type { Handler } from "../core/handler.ts";
import { evaluatesCode, EVALUATES_CODE } from "../core/evaluates-code.ts";
import { loadedBy } from "../../test/support/house/rules.ts";
import { readSources } from "../../test/support/house/source.ts";
import { FIRST_PERMITTING as SESSIONS_FIRST } from "../live/js/runtime.ts";
import { BOUNDS } from "../live/runtime.ts";
import { REVISIONS } from "../protocol/revisions/index.ts";
import { gatewayOf } from "./gateway.ts";
import { FIRST_PERMITTING, LIVE_BOUNDS } from "./live-kind.ts";
import { examineConfig, loadConfig } from "./load.ts";

const LATEST = REVISIONS[0]?.name;
const made: { readonly language: string; readonly options: unknown }[] = [];
const closed = vi.fn();

vi.mock("../live/index.ts", () => {
  const maker =
    (language: string) =>
    (options: unknown): Handler => {
      made.push({ language, options });
      const handler: Handler = async () => ({});
      return Object.defineProperties(handler, { [EVALUATES_CODE]: { value: true }, close: { value: async () => closed() } });
    };
  return { javascript: maker("javascript"), lisp: maker("lisp") };
});

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

function written(servers: object): string {
  const file = join(folder, "catenary.json");
  writeFileSync(file, JSON.stringify({ mcpServers: servers }));
  return file;
}

describe("a live end", () => {
  it("has the defaults of the language, and the folder of the config", async () => {
    const config = await loadConfig(written({ a: { live: "js" }, b: { live: "javascript" }, c: { live: "lisp" } }));
    expect([...config.ends.values()].map(({ kind, about }) => ({ kind, about }))).toEqual([
      { kind: "live", about: { live: "js", cwd: folder } },
      { kind: "live", about: { live: "javascript", cwd: folder } },
      { kind: "live", about: { live: "lisp", cwd: folder } },
    ]);
    const gateway = await gatewayOf(config);
    const options = { limits: {}, cwd: folder };
    expect(made).toEqual([
      { language: "javascript", options },
      { language: "javascript", options },
      { language: "lisp", options },
    ]);
    expect(evaluatesCode(gateway)).toBe(true);
    await gateway.close();
    expect(closed).toHaveBeenCalledTimes(3);
  });

  it("has what is said of it, and stays one with links and variables around it", async () => {
    const entry = {
      ...{ live: "js", timeout: 60_000, memory: 1024, output: 5000, printLength: 20, printDepth: 4, sessions: 3 },
      ...{
        idle: 0,
        cwd: "..",
        env: { KEY: "${API_KEY}" },
        program: "./node",
        permission: { read: ["./data"], net: false },
        use: ["log"],
      },
    };
    const config = await loadConfig(written({ js: entry }), { env: { API_KEY: "s3cret" } });
    const gateway = await gatewayOf(config);
    expect(made).toEqual([
      {
        language: "javascript",
        options: {
          limits: { timeoutMs: 60_000, memoryMb: 1024, outputChars: 5000, printLength: 20, printDepth: 4 },
          sessions: 3,
          idle: 0,
          cwd: join(folder, ".."),
          env: { KEY: "s3cret" },
          command: join(folder, "node"),
          permission: { read: [join(folder, "data")], net: false },
        },
      },
    ]);
    expect(evaluatesCode(gateway)).toBe(true);
    await gateway.close();
    expect(closed).toHaveBeenCalledOnce();
  });

  it("is not loaded by a config without it, nor by a command before it is used", async () => {
    await (await gatewayOf(await loadConfig(written({ web: { url: "http://127.0.0.1:9/mcp" } })))).close();
    expect(made).toEqual([]);
    const sources = readSources(join(import.meta.dirname, "../.."), "src");
    for (const entry of ["config/index", "cli/main", "cli/commands/up", "cli/commands/serve", "cli/commands/eval"]) {
      const { files } = loadedBy(`src/${entry}.ts`, sources);
      expect([...files].filter((file) => file.startsWith("src/live/"))).toEqual([]);
    }
  });

  it("is warned of what means nothing to it, and of what this Node does not have", async () => {
    const wires = { share: "shared", revision: LATEST, startTimeout: 1_000, restart: { most: 2 } };
    const servers = {
      js: { live: "js", permission: true, ...wires },
      free: { live: "js", permission: false },
      other: { live: "js", permission: true, program: process.execPath },
    };
    const { problems } = await examineConfig(written(servers));
    const [ours = ""] = process.versions.node.split(".");
    const fence = `mcpServers.js.permission needs Node 24 or later, and this is Node ${ours}`;
    expect(problems.map(({ severity, message }) => `${severity}: ${message}`)).toEqual([
      ...(Number(ours) < 24 ? [`warning: ${fence}`] : []),
      ...Object.keys(wires).map((key) => `warning: mcpServers.js.${key} is passed over`),
    ]);
    expect(FIRST_PERMITTING).toBe(SESSIONS_FIRST);
  });

  it("is warned of limits that stand together, as in code, and refused what a session would refuse", async () => {
    const wrong = { timeout: 86_400_001, memory: 63, output: 0, printLength: 1.5, printDepth: 1_001, sessions: 0 };
    const { problems } = await examineConfig(
      written({ js: { live: "js", limits: { timeoutMs: 5 } }, other: { live: "js", ...wrong } }),
    );
    expect(problems.map(({ severity, message, hint }) => [severity, message, hint])).toEqual([
      [
        "warning",
        "mcpServers.js.limits is passed over",
        "here each stands by itself: timeout, memory, output, printLength, printDepth",
      ],
      ["error", "mcpServers.other.timeout must be a number of milliseconds from 0 to 86400000", undefined],
      ["error", "mcpServers.other.memory must be whole megabytes from 64 to 16384", undefined],
      ["error", "mcpServers.other.output must be a whole number of characters from 1 to 1000000", undefined],
      ["error", "mcpServers.other.printLength must be a whole number from 1 to 100000", undefined],
      ["error", "mcpServers.other.printDepth must be a whole number from 1 to 1000", undefined],
      ["error", "mcpServers.other.sessions must be a whole number above 0", undefined],
    ]);
    const { timeoutMs: timeout, memoryMb: memory, outputChars: output, printLength, printDepth } = BOUNDS;
    expect(LIVE_BOUNDS).toEqual({ timeout, memory, output, printLength, printDepth });
  });

  it("is looked at for the program that it takes", async () => {
    const env = process.env["PATH"];
    process.env["PATH"] = folder;
    try {
      const servers = { js: { live: "js" }, lisp: { live: "lisp" }, other: { live: "js", program: "./no-node" } };
      const { problems } = await examineConfig(written(servers));
      expect(problems).toEqual([
        {
          line: 1,
          column: 50,
          severity: "warning",
          message: 'Cannot start "sbcl": there is no command of that name on the PATH',
          hint: 'install it, by apt-get install sbcl or brew install sbcl, or give its path as "program"',
        },
        expect.objectContaining({
          message: expect.stringMatching(/^Cannot start ".*no-node"/) as string,
          hint: 'give the path of a node as "program", or leave it out',
        }),
      ]);
    } finally {
      process.env["PATH"] = env;
    }
  });
});
