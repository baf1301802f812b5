// Other versions of Node, for tests that run on all of them. They come from npm, into a cache folder of their own, so
// that no script picks them up by accident.

import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { npm } from "./blocking-program.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export const OTHER_NODES: readonly string[] = ["22.23.3", "24.21.0"];

/** The path of a Node binary of this version; undefined if it cannot be installed. */
export function installNode(version: string): string | undefined {
  const name = `node-${process.platform}-${process.arch}`;
  const folder = join(ROOT, "node_modules/.cache/nodes", version);
  const binary = join(folder, "node_modules", name, "bin/node");
  if (existsSync(binary)) return binary;
  mkdirSync(folder, { recursive: true });
  const options = ["--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", "--no-save"];
  try {
    npm(["install", ...options, `${name}@${version}`], { cwd: ROOT });
  } catch (error) {
    console.error(error);
  }
  return existsSync(binary) ? binary : undefined;
}
