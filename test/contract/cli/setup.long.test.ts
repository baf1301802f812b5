// More of the commands that write configs: what they refuse to write, and what they advise. The main ways are in
// setup.test.ts.

import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { catenary, cliRunner, type CliResult } from "./cli-process.ts";

let home = "";
let env: NodeJS.ProcessEnv = {};
const start = cliRunner();
beforeEach(() => {
  home = realpathSync(mkdtempSync(join(tmpdir(), "catenary-setup-")));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  env = {
    ...{ HOME: home, XDG_CONFIG_HOME: undefined, APPDATA: undefined, XDG_RUNTIME_DIR: undefined },
    XDG_STATE_HOME: join(home, "state"),
  };
});

const run = (...args: string[]): Promise<CliResult> => catenary(args, "", { cwd: home, env });

function write(path: string, content: object): void {
  mkdirSync(dirname(join(home, path)), { recursive: true });
  writeFileSync(join(home, path), JSON.stringify(content));
}

const read = (path: string): string => readFileSync(join(home, path), "utf8");

const NOTES = { notes: { command: "node", args: ["-e", ""] } };

describe("a gateway that would call itself", () => {
  it("is not imported by its URL", async () => {
    write(".cursor/mcp.json", { mcpServers: { gateway: { url: "http://localhost:3000/mcp" }, ...NOTES } });
    const some = await run("import", "cursor", "--yes");
    expect(some.code).toBe(0);
    expect(some.err).toContain(
      "Left out: gateway of Cursor; it is the address of this gateway, which would call itself",
    );
    expect(JSON.parse(read("catenary.json"))).toEqual({ mcpServers: NOTES });
    write(".cursor/mcp.json", { mcpServers: { gateway: { url: "http://127.0.0.1:3000/mcp/work" } } });
    const none = await run("import", "cursor", "--yes");
    expect(none.code).toBe(2);
    expect(none.err).toContain("There is nothing to import but the gateway of catenary.json itself");
  });

  it("is not imported by the URL where it runs", async () => {
    write("catenary.json", { mcpServers: NOTES });
    const up = start(["up", "--http", "127.0.0.1:0"], { cwd: home, env });
    await up.waitForStderr("For a client's config");
    const { port } = new URL(/http:\S+/.exec(up.err)?.[0] ?? "");
    write(".cursor/mcp.json", { mcpServers: { gateway: { url: `http://localhost:${port}/mcp` } } });
    expect(await run("import", "cursor", "--yes")).toMatchObject({
      code: 2,
      err: expect.stringContaining("Left out: gateway of Cursor"),
    });
  });

  it("is not installed into its own config", async () => {
    write(".cursor/mcp.json", { mcpServers: NOTES });
    const before = read(".cursor/mcp.json");
    const { code, err } = await run("install", "cursor", ".cursor/mcp.json", "--yes");
    expect(code).toBe(1);
    expect(err).toContain(".cursor/mcp.json is the config of Cursor itself, so the gateway would start itself");
    expect(err).toContain("`catenary import cursor`");
    expect(read(".cursor/mcp.json")).toBe(before);
  });

  it("is found by check at the default address", async () => {
    write("catenary.json", { mcpServers: { ...NOTES, me: { url: "http://[::1]:3000/mcp" } } });
    const { code, out } = await run("check");
    expect(code).toBe(0);
    expect(out).toContain("warning: The URL of me is where `catenary up` listens by default; if it is this gateway");
    write("catenary.json", { mcpServers: { ...NOTES, me: { command: "catenary", args: ["up", "catenary.json"] } } });
    expect(await run("check")).toMatchObject({
      code: 1,
      out: expect.stringContaining("starts the gateway of this same file, which would start itself without end"),
    });
  });

  it("is not served", async () => {
    write("catenary.json", { mcpServers: { ...NOTES, me: { url: "http://localhost:47113/mcp" } } });
    const { code, err } = await run("up", "--http", "127.0.0.1:47113");
    expect(code).toBe(1);
    expect(err).toContain("The URL of the server me is the address of this gateway, which would call itself");
  });
});
