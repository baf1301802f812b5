// Installs the official suite from suite/package-lock.json. The suite needs a newer Node than we support, so one is
// installed with it, in a folder of its own: a `node` in the root's node_modules would replace that of the machine in
// every npm script.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { installPackages } from "../support/install-packages.ts";

const SUITE = fileURLToPath(new URL("suite", import.meta.url));
const MODULES = join(SUITE, "node_modules");
const MIN_NODE = 22;

export interface InstalledSuite {
  /** The Node that runs the suite. */
  readonly node: string;
  readonly script: string;
}

/** Returns the installed suite, or the reason where it is missing and no registry can be reached. */
export async function installSuite(): Promise<InstalledSuite | string> {
  const reason = await installPackages(SUITE);
  if (reason !== undefined) return reason;
  return { node: suiteNode(), script: join(MODULES, "@modelcontextprotocol/conformance/dist/index.js") };
}

function suiteNode(): string {
  const installed = join(MODULES, `node-${process.platform}-${process.arch}/bin/node`);
  if (existsSync(installed)) return installed;
  if (Number.parseInt(process.versions.node, 10) >= MIN_NODE) return process.execPath;
  throw new Error(`The conformance suite needs Node ${MIN_NODE}, which it does not bring for ${process.platform}`);
}
