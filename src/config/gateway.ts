// From a config to the gateway that it describes: its links made, its modules loaded, its ends put behind them. If
// anything of that fails, what was made is closed again, and all failures are told together, each with its place.

import { chain } from "../chain/chain.ts";
import {
  upstream as reachUpstream,
  type Upstream,
  type UpstreamOptions,
  type UpstreamTarget,
} from "../chain/upstream/upstream.ts";
import type { UpstreamStatus } from "../chain/upstream/status.ts";
import type { Gateway } from "../chain/gateway.ts";
import { LINKS } from "../chain/middleware/registry.ts";
import { ourselves } from "../client/connect.ts";
import type { Handler, Link } from "../core/handler.ts";
import { errorMessage } from "../core/text.ts";
import { redactedUpstream, concealedStatus, concealing } from "./redaction.ts";
import type { Config } from "./config.ts";
import type { UpstreamEntry } from "./upstreams.ts";
import { middlewareFromModule } from "./link-module.ts";
import type { MiddlewareEntry, MiddlewareFactories } from "./middleware.ts";
import { ConfigError, type Position, type Problem } from "./problems.ts";

export interface GatewayOfOptions {
  /** What a program that is an end writes to its stderr. */
  readonly onStderr?: (end: string, text: string) => void;
  /** Each line on its stdout that is no message. */
  readonly onNoise?: (end: string, line: string) => void;
  /** Told whenever the status of an end has changed. */
  readonly onState?: (end: string, status: UpstreamStatus) => void;
  /** Links that the config may name; those of the house. */
  readonly links?: MiddlewareFactories;
  /** Makes the ends; `end` of catenary/chain. */
  readonly upstream?: (target: UpstreamTarget, options: UpstreamOptions) => Upstream;
}

/** Throws a ConfigError where a link or an end cannot be made; nothing is left open then. */
export async function gatewayOf(config: Config, options: GatewayOfOptions = {}): Promise<Gateway> {
  const making = new Making(options, config.limits);
  const links = await making.links(config.chain);
  const ends: [string, Handler][] = [];
  for (const entry of config.ends.values()) {
    const made = await making.upstream(entry);
    if (made !== undefined) ends.push([entry.name, made]);
  }
  if (making.problems.length > 0) {
    await making.undo();
    throw new ConfigError(config.path, config.text, making.problems);
  }
  const { name, instructions, names } = config;
  return chain(...links).to(Object.fromEntries(ends), {
    ...(names && { names }),
    ...(instructions !== undefined && { instructions }),
    ...(name !== undefined && { info: { ...ourselves(), name } }),
  });
}

class Making {
  readonly problems: Problem[] = [];
  readonly #options: GatewayOfOptions;
  readonly #limits: NonNullable<UpstreamOptions["limits"]>;
  readonly #made: { close?(): Promise<void> }[] = [];

  constructor(options: GatewayOfOptions, { messageBytes, depth, batch }: Config["limits"]) {
    this.#options = options;
    this.#limits = {
      ...(messageBytes !== undefined && { messageBytes }),
      ...(depth !== undefined && { depth }),
      ...(batch !== undefined && { batch }),
    };
  }

  async links(entries: readonly MiddlewareEntry[]): Promise<Link[]> {
    const links: Link[] = [];
    for (const entry of entries) {
      const link = await this.#attempt(entry.position, () => this.#link(entry));
      if (link !== undefined) links.push(link);
    }
    return links;
  }

  async upstream(entry: UpstreamEntry): Promise<Handler | undefined> {
    const { name, position, policy, use, hidden } = entry;
    const conceal = concealing(hidden);
    const { upstream = reachUpstream, onNoise, onStderr, onState } = this.#options;
    const links = await this.links(use);
    const made = await this.#attempt(position, async () => {
      const { target, options } = await entry.reach();
      const made = upstream(target, {
        name,
        ...policy,
        ...options,
        ...(Object.keys(this.#limits).length > 0 && { limits: this.#limits }),
        ...(onNoise && { onNoise: (line: string) => onNoise(name, conceal(line)) }),
        ...(onStderr && { onStderr: (text: string) => onStderr(name, conceal(text)) }),
        ...(onState && { onState: (status: UpstreamStatus) => onState(name, concealedStatus(status, conceal)) }),
      });
      return hidden.length === 0 ? made : redactedUpstream(made, conceal);
    });
    return made === undefined || links.length === 0 ? made : chain(...links).to(made);
  }

  async undo(): Promise<void> {
    await Promise.allSettled(this.#made.map(async (one) => one.close?.()));
  }

  async #attempt<T extends { close?(): Promise<void> }>(
    position: Position,
    make: () => Promise<T>,
  ): Promise<T | undefined> {
    try {
      const made = await make();
      this.#made.push(made);
      return made;
    } catch (error) {
      this.problems.push({ ...position, severity: "error", message: errorMessage(error) });
      return undefined;
    }
  }

  async #link(entry: MiddlewareEntry): Promise<Link> {
    if (entry.kind === "module") return middlewareFromModule(entry);
    const make = (this.#options.links ?? LINKS).get(entry.name);
    if (make === undefined) throw new Error(`There is no link ${JSON.stringify(entry.name)}`);
    return make(entry.options);
  }
}
