// Builds the gateway that a config describes: loads its modules, and creates its middleware and its upstreams. If
// anything fails, everything created so far is closed, and all failures are reported together, with their positions.
// ConfigGateway does the same again when the config has changed, and keeps what has not.

import { dirname } from "node:path";
import { chain } from "../chain/chain.ts";
import { usesUpstream } from "../chain/define.ts";
import { createGateway as gatewayOf, type Gateway } from "../chain/gateway.ts";
import { sendTo } from "../chain/observe.ts";
import type { UpstreamStatus, UpstreamTarget, UpstreamOptions } from "../chain/upstream/options.ts";
import { upstream, type Upstream } from "../chain/upstream/upstream.ts";
import { ownInfo } from "../client/connect.ts";
import { unref } from "../core/async.ts";
import { ConnectionError } from "../core/errors.ts";
import type { Handler, Middleware } from "../core/handler.ts";
import { boolean, code, func, type OptionsOf } from "../core/fields.ts";
import { checkFields, OptionPlace } from "../core/options.ts";
import { defined, errorMessage } from "../core/values.ts";
import { codeSandbox, createCodeMode, sandboxProblems } from "./live.ts";
import { selectPart } from "./profiles.ts";
import type { MiddlewareFactories, MiddlewareFactory } from "./readers.ts";
import type { Config } from "./load.ts";
import { middlewareFromModule, ModuleOptionError, type MiddlewareEntry } from "./middleware.ts";
import { ConfigError, type Position, type Problem } from "./document.ts";
import { createRedactor, redactStatus, redactUpstream } from "./redaction.ts";
import { createAuthorizer, type SignIn } from "./sign-in.ts";
import { type BegunSignIn, SignIns } from "./sign-ins.ts";
import type { UpstreamEntry } from "./upstreams.ts";

const OPTIONS = {
  /** Called with what the program of an upstream writes to stderr. */
  onStderr: func<(upstream: string, text: string) => void>(),
  /** Called with each line on the program's stdout that is not a message. */
  onNoise: func<(upstream: string, line: string) => void>(),
  /** Called when the status of an upstream changes. When it is closed, `pids` are the processes that it had. */
  onState: func<(upstream: string, status: UpstreamStatus) => void>(),
  /** Lets a user sign in to an upstream that asks for it. Default: only the tokens of `catenary login` are used. */
  signIn: code<SignIn>(),
  /** Called with names of an upstream that model APIs would refuse. Default: `process.emitWarning`. */
  onWarning: func<(upstream: string, message: string) => void>(),
  rememberNames: boolean(
    "Whether the names that are shown stay the same after a restart. They are kept under the path of the config.",
  ),
  /** Middleware that the config may name beside the built-in ones, as for `loadConfig`. */
  middleware: code<MiddlewareFactories>(),
  /** Creates the upstreams; default: `upstream` of catenary/chain. */
  upstream: func<(target: UpstreamTarget, options: UpstreamOptions) => Upstream>(),
  changing: boolean("The option `changing` of the gateway, for a program that updates it. Default: false."),
};

/** Options of `createGateway()`. */
export type CreateGatewayOptions = OptionsOf<typeof OPTIONS>;

/**
 * Throws a ConfigError if a middleware or an upstream cannot be created. Everything created so far is then closed.
 *
 * @example
 * await serve(await createGateway(await loadConfig("catenary.json")));
 */
export async function createGateway(config: Config, options: CreateGatewayOptions = {}): Promise<Gateway> {
  checkFields(options, OPTIONS, new OptionPlace("createGateway()"));
  const running = await ConfigGateway.create(config, options);
  running.start();
  return running.gateway;
}

/** A middleware or an upstream, and what of the config it was made from. */
interface Part<T> {
  readonly key: string;
  readonly made: T;
}

interface BuiltMiddleware extends Part<Middleware> {
  /** The only upstream when it was made. */
  readonly only: string | undefined;
}

interface BuiltUpstream extends Part<Handler> {
  /** The upstream without the middleware of its entry. */
  readonly inner: Part<Handler>;
}

interface BuiltGateway {
  readonly gateway: Gateway;
  readonly chain: readonly BuiltMiddleware[];
  readonly upstreams: ReadonlyMap<string, BuiltUpstream>;
  /** Whether the config has callers, or one before it had some. */
  readonly hasCallers: boolean;
}

/** How a change of the config affects the upstreams, by name. */
export interface ConfigChange {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  /** Upstreams that are started anew, since what starts them has changed. */
  readonly restarted: readonly string[];
  /** Upstreams that go on, with another middleware of their own. */
  readonly changed: readonly string[];
  /** Whether the middleware in front of all upstreams has changed. */
  readonly isChainChanged: boolean;
}

export interface StartOptions {
  /** Starts all upstreams. */
  readonly isAll?: boolean;
  /** The principal whose callers use them; default: callers without one. */
  readonly principal?: string | undefined;
}

/** The gateway of a config that may change while it runs. What has not changed in the config stays as it is. */
export class ConfigGateway {
  readonly gateway: Gateway;
  readonly signIns: SignIns;
  readonly #options: CreateGatewayOptions;
  #config: Config;
  #built: BuiltGateway;
  /** How upstreams are started; undefined until `start`. */
  #start: StartOptions | undefined;
  /** One change after the other. */
  #last: Promise<unknown> = Promise.resolve();

  private constructor(
    config: Config,
    options: CreateGatewayOptions,
    signIns: SignIns,
    built: BuiltGateway,
    gateway: Gateway,
  ) {
    this.signIns = signIns;
    this.#config = config;
    this.#options = options;
    this.#built = built;
    this.gateway = gateway;
  }

  static async create(config: Config, given: CreateGatewayOptions): Promise<ConfigGateway> {
    const signIns = new SignIns();
    const options = { ...given, ...(given.signIn && { signIn: signIns.watching(given.signIn) }) };
    const problems = await sandboxProblems(codeSandbox(config), "error");
    if (problems.length > 0) throw new ConfigError(config.path, config.text, problems);
    const built = await buildGateway(config, options);
    // Code mode stays as it is when the config changes: its sessions belong to callers.
    const front = config.code === undefined ? built.gateway : await createCodeMode(built.gateway, config.code);
    return new ConfigGateway(config, options, signIns, built, front);
  }

  get config(): Config {
    return this.#config;
  }

  /** The principal for whose callers the upstreams were started. */
  get owner(): string | undefined {
    return this.#start?.principal;
  }

  /** An upstream without the middleware of its entry, so that it lists what the entry hides. */
  serverAlone(name: string): (Handler & Pick<Upstream, "knownTools">) | undefined {
    return this.#built.upstreams.get(name)?.inner.made;
  }

  /** Starts the upstreams whose entry says so. From now on, those that a change of the config adds are started too. */
  start(options: StartOptions = {}): void {
    this.#start = options;
    for (const name of this.#built.upstreams.keys()) this.#startIfWanted(name);
  }

  #startIfWanted(name: string): void {
    const isWanted = this.#start?.isAll === true || this.#config.upstreams.get(name)?.policy.start === true;
    if (this.#start !== undefined && isWanted) void this.#startNow(name).catch(() => undefined);
  }

  async #startNow(name: string): Promise<void> {
    await (this.#built.upstreams.get(name)?.inner.made as Upstream | undefined)?.start(this.#start?.principal);
  }

  /**
   * Changes the gateway into that of another config. Throws a ConfigError, or what `check` throws, if it cannot be
   * made; the gateway then goes on as it is.
   */
  change(config: Config, check: (next: Gateway) => void = () => undefined): Promise<ConfigChange> {
    return this.#enqueue(async () => {
      const { chain: before, upstreams: old } = this.#built;
      const built = await this.#build(config, this.#built, check);
      const { upstreams } = built;
      const differing = [...upstreams].filter(([name, { key }]) => old.has(name) && old.get(name)?.key !== key);
      const isAnew = ([name, { inner }]: (typeof differing)[number]): boolean =>
        old.get(name)?.inner.made !== inner.made;
      return {
        added: [...upstreams.keys()].filter((name) => !old.has(name)),
        removed: [...old.keys()].filter((name) => !upstreams.has(name)),
        restarted: differing.filter(isAnew).map(([name]) => name),
        changed: differing.filter((entry) => !isAnew(entry)).map(([name]) => name),
        isChainChanged:
          before.length !== built.chain.length || before.some(({ made }, at) => made !== built.chain[at]?.made),
      };
    });
  }

  /**
   * Replaces an upstream by a new one made from the same entry, and starts it. Calls in flight get `graceMs` to finish
   * on the old one. Throws if there is no upstream with this name, or if the new one cannot be started.
   */
  restart(name: string, graceMs: number): Promise<void> {
    return this.#enqueue(async () => {
      const old = this.#built.upstreams.get(name)?.inner.made as Upstream | undefined;
      if (old === undefined) throw new RangeError(`There is no server ${name}`);
      const reason = this.#config.upstreams.get(name)?.restartProblem;
      if (reason !== undefined) throw new RangeError(`${name} ${reason}`);
      const upstreams = new Map([...this.#built.upstreams].filter(([other]) => other !== name));
      await this.#build(this.#config, { ...this.#built, upstreams });
      unref(setTimeout(() => void old.close().catch(() => undefined), graceMs));
      await this.#startNow(name);
    });
  }

  /** Begins a sign-in to an upstream. Throws a RangeError if it cannot have one. Afterwards, restart it. */
  async signIn(name: string): Promise<BegunSignIn> {
    const entry = this.#config.upstreams.get(name);
    if (entry === undefined) throw new RangeError(`There is no server ${name}`);
    if (entry.url === undefined) throw new RangeError(`${name} has no URL, so there is nothing to sign in to`);
    const { options, signIn: settings } = await entry.resolve();
    if (settings === undefined) {
      throw new RangeError(`${name} does not sign in: it has an Authorization header, or "auth": false`);
    }
    const hide = createRedactor(entry.secrets);
    const onNotice = (text: string): void => this.#options.onStderr?.(name, `${hide(text)}\n`);
    const headers = options?.headers;
    return this.signIns.begin({ name, url: new URL(entry.url), settings }, { onNotice, ...defined({ headers }) });
  }

  async #build(config: Config, before: BuiltGateway, check?: (next: Gateway) => void): Promise<BuiltGateway> {
    const built = await buildGateway(config, this.#options, before);
    try {
      check?.(built.gateway);
    } catch (error) {
      await built.gateway.close();
      throw error;
    }
    // Calls in flight may take long, so this does not wait for them.
    void this.gateway.update(built.gateway);
    this.#config = config;
    const old = this.#built.upstreams;
    this.#built = built;
    for (const [name, { inner }] of built.upstreams) {
      if (old.get(name)?.inner.made !== inner.made) this.#startIfWanted(name);
    }
    return built;
  }

  #enqueue<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => undefined);
    return done;
  }
}

function problemAt(position: Position, error: unknown): Problem {
  const at = error instanceof ModuleOptionError ? (error.position ?? position) : position;
  return { ...at, severity: "error", message: errorMessage(error) };
}

/** What is wrong with modules of middleware, which are loaded for it, and with their options. */
export async function moduleProblems({ path, chain, upstreams }: Config): Promise<readonly Problem[]> {
  const uses = [...chain, ...[...upstreams.values()].flatMap(({ use }) => use)];
  const checked = uses.map(async (entry) => {
    if (entry.kind === "module") await (await middlewareFromModule(entry, { folder: dirname(path) })).close?.();
  });
  const outcomes = await Promise.allSettled(checked);
  return uses.flatMap(({ position }, at) => {
    const outcome = outcomes[at];
    return outcome?.status === "rejected" ? [problemAt(position, outcome.reason)] : [];
  });
}

/** Takes from `before` what was made from the same part of the config. */
async function buildGateway(
  config: Config,
  options: CreateGatewayOptions,
  before?: BuiltGateway,
): Promise<BuiltGateway> {
  const { middleware: more = [], upstream: create = upstream } = options;
  const uses = [...config.chain, ...[...config.upstreams.values()].flatMap(({ use }) => use)];
  const builtIn = uses.some(({ kind }) => kind === "named") ? (await import("./built-in.ts")).MIDDLEWARE : [];
  const factories = new Map<string, MiddlewareFactory>([...builtIn, ...more]);
  const { onNoise, onStderr, onState, signIn } = options;
  const { messageBytes, depth, batch } = config.limits;
  const limits = defined({ messageBytes, depth, batch });
  const problems: Problem[] = [];
  const created: { close?(): void | Promise<void> }[] = [];

  async function attempt<T extends { close?(): void | Promise<void> }>(
    position: Position,
    work: () => T | Promise<T>,
  ): Promise<T | undefined> {
    try {
      const resource = await work();
      created.push(resource);
      return resource;
    } catch (error) {
      problems.push(problemAt(position, error));
      return undefined;
    }
  }

  async function createMiddleware(
    entry: MiddlewareEntry,
    upstreamName: string | undefined,
    isShared: boolean,
  ): Promise<Middleware | undefined> {
    return attempt(entry.position, () => {
      const place = { upstream: upstreamName, isShared };
      if (entry.kind === "module") return middlewareFromModule(entry, { ...place, folder: dirname(config.path) });
      const factory = factories.get(entry.name);
      if (factory === undefined) throw new Error(`There is no middleware ${JSON.stringify(entry.name)}`);
      return factory(entry.options, { ...place, folder: entry.folder });
    });
  }

  async function createUpstream(entry: UpstreamEntry): Promise<Handler | undefined> {
    const { name, position, secrets } = entry;
    // ConfigGateway starts it, since it knows for whom.
    const { start: _start, ...policy } = entry.policy;
    const hide = createRedactor(secrets);
    let pids: readonly number[] = [];
    if (entry.missing !== undefined) return attempt(position, () => missingUpstream(entry, onState));
    return attempt(position, async () => {
      const { target, options: upstreamOptions, signIn: how } = await entry.resolve();
      const onNotice = (text: string): void => onStderr?.(name, `${hide(text)}\n`);
      const url = typeof target === "string" ? new URL(target) : undefined;
      const auth = how && url && (await createAuthorizer({ name, url, settings: how }, { signIn, onNotice }));
      const created = create(target, {
        name,
        ...policy,
        ...upstreamOptions,
        ...defined({ auth }),
        ...(Object.keys(limits).length > 0 && { limits }),
        ...(onNoise && { onNoise: (line: string) => onNoise(name, hide(line)) }),
        ...(onStderr && { onStderr: (text: string) => onStderr(name, hide(text)) }),
        ...(onState && {
          onState: (status: UpstreamStatus) => {
            const isClosed = status.state === "closed";
            onState(name, redactStatus(isClosed ? { ...status, pids } : status, hide));
            if (!isClosed) ({ pids } = status);
          },
        }),
      });
      return secrets.length === 0 ? created : redactUpstream(created, hide);
    });
  }

  async function buildUpstream(entry: UpstreamEntry, known: BuiltUpstream | undefined): Promise<void> {
    const { name, missing } = entry;
    const use = missing === undefined ? entry.use : [];
    // An entry that has no value for a variable makes another upstream.
    const innerKey = missing ?? (await entry.key(limits));
    const key = JSON.stringify([innerKey, use.map(middlewareKey)]);
    if (known?.key === key) {
      upstreams.set(name, known);
      return;
    }
    const middleware: Middleware[] = [];
    for (const entry of use) {
      const layer = await createMiddleware(entry, name, false);
      if (layer !== undefined) middleware.push(layer);
    }
    const inner = known?.inner.key === innerKey ? known.inner.made : await createUpstream(entry);
    if (inner === undefined) return;
    const wrapped = middleware.length === 0 ? inner : withMiddleware(middleware, inner);
    if (wrapped !== inner) created.push(wrapped as Gateway);
    upstreams.set(name, { key, made: wrapped, inner: { key: innerKey, made: inner } });
  }

  // Each middleware of before is taken at most once, since one that appears twice holds its state twice.
  const reusable = [...(before?.chain ?? [])];
  const built: BuiltMiddleware[] = [];
  const [first, ...others] = config.upstreams.keys();
  const only = others.length === 0 ? first : undefined;
  for (const entry of config.chain) {
    const key = middlewareKey(entry);
    const at = reusable.findIndex((part) => part.key === key && (part.only === only || !usesUpstream(part.made)));
    const middleware = at === -1 ? await createMiddleware(entry, only, true) : reusable.splice(at, 1)[0]?.made;
    if (middleware !== undefined) built.push({ key, made: middleware, only });
  }
  const upstreams = new Map<string, BuiltUpstream>();
  for (const entry of config.upstreams.values()) await buildUpstream(entry, before?.upstreams.get(entry.name));
  if (problems.length > 0) {
    await Promise.allSettled(created.map(async (resource) => resource.close?.()));
    throw new ConfigError(config.path, config.text, problems);
  }
  const { name, instructions, naming, path } = config;
  const hasCallers = config.callers.size > 0 || before?.hasCallers === true;
  const isDivided = config.upstreams.size > 1 || config.profiles.size > 0 || hasCallers;
  const gateway = chain(...built.map(({ made }) => made)).to(
    Object.fromEntries([...upstreams].map(([name, { made }]) => [name, made])),
    {
      ...naming,
      upstreams: Object.fromEntries([...config.upstreams].map(([name, entry]) => [name, entry.naming])),
      ...defined({ instructions, onWarning: options.onWarning }),
      ...(options.rememberNames !== false && { rememberNames: path }),
      ...(isDivided && { select: selectPart(config, hasCallers) }),
      ...(name !== undefined && { info: { ...ownInfo(), name } }),
      ...(options.changing === true && { changing: true }),
    },
  );
  return { gateway, chain: built, upstreams, hasCallers };
}

/** In place of a server that has no value for a variable: refuses every request, and says why. */
function missingUpstream(entry: UpstreamEntry, onState: CreateGatewayOptions["onState"]): Upstream {
  const { name, kind, target = kind, missing = "" } = entry;
  const subject = `The upstream ${name}`;
  const refusal = (): ConnectionError =>
    new ConnectionError("refused", `${subject} does not run: ${missing}`, { mayHaveRun: false, subject });
  const incomplete = upstream(() => Promise.reject(refusal()));
  incomplete.status = () => ({ state: "incomplete", target, sessions: 0, pids: [], restarts: 0, problem: missing });
  incomplete.start = () => Promise.reject(refusal());
  onState?.(name, incomplete.status());
  return incomplete;
}

/** The middleware of an entry sees the server's own names, so this is not a gateway that changes names. */
function withMiddleware(middleware: readonly Middleware[], inner: Handler): Gateway {
  const upstreams = new Map([["upstream", inner]]);
  // A step of its own tells its time from that of the middleware.
  const handler: Handler = (request, context) => sendTo(undefined, inner, request, context);
  return gatewayOf({ middleware, upstreams, handler, isNameless: true, isChanging: false });
}

/** Equal for entries that make the same middleware. */
function middlewareKey({ position: _position, ...entry }: MiddlewareEntry): string {
  return JSON.stringify(entry);
}
