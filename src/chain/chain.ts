// `chain`: links, and the ends that they stand in front of. Here it is found out what people have given: one end or
// many by name, each a handler, an address, a command or a transport. A handler is taken as it is; anything else is
// reached by `end`; many become one by `merge`, which is loaded by the chains that need it.

import type { Handler, Link, Middleware } from "../core/handler.ts";
import type { Implementation } from "../protocol/model/index.ts";
import { checkOptions } from "../core/options.ts";
import { META } from "../protocol/model/meta.ts";
import { upstream, type UpstreamTarget } from "./upstream/upstream.ts";
import { gatewayOf, type Gateway, type Held } from "./gateway.ts";
import { checkMiddleware, kind, placesOf } from "./link-places.ts";

export interface GatewayOptions {
  /** Whether things are called `end.name` only where two ends have the same name for one, or always. */
  readonly names?: "when-needed" | "always";
  /** What the gateway says it is; of one end alone: what that says. */
  readonly info?: Implementation;
  readonly instructions?: string;
}

export interface Chain {
  /** The same chain with more links, nearer to the ends. */
  use(...links: readonly (Link | Middleware)[]): Chain;
  /**
   * Puts the chain in front of an end, or of several by their names.
   *
   * @example
   * const gateway = chain(log()).to({ notes: { command: "npx", args: ["-y", "notes-mcp"] }, mine: server });
   * await serve(gateway);
   */
  to(ends: UpstreamTarget | Readonly<Record<string, UpstreamTarget>>, options?: GatewayOptions): Gateway;
}

/** Of links of the same name the second is called `log-2`: names are what `replace` and errors go by. */
export function chain(...links: readonly (Link | Middleware)[]): Chain {
  for (const link of links) checkMiddleware(link, "chain()");
  return {
    use: (...more) => chain(...links, ...more),
    to: (ends, options = {}) => {
      checkGatewayOptions(options);
      const isMany = isRecord(ends);
      const held = isMany ? heldBy(ends) : new Map([[ONLY, heldOf(ends, "to()")]]);
      if (!isMany && options.names === "always") {
        throw new TypeError('to(): `names: "always"` needs an end with a name: to({ notes: ... })');
      }
      return gatewayOf({
        places: placesOf(links),
        ends: held,
        isNameless: !isMany,
        handler: handlerOf(held, options),
      });
    },
  };
}

/** What an end is called that has no name. */
const ONLY = "end";

function handlerOf(ends: ReadonlyMap<string, Held>, options: GatewayOptions): Handler {
  const [only] = ends.values();
  if (only === undefined || ends.size > 1 || options.names === "always") return merged(ends, options);
  return options.info === undefined && options.instructions === undefined ? only : introduced(only, options);
}

/** Loaded with the first request: who has one end needs no merging. */
function merged(ends: ReadonlyMap<string, Held>, options: GatewayOptions): Handler {
  let handler: Handler | undefined;
  const load = async (): Promise<Handler> => {
    const { merge } = await import("./router/merge.ts");
    return (handler ??= merge(Object.fromEntries(ends), options));
  };
  return (request, context) =>
    handler === undefined ? load().then((loaded) => loaded(request, context)) : handler(request, context);
}

/** One end that goes by another name. */
function introduced(only: Handler, { info, instructions }: GatewayOptions): Handler {
  return async (request, context) => {
    const result = await only(request, context);
    if (request.method !== "server/discover") return result;
    return {
      ...result,
      ...(instructions === undefined ? undefined : { instructions }),
      ...(info === undefined ? undefined : { _meta: { ...result._meta, [META.serverInfo]: info } }),
    };
  };
}

function heldBy(ends: Readonly<Record<string, UpstreamTarget>>): Map<string, Held> {
  const entries = Object.entries(ends);
  if (entries.length === 0) throw new TypeError("to() takes at least one end; the record that it was given is empty");
  return new Map(
    entries.map(([name, target]) => {
      if (name.trim() === "") throw new TypeError("to(): the name of an end must not be empty");
      const held = heldOf(target, `to(): the end ${JSON.stringify(name)}`);
      held.called?.(name);
      return [name, held];
    }),
  );
}

function heldOf(target: unknown, where: string): Held {
  if (typeof target === "function") return target as Held;
  if (!isTarget(target)) throw new TypeError(`${where} must be ${TARGETS}, not ${kind(target)}`);
  return upstream(target);
}

function isRecord(
  ends: UpstreamTarget | Readonly<Record<string, UpstreamTarget>>,
): ends is Readonly<Record<string, UpstreamTarget>> {
  if (typeof ends !== "object" || ends === null || Array.isArray(ends) || isTarget(ends)) return false;
  // A command that is no text is a mistake, unless it is an end that is called so.
  return !("command" in ends) || typeof ends.command === "function" || isTarget(ends.command);
}

function isTarget(target: unknown): target is Exclude<UpstreamTarget, Handler> {
  if (typeof target === "string") return target.trim() !== "";
  if (typeof target !== "object" || target === null) return false;
  if (target instanceof URL) return true;
  if ("command" in target) return typeof target.command === "string";
  return (
    "start" in target && "send" in target && typeof target.start === "function" && typeof target.send === "function"
  );
}

const TARGETS = "a URL, a command ({ command, args }), a handler or a transport";

// By the types, so that an option which is added there must be added here.
const OPTIONS = { names: true, info: true, instructions: true } as const satisfies Record<keyof GatewayOptions, true>;

function checkGatewayOptions(options: GatewayOptions): void {
  checkOptions("to()", options, OPTIONS);
  const { names, info, instructions } = options;
  if (names !== undefined && names !== "when-needed" && names !== "always") {
    throw new TypeError(`to(): \`names\` must be "when-needed" or "always", not ${kind(names)}`);
  }
  if (info !== undefined && (typeof info.name !== "string" || typeof info.version !== "string")) {
    throw new TypeError("to(): `info` must have a `name` and a `version`");
  }
  if (instructions !== undefined && typeof instructions !== "string") {
    throw new TypeError(`to(): \`instructions\` must be a text, not ${kind(instructions)}`);
  }
}
