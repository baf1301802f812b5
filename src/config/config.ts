// A config that has been read: everything in it is right, variables are put in, and paths are absolute. It may hold
// secrets, so it is not for printing.

import type { GatewayOptions } from "../chain/chain.ts";
import type { HttpLimits } from "../http/server/options.ts";
import type { UpstreamEntry } from "./upstreams.ts";
import type { Listen } from "./listen-options.ts";
import type { MiddlewareEntry } from "./middleware.ts";
import type { Problem } from "./problems.ts";

export interface Config {
  /** Of the file; absolute. */
  readonly path: string;
  /** As it was read, without a byte order mark. */
  readonly text: string;
  /** What the gateway says it is called. */
  readonly name?: string;
  readonly instructions?: string;
  readonly names?: NonNullable<GatewayOptions["names"]>;
  /** By name, in the order of the file. */
  readonly ends: ReadonlyMap<string, UpstreamEntry>;
  /** Names of the ends that are switched off. */
  readonly disabled: readonly string[];
  /** Links in front of all ends, the outermost first. */
  readonly chain: readonly MiddlewareEntry[];
  readonly listen: Listen;
  readonly limits: Partial<HttpLimits>;
  /** What it can be used in spite of. */
  readonly warnings: readonly Problem[];
}
