// What is known of the package as npm makes it: its limits, and the list of its files.

import { fileURLToPath } from "node:url";
import { npm } from "../../support/blocking-program.ts";

export const ROOT: string = fileURLToPath(new URL("../../../", import.meta.url));

/** For the author of a server, who runs `npm install catenary` in an empty folder. */
export const LIMITS = { unpackedBytes: 4_000_000, packages: 20, installedBytes: 15_000_000 } as const;

export interface Packed {
  readonly filename: string;
  readonly unpackedSize: number;
  readonly files: readonly { readonly path: string }[];
}

/** Runs `npm pack` in a checkout. Scripts build it again, so they may not run in the one that tests use. */
export function pack(checkout: string, ...options: string[]): Packed {
  const output = npm(["pack", "--json", ...options], { cwd: checkout });
  const [packed] = JSON.parse(output.slice(output.indexOf("["))) as [Packed];
  return packed;
}
