// Programs and APIs as entries of a config: what is said about them before anything is started, and their gateway.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { connect } from "../client/connect.ts";
import { createGateway, loadConfig } from "./index.ts";
import { examineConfig } from "./load.ts";

const folder = mkdtempSync(join(tmpdir(), "catenary-tool-kinds-"));
afterAll(() => rmSync(folder, { recursive: true }));

const file = join(folder, "catenary.json");
const API = { openapi: "3.1.0", servers: [{ url: "https://shop.example.com" }], paths: { "/a": { get: {} } } };

function write(servers: object): void {
  writeFileSync(join(folder, "api.json"), JSON.stringify(API));
  writeFileSync(file, JSON.stringify({ mcpServers: servers }));
}

it("a check says what they start and which programs are missing, and starts nothing", async () => {
  write({
    dev: { programs: ["git", "no-such-program", "./api.json"] },
    shop: { openapi: "./api.json", baseUrl: "https://api.example.com/v1", auth: { key: "${SHOP_KEY}" } },
  });
  const { starts, problems } = await examineConfig(file, { env: { SHOP_KEY: "s3cret" } });
  expect(starts).toEqual([
    `dev: git, no-such-program, ${join(folder, "api.json")}, which callers can run`,
    "shop: requests to the API at https://api.example.com",
  ]);
  expect(problems.map(({ severity, message, hint }) => `${severity}: ${message}; ${hint}`)).toEqual([
    'warning: Cannot start "no-such-program": there is no command of that name on the PATH; ' +
      "install it, or write its full path; its tool is left out until then",
    expect.stringMatching(/api\.json is not executable; make it executable: chmod \+x \/.*api\.json$/),
  ]);
});

it("a check warns of patterns that begin with no program", async () => {
  const include = ["gti log*", "git status", "g*", "*", "gitk", "run.sh -x", "run -x", '"x y" z'];
  write({ dev: { programs: ["git", "./run.sh"], include, exclude: ["./run.sh*", "*--output*"] } });
  const { problems } = await examineConfig(file);
  const found = problems.map(({ message, hint }) => `${message}; ${hint}`).filter((one) => one.includes("matches"));
  const nothing = "matches no command line of these programs";
  expect(found).toEqual([
    `mcpServers.dev.include[0]: ${nothing}; did you mean git?`,
    `mcpServers.dev.include[4]: ${nothing}; did you mean git?`,
    `mcpServers.dev.include[6]: ${nothing}; did you mean run.sh?`,
    `mcpServers.dev.exclude[0]: ${nothing}; did you mean run.sh?`,
  ]);
});

it("a gateway has their tools", async () => {
  write({ dev: { programs: ["git"], include: ["git --version"] }, shop: { openapi: "./api.json" } });
  const gateway = await createGateway(await loadConfig(file));
  const client = await connect(gateway);
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["git", "get_a"]);
  expect(await client.callTool("git", { _args: ["status"] })).toMatchObject({
    isError: true,
    content: [{ text: "`git status` is not allowed; the patterns that are allowed: git --version" }],
  });
  expect(gateway.status()).toMatchObject({
    dev: { target: "runs code on this machine" },
    shop: { target: "in this process" },
  });
  await client.close();
  await gateway.close();
});
