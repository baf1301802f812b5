// Hiding in the config of a gateway that runs, where the names come from a server: no name of a tool makes the config
// invalid or is expanded, and a change that the gateway cannot use is taken back.

import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect } from "../../../src/client/connect.ts";
import { ConfigGateway } from "../../../src/config/gateway.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { hidingRoutes } from "../../../src/console/hiding.ts";
import { routeClient, type RouteClient } from "../../support/console/route-client.ts";

const NAMES = ["${input:nosuch}", "${CATENARY_UNSET}", "${file:./value}", "$$", "$${", "plain"];

const SERVER = `
const tools = ${JSON.stringify(NAMES)}.map((name) => ({ name, title: name, inputSchema: { type: "object" } }));
export default async ({ method }) => {
  if (method === "server/discover") return { capabilities: { tools: {} } };
  if (method === "tools/list") return { tools };
  return { content: [] };
};`;

const CONFIG = `\uFEFF{
  // Mine.
  "mcpServers": {
    "notes": { "module": "./notes.mjs" }
  }
}
`;

let folder: string;
let file: string;
let running: ConfigGateway;
let client: RouteClient;
/** Whether the gateway can use the config when it reads it again. */
let isUsable: boolean;
/** What happens when the gateway is to read the config again, before it does. */
let whenReloaded: () => Promise<void>;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "catenary-console-hiding-"));
  file = join(folder, "catenary.json");
  await writeFile(join(folder, "notes.mjs"), SERVER);
  await writeFile(join(folder, "value"), "plain");
  await writeFile(file, CONFIG);
  // Some names are shown in another form to clients, which the gateway warns of.
  const options = { changing: true, rememberNames: false, onWarning: () => undefined };
  running = await ConfigGateway.create(await loadConfig(file), options);
  running.start();
  isUsable = true;
  whenReloaded = async () => undefined;
  client = routeClient(
    hidingRoutes({
      running,
      log: { recent: () => [], follow: () => () => undefined, write: () => undefined },
      info: () => ({ name: "t", version: "0", pid: 1, source: file, url: "", startedAt: "" }),
      restart: (name) => running.restart(name, 0),
      reload: async () => {
        await whenReloaded();
        if (!isUsable) return false;
        try {
          await running.change(await loadConfig(file));
          return true;
        } catch {
          return false;
        }
      },
    }),
  );
});

afterEach(async () => {
  await running.gateway.close();
  await rm(folder, { recursive: true, force: true });
});

/** By their titles, since the gateway gives them names that clients accept. */
async function shownTools(): Promise<readonly string[]> {
  const other = await connect(running.gateway, { cache: false });
  const { tools } = await other.listTools();
  await other.close();
  return tools.map(({ title = "" }) => title);
}

it.each(NAMES)(
  "a tool with the name %s is hidden by this very name, and shown with the file as it was",
  async (tool) => {
    expect(await shownTools()).toEqual(NAMES);
    await client.post("hide", { server: "notes", tool });
    expect(await shownTools()).toEqual(NAMES.filter((name) => name !== tool));
    // The gateway can be started again.
    expect((await loadConfig(file)).upstreams.get("notes")?.missing).toBeUndefined();
    await client.post("show", { server: "notes", tool });
    expect(await shownTools()).toEqual(NAMES);
    expect(await readFile(file, "utf8")).toBe(CONFIG);
  },
);

describe("a change that the gateway cannot use", () => {
  const hide = (): Promise<unknown> => client.post("hide", { server: "notes", tool: "plain" });
  const backups = async (): Promise<readonly string[]> =>
    (await readdir(folder)).filter((name) => name.endsWith(".bak"));

  it("is taken back, and the next one is made", async () => {
    await chmod(file, 0o640);
    const { mode } = await stat(file);
    isUsable = false;
    await expect(hide()).rejects.toMatchObject({
      status: 409,
      message: expect.stringContaining("the file is as it was before"),
      hint: "its log says why",
    });
    expect(await readFile(file, "utf8")).toBe(CONFIG);
    expect((await stat(file)).mode).toBe(mode);
    expect(await backups()).toEqual([]);
    isUsable = true;
    await hide();
    expect(await shownTools()).not.toContain("plain");
    expect(await backups()).toHaveLength(1);
  });

  it("stays if somebody else has changed the file since", async () => {
    isUsable = false;
    whenReloaded = () => writeFile(file, "{");
    await expect(hide()).rejects.toThrow(/was changed, and the gateway cannot use it/);
    expect(await readFile(file, "utf8")).toBe("{");
    expect(await backups()).toHaveLength(1);
  });
});
