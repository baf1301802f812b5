// The other implementations that are measured beside ours: their programs, and how they are installed. Their packages
// are pinned in programs/peers, apart from the dependencies of the project.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { installPackages } from "../test/support/install-packages.ts";

/** What a peer's program can be: the mode is its argument. */
export type Mode = "session" | "stateless" | "stdio" | "gateway";

export interface Peer {
  readonly name: string;
  readonly package: string;
  readonly program: string;
  readonly modes: readonly Mode[];
  /** What a server imports. */
  readonly imports?: string;
}

export const PEERS: readonly Peer[] = [
  {
    name: "SDK 1.x",
    package: "@modelcontextprotocol/sdk",
    program: "peers/sdk-1.js",
    modes: ["session", "stdio"],
    imports: "@modelcontextprotocol/sdk/server/mcp.js",
  },
  {
    name: "SDK 2.x",
    package: "@modelcontextprotocol/server",
    program: "peers/sdk-2.js",
    modes: ["session", "stateless", "stdio"],
    imports: "@modelcontextprotocol/server",
  },
  {
    name: "tmcp",
    package: "tmcp",
    program: "peers/tmcp.js",
    modes: ["session", "stateless", "stdio"],
    imports: "tmcp",
  },
  { name: "mcp-lite", package: "mcp-lite", program: "peers/mcp-lite.js", modes: ["session"], imports: "mcp-lite" },
  { name: "mcp-proxy", package: "mcp-proxy", program: "peers/mcp-proxy.js", modes: ["gateway"] },
];

export const PEERS_FOLDER: string = fileURLToPath(new URL("programs/peers", import.meta.url));

/** Returns the peers, or none and the reason where npm cannot install them. */
export async function installPeers(): Promise<readonly Peer[] | string> {
  try {
    return (await installPackages(PEERS_FOLDER)) ?? PEERS;
  } catch (error) {
    return `npm ci failed: ${error instanceof Error ? error.message : String(error)}`;
  }
}

export function peerVersion(peer: Peer): string {
  const manifest = readFileSync(`${PEERS_FOLDER}/node_modules/${peer.package}/package.json`, "utf8");
  return (JSON.parse(manifest) as { version: string }).version;
}
