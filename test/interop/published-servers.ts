// Eight published servers that list their tools without a network: four are dependencies of the project, and four are
// installed from servers/package-lock.json when a test needs them.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { installPackages } from "../support/install-packages.ts";
import type { ServerCommand } from "./real-server-steps.ts";

const PACKAGES = fileURLToPath(new URL("servers/", import.meta.url));
const ours = createRequire(import.meta.url);
const installed = createRequire(join(PACKAGES, "package.json"));

export interface PublishedServer {
  readonly package: string;
  readonly command: Required<ServerCommand>;
}

/** Resolves to a reason if they cannot be installed. */
export function installPublishedServers(): Promise<string | undefined> {
  return installPackages(PACKAGES);
}

/** The first four do tasks in the folder. The others need a network or a browser for their calls, but not for their lists. */
export function publishedServers(folder: string): Readonly<Record<string, PublishedServer>> {
  return {
    everything: serverOf(ours, "@modelcontextprotocol/server-everything", "dist/index.js"),
    files: serverOf(ours, "@modelcontextprotocol/server-filesystem", "dist/index.js", [folder]),
    memory: serverOf(ours, "@modelcontextprotocol/server-memory", "dist/index.js", [], {
      MEMORY_FILE_PATH: join(folder, "memory.jsonl"),
    }),
    thinking: serverOf(ours, "@modelcontextprotocol/server-sequential-thinking", "dist/index.js"),
    browser: serverOf(installed, "@playwright/mcp", "cli.js", ["--headless"]),
    devtools: serverOf(
      installed,
      "chrome-devtools-mcp",
      "build/src/bin/chrome-devtools-mcp.js",
      ["--no-usage-statistics"],
      { CHROME_DEVTOOLS_MCP_NO_UPDATE_CHECKS: "1" },
    ),
    github: serverOf(installed, "@modelcontextprotocol/server-github", "dist/index.js"),
    notion: serverOf(installed, "@notionhq/notion-mcp-server", "bin/cli.mjs"),
  };
}

/** `file` starts the server. */
function serverOf(
  from: NodeJS.Require,
  name: string,
  file: string,
  args: readonly string[] = [],
  env: Record<string, string> = {},
): PublishedServer {
  const paths = (from.resolve.paths(name) ?? []).map((folder) => join(folder, name, file));
  const path = paths.find((one) => existsSync(one));
  if (path === undefined) throw new Error(`${name} has no file ${file}`);
  return { package: name, command: { command: process.execPath, args: [path, ...args], env } };
}
