// A variable that is not set is the failure of the one server that refers to it. In any other part of a config, and for
// `checkConfig`, it is an error.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import type { UpstreamStatus } from "../chain/upstream/options.ts";
import { connect } from "../client/connect.ts";
import { ConfigGateway } from "./gateway.ts";
import { checkConfig, type ConfigOptions, examineConfig, loadConfig } from "./load.ts";

let folder = "";
let path = "";

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "catenary-missing-"));
  path = join(folder, "catenary.json");
  writeFileSync(
    join(folder, "notes.mjs"),
    `export default async ({ method }) => {
      if (method === "server/discover") return { capabilities: { tools: {} } };
      if (method === "tools/list") return { tools: [{ name: "search", inputSchema: { type: "object" } }] };
      return { content: [{ type: "text", text: "found" }] };
    };`,
  );
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const write = (config: object): string => {
  const text = JSON.stringify(config);
  writeFileSync(path, text);
  return text;
};

const notes = { module: "./notes.mjs" };
const ADVICE = "set it in the environment, or write ${KEY:-...} with a default value";

/** The ways in which an entry can refer to a variable. */
const ENTRIES: readonly (readonly [string, object])[] = [
  ["env", { command: "node", env: { API_KEY: "${KEY}" } }],
  ["args", { command: "node", args: ["--key", "${KEY}"] }],
  ["command", { command: "${KEY}/bin/server" }],
  ["cwd", { command: "node", cwd: "${KEY}" }],
  ["headers", { url: "https://example.com/mcp", headers: { Authorization: "Bearer ${env:KEY}" } }],
  ["url", { url: "${KEY}/mcp" }],
  ["bearer_token_env_var", { url: "https://example.com/mcp", bearer_token_env_var: "KEY" }],
  ["a client secret", { url: "https://example.com/mcp", auth: { clientId: "a", clientSecret: "${KEY}" } }],
  ["a number", { command: "node", timeoutMs: "${KEY}" }],
  ["use", { command: "node", use: [{ inject: { arguments: { key: "${KEY}" } } }] }],
];

it.each(ENTRIES)("in %s, it is that server's failure; the others run", async (_where, entry) => {
  const text = write({ mcpServers: { github: entry, notes } });
  const config = await loadConfig(path, { env: {} });
  expect(config.upstreams.get("github")?.missing).toBe(`The variable KEY is not set: ${ADVICE}`);
  expect(config.upstreams.get("notes")?.missing).toBeUndefined();
  expect(config.warnings).toEqual([
    expect.objectContaining({
      severity: "warning",
      message: "The variable KEY is not set, so the server github does not run",
    }),
  ]);
  const [problem, ...more] = await checkConfig(text, path, { env: {} });
  expect(more).toEqual([]);
  expect(problem).toMatchObject({ severity: "error", message: "The variable KEY is not set", server: "github" });
  const { starts } = await examineConfig(path, { env: {} });
  expect(starts).toHaveLength(2);
});

it.each<[string, object]>([
  ["listen", { listen: { token: "${KEY}" } }],
  ["the chain", { chain: [{ inject: { arguments: { key: "${KEY}" } } }] }],
  ["defaults", { defaults: { timeoutMs: "${KEY}" } }],
  ["callers", { callers: { ada: { token: "${KEY}" } } }],
])("in %s, it is an error of the whole config", async (_where, more) => {
  write({ mcpServers: { notes }, ...more });
  await expect(loadConfig(path, { env: {} })).rejects.toThrow("error: The variable KEY is not set");
});

it("another error is still an error of the whole config", async () => {
  write({ mcpServers: { github: { command: "node", env: { A: "${KEY}" }, timeoutMs: -1 }, notes } });
  await expect(loadConfig(path, { env: {} })).rejects.toThrow("mcpServers.github.timeoutMs");
});

it.each<[string, object, ConfigOptions, string]>([
  ["a file that cannot be read", { env: { A: "${file:./nothing}" } }, {}, "The file of ${file:...} cannot be read"],
  ["an input without an answer", { env: { A: "${input:key}" } }, {}, 'No value for the input "key"'],
  [
    "an input with a wrong answer",
    { env: { A: "${input:pick}" } },
    { inputs: async () => "c" },
    'The value of the input "pick" is not an option',
  ],
])("%s is that server's failure too", async (_what, entry, options, reason) => {
  const inputs = [
    { id: "key", type: "promptString" },
    { id: "pick", type: "pickString", options: ["a", "b"] },
  ];
  write({ mcpServers: { github: { command: "node", ...entry }, notes }, inputs });
  const { upstreams } = await loadConfig(path, { env: {}, ...options });
  expect(upstreams.get("github")?.missing).toContain(reason);
  expect(upstreams.get("notes")?.missing).toBeUndefined();
});

it("callers see which server is missing and why, and a value heals it", async () => {
  write({ mcpServers: { github: { module: "./${KEY}.mjs" }, notes } });
  const states = new Map<string, UpstreamStatus>();
  const onState = (name: string, status: UpstreamStatus): void => void states.set(name, status);
  const running = await ConfigGateway.create(await loadConfig(path, { env: {} }), { onState, changing: true });
  running.start({ isAll: true });
  const problem = `The variable KEY is not set: ${ADVICE}`;
  expect(states.get("github")).toMatchObject({ state: "incomplete", problem });
  expect(running.gateway.status()).toMatchObject({ github: { state: "incomplete", problem } });
  const client = await connect(running.gateway);
  const listed = await client.listTools();
  expect(listed.tools.map(({ name }) => name)).toEqual(["search"]);
  expect(listed._meta).toMatchObject({
    "catenary/unavailable": [{ upstream: "github", message: expect.stringContaining("The variable KEY is not set") }],
  });
  await expect(running.restart("github", 0)).rejects.toThrow();

  await running.change(await loadConfig(path, { env: { KEY: "notes" } }));
  expect(running.gateway.status()).toMatchObject({ github: { state: "running" } });
  expect((await client.listTools()).tools.map(({ name }) => name)).toHaveLength(2);
  await client.close();
  await running.gateway.close();
});
