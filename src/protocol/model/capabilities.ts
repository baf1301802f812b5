// Who one is and what one can do, on either side, and what an end says of itself when it is asked.
// Types only; what a revision cannot promise is taken away in its own file.

import type { Icon } from "./content.ts";
import type { CacheableResult } from "./results.ts";

type Settings = { readonly [key: string]: unknown };

export interface Implementation {
  readonly name: string;
  readonly version: string;
  readonly title?: string;
  readonly description?: string;
  readonly icons?: readonly Icon[];
  readonly websiteUrl?: string;
  readonly [key: string]: unknown;
}

export interface ClientCapabilities {
  /** Empty means forms. */
  readonly elicitation?: { readonly form?: Settings; readonly url?: Settings };
  readonly sampling?: { readonly context?: Settings; readonly tools?: Settings };
  readonly roots?: Settings;
  readonly extensions?: { readonly [name: string]: Settings };
  readonly experimental?: { readonly [name: string]: Settings };
  readonly [key: string]: unknown;
}

export interface ServerCapabilities {
  readonly tools?: { readonly listChanged?: boolean };
  readonly prompts?: { readonly listChanged?: boolean };
  readonly resources?: { readonly listChanged?: boolean; readonly subscribe?: boolean };
  readonly completions?: Settings;
  readonly logging?: Settings;
  readonly extensions?: { readonly [name: string]: Settings };
  readonly experimental?: { readonly [name: string]: Settings };
  readonly [key: string]: unknown;
}

export interface DiscoverResult extends CacheableResult {
  /** Revisions that the end speaks. */
  readonly supportedVersions: readonly string[];
  readonly capabilities: ServerCapabilities;
  readonly instructions?: string;
}
