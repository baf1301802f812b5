// Builds the gateway that a config describes: loads its modules, and creates its middleware and its upstreams. If
// anything fails, everything created so far is closed, and all failures are reported together, with their positions.

import { chain } from "../chain/chain.ts";
import type { Gateway } from "../chain/gateway.ts";
import { MIDDLEWARE } from "../chain/middleware/index.ts";
import type { UpstreamStatus, UpstreamTarget, UpstreamOptions } from "../chain/upstream/options.ts";
import { upstream, type Upstream } from "../chain/upstream/upstream.ts";
import { ownInfo } from "../client/connect.ts";
import type { Handler, Middleware } from "../core/handler.ts";
import { checkOptions } from "../core/options.ts";
import { defined, errorMessage } from "../core/values.ts";
import type { MiddlewareFactories } from "./readers.ts";
import type { Config } from "./load.ts";
import { middlewareFromModule, type MiddlewareEntry } from "./middleware.ts";
import { ConfigError, type Position, type Problem } from "./document.ts";
import { createRedactor, redactStatus, redactUpstream } from "./variables.ts";
import type { UpstreamEntry } from "./upstreams.ts";

export interface CreateGatewayOptions {
  /** Called with what the program of an upstream writes to stderr. */
  readonly onStderr?: (upstream: string, text: string) => void;
  /** Called with each line on the program's stdout that is not a message. */
  readonly onNoise?: (upstream: string, line: string) => void;
  /** Called when the status of an upstream changes. */
  readonly onState?: (upstream: string, status: UpstreamStatus) => void;
  /** The middleware that the config may name; default: the built-in ones. */
  readonly middleware?: MiddlewareFactories;
  /** Creates the upstreams; default: `upstream` of catenary/chain. */
  readonly upstream?: (target: UpstreamTarget, options: UpstreamOptions) => Upstream;
}

// The type makes sure that a new option is added here too.
const OPTIONS = {
  onStderr: true,
  onNoise: true,
  onState: true,
  middleware: true,
  upstream: true,
} as const satisfies Record<keyof CreateGatewayOptions, true>;

/**
 * Throws a ConfigError if a middleware or an upstream cannot be created. Everything created so far is then closed.
 *
 * @example
 * await serve(await createGateway(await loadConfig("catenary.json")));
 */
export async function createGateway(config: Config, options: CreateGatewayOptions = {}): Promise<Gateway> {
  checkOptions("createGateway()", options, OPTIONS);
  const { middleware: factories = MIDDLEWARE, upstream: create = upstream, onNoise, onStderr, onState } = options;
  const { messageBytes, depth, batch } = config.limits;
  const limits = defined({ messageBytes, depth, batch });
  const problems: Problem[] = [];
  const created: { close?(): Promise<void> }[] = [];

  async function attempt<T extends { close?(): Promise<void> }>(
    position: Position,
    work: () => T | Promise<T>,
  ): Promise<T | undefined> {
    try {
      const one = await work();
      created.push(one);
      return one;
    } catch (error) {
      problems.push({ ...position, severity: "error", message: errorMessage(error) });
      return undefined;
    }
  }

  async function createMiddleware(entries: readonly MiddlewareEntry[]): Promise<Middleware[]> {
    const list: (Middleware | undefined)[] = [];
    for (const entry of entries) {
      const one = await attempt(entry.position, () => {
        if (entry.kind === "module") return middlewareFromModule(entry);
        const factory = factories.get(entry.name);
        if (factory === undefined) throw new Error(`There is no middleware ${JSON.stringify(entry.name)}`);
        return factory(entry.options);
      });
      list.push(one);
    }
    return list.filter((one) => one !== undefined);
  }

  async function createUpstream(entry: UpstreamEntry): Promise<Handler | undefined> {
    const { name, position, policy, use, secrets } = entry;
    const hide = createRedactor(secrets);
    const middleware = await createMiddleware(use);
    const handler = await attempt(position, async () => {
      const { target, options: own } = await entry.resolve();
      const one = create(target, {
        name,
        ...policy,
        ...own,
        ...(Object.keys(limits).length > 0 && { limits }),
        ...(onNoise && { onNoise: (line: string) => onNoise(name, hide(line)) }),
        ...(onStderr && { onStderr: (text: string) => onStderr(name, hide(text)) }),
        ...(onState && { onState: (status: UpstreamStatus) => onState(name, redactStatus(status, hide)) }),
      });
      return secrets.length === 0 ? one : redactUpstream(one, hide);
    });
    return handler === undefined || middleware.length === 0 ? handler : chain(...middleware).to(handler);
  }

  const middleware = await createMiddleware(config.chain);
  const upstreams: [string, Handler][] = [];
  for (const entry of config.upstreams.values()) {
    const handler = await createUpstream(entry);
    if (handler !== undefined) upstreams.push([entry.name, handler]);
  }
  if (problems.length > 0) {
    await Promise.allSettled(created.map(async (one) => one.close?.()));
    throw new ConfigError(config.path, config.text, problems);
  }
  const { name, instructions, names } = config;
  return chain(...middleware).to(Object.fromEntries(upstreams), {
    ...defined({ names, instructions }),
    ...(name !== undefined && { info: { ...ownInfo(), name } }),
  });
}
