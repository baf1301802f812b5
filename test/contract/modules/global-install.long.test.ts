// The package after `npm install --global`: modules of a user in another folder, in which nothing is installed, import
// `catenary` and are written in all of TypeScript, on every version of Node that we support.

import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../../src/client/index.ts";
import { npm } from "../../support/blocking-program.ts";
import { installNode, OTHER_NODES } from "../../support/nodes.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

const NOTES = `
import { createServer, McpError } from "catenary";
enum Kind { One = 1, Two }
namespace Greeting {
  export const of = (name: string): string => "hi " + name;
}
class Note {
  constructor(readonly text: string, private readonly kind: Kind = Kind.Two) {}
  toString(): string { return Greeting.of(this.text) + " " + this.kind; }
}
export default createServer({ name: "notes", version: "1.0.0" })
  .tool("note", {}, () => String(new Note("ann")))
  .tool("refuse", {}, () => { throw McpError.of("invalid_params", "not today"); });
`;

const LEAVE = `
import { McpError } from "catenary";
import type { Middleware } from "catenary";
enum Refused { note = "note" }
export default (): Middleware => async function leave(request, context, next) {
  if (request.params["name"] === Refused.note) throw McpError.of("access_denied", "note is not for everybody");
  return next(request, context);
};
`;

const PLAIN = `
import { createServer } from "catenary";
import { bearer } from "catenary/server";
export const server = createServer({ name: "plain", version: "1.0.0" }).tool("kind", {}, () => typeof bearer);
`;

const CONFIG = JSON.stringify({
  chain: [{ use: "./leave.ts" }],
  mcpServers: { notes: { module: "./notes.ts" } },
});

let prefix = "";
let folder = "";
beforeAll(() => {
  prefix = realpathSync(mkdtempSync(join(tmpdir(), "catenary-global-")));
  folder = realpathSync(mkdtempSync(join(tmpdir(), "catenary-modules-")));
  // The build is that of the test run. Scripts would build again, under the other tests.
  const [packed] = JSON.parse(
    npm(["pack", "--json", "--ignore-scripts", "--pack-destination", prefix], { cwd: ROOT }),
  ) as [{ filename: string }];
  const options = ["--global", "--prefix", prefix, "--prefer-offline", "--no-audit", "--no-fund", "--ignore-scripts"];
  npm(["install", ...options, join(prefix, packed.filename)], { cwd: prefix });
  for (const [name, text] of Object.entries({ "notes.ts": NOTES, "leave.ts": LEAVE, "plain.mjs": PLAIN })) {
    writeFileSync(join(folder, name), text);
  }
  writeFileSync(join(folder, "catenary.json"), CONFIG);
}, 240_000);
afterAll(() => {
  for (const one of [prefix, folder]) rmSync(one, { recursive: true, force: true });
});

describe.each(["of this run", ...OTHER_NODES])("with Node %s, a global install", (version) => {
  const node = version === "of this run" ? process.execPath : installNode(version);
  if (node === undefined && process.env["CI"] === "true") throw new Error(`Node ${version} could not be installed`);
  if (node === undefined) console.warn(`Skipped: Node ${version}, which could not be installed from npm`);

  const served = async (...args: string[]): ReturnType<typeof connect> => {
    const command = join(prefix, "lib/node_modules/catenary/dist/cli/main.js");
    return connect({ command: node ?? "", args: [command, "serve", "--stdio", ...args], cwd: folder });
  };

  it.skipIf(node === undefined)(
    "a global install serves a TypeScript module with enums, namespaces and parameter properties",
    async () => {
      await using client = await served("notes.ts");
      expect(await client.callTool("note")).toMatchObject({ content: [{ text: "hi ann 2" }] });
      await expect(client.callTool("refuse")).rejects.toMatchObject({ kind: "invalid_params", message: "not today" });
    },
  );

  it.skipIf(node === undefined)("a global install serves a JavaScript module that imports a subpath", async () => {
    await using client = await served("plain.mjs");
    expect(await client.callTool("kind")).toMatchObject({ content: [{ text: "function" }] });
  });

  it.skipIf(node === undefined)("a global install loads middleware and servers of a config", async () => {
    await using client = await served("catenary.json");
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name).toSorted()).toEqual(["note", "refuse"]);
    await expect(client.callTool("note")).rejects.toMatchObject({ message: "note is not for everybody" });
  });

  it.skipIf(node === undefined)(
    "a global install recognizes the errors of a copy that is installed beside the modules",
    async () => {
      mkdirSync(join(folder, "node_modules"), { recursive: true });
      symlinkSync(ROOT, join(folder, "node_modules/catenary"));
      try {
        await using client = await served("catenary.json");
        await expect(client.callTool("note")).rejects.toMatchObject({ message: "note is not for everybody" });
        await expect(client.callTool("refuse")).rejects.toMatchObject({ kind: "invalid_params", message: "not today" });
      } finally {
        rmSync(join(folder, "node_modules"), { recursive: true });
      }
    },
  );
});
