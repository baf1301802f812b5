// The SBCL runtime: starts a guest from a saved core if there is one, else from the compiled guest, else from its
// sources. Once a guest is ready, the runtime saves a core in the background for the next start.

import { within } from "../../core/async.ts";
import type { GuestCommand, GuestRequest, Limits, Runtime } from "../runtime.ts";
import { CoreCache } from "./core-cache.ts";
import { findSbcl, lispSources, runtimeOptions, toplevelOptions, type LispSources, type Sbcl } from "./sbcl.ts";

export interface LispRuntimeOptions {
  /** The SBCL executable; `sbcl` on the PATH by default. */
  readonly command?: string;
  /** Added to the environment of this process. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

export interface LispRuntime extends Runtime {
  /** Deletes the core if the guest was started from one. Resolves to true then, since another start may succeed. */
  startFailed(command: GuestCommand, isCancelled?: boolean): Promise<boolean>;
  /** Resolves when no core is being saved, with the error if saving failed. */
  saved(): Promise<Error | undefined>;
}

interface Installation {
  readonly sbcl: Sbcl;
  readonly sources: LispSources;
  readonly cache: CoreCache;
}

/** How long other guests wait for the one that compiles: as long as a guest may take to become ready. */
const COMPILE_TIMEOUT_MS = 60_000;

/** `onWarning` is called once if sessions start slowly for a reason that the user can fix. */
export function lispRuntime(
  options: LispRuntimeOptions = {},
  onWarning: (text: string) => void = (text) => process.emitWarning(text),
): LispRuntime {
  return new SbclRuntime(options, onWarning);
}

class SbclRuntime implements LispRuntime {
  readonly language = "lisp";
  readonly stopSteps = ["interrupt", "renew"] as const;
  /** SBCL's lines about a stack overflow. The error already reports it. Some lines come one evaluation late. */
  readonly noise: RegExp =
    /^(?:INFO: )?(?:Control|Binding|Alien) stack guard page (?:unprotected|reprotected|temporarily disabled: proceed with caution)\n/gm;
  readonly encode: (request: GuestRequest) => string = encodeRequest;
  readonly #options: LispRuntimeOptions;
  #onWarning: ((text: string) => void) | undefined;
  #installation: Promise<Installation> | undefined;
  #saving: Promise<Error | undefined> | undefined;
  #isClosed = false;
  /** Resolves when the first guest has compiled its sources, or has failed. */
  #compiling: Promise<void> | undefined;
  #endCompiling: () => void = () => undefined;

  constructor(options: LispRuntimeOptions, onWarning: (text: string) => void) {
    this.#options = options;
    this.#onWarning = onWarning;
  }

  async start(limits: Limits): Promise<GuestCommand> {
    const { sbcl, sources, cache } = await this.#find();
    const { env, cwd } = this.#options;
    const common = { command: sbcl.command, ...(env && { env }), ...(cwd === undefined ? {} : { cwd }) };
    const runtime = runtimeOptions(limits.memoryMb);
    if (await cache.hasCore()) return { ...common, args: ["--core", cache.core, ...runtime] };
    const problem = await cache.prepare();
    if (problem !== undefined) {
      this.#onWarning?.(problem.message);
      this.#onWarning = undefined;
    }
    await this.#waitForCompiler(cache);
    return { ...common, args: [...runtime, ...toplevelOptions(sources.start, cache.startArguments("guest"))] };
  }

  onReady(): void {
    this.#endCompiling();
    if (this.#isClosed || this.#saving !== undefined) return;
    this.#saving = this.#save();
  }

  async startFailed(command: GuestCommand, isCancelled = false): Promise<boolean> {
    this.#endCompiling();
    if (isCancelled) return false;
    const { cache } = await this.#find();
    // Without a core, another start would fail in the same way.
    if (command.args[0] !== "--core") return false;
    await cache.drop();
    this.#saving = undefined;
    return true;
  }

  async saved(): Promise<Error | undefined> {
    return this.#saving;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#endCompiling();
    const installation = await this.#installation?.catch(() => undefined);
    await installation?.cache.close();
    await this.#saving;
  }

  /** If several guests start and nothing is compiled yet, one compiles and the others wait for its result. */
  async #waitForCompiler(cache: CoreCache): Promise<void> {
    if (await cache.hasCompiled()) return;
    if (this.#compiling === undefined) this.#compiling = new Promise((resolve) => (this.#endCompiling = resolve));
    else await within(COMPILE_TIMEOUT_MS, this.#compiling);
  }

  #find(): Promise<Installation> {
    this.#installation ??= this.#findInstallation().catch((error: unknown) => {
      // SBCL may be installed later, while this process runs.
      this.#installation = undefined;
      throw error;
    });
    return this.#installation;
  }

  async #findInstallation(): Promise<Installation> {
    const [sbcl, sources] = await Promise.all([
      findSbcl(this.#options.command, this.#options.env?.["PATH"]),
      lispSources(),
    ]);
    return { sbcl, sources, cache: new CoreCache(sbcl, sources) };
  }

  /** Never rejects: sessions without a core only start more slowly. */
  async #save(): Promise<Error | undefined> {
    try {
      const { cache } = await this.#find();
      if (await cache.hasCore()) await cache.touch();
      else await cache.save();
      return undefined;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }
}

/** Encodes a request as a property list with keywords as keys. Values that cannot be written in Lisp become nil. */
export function encodeRequest(request: GuestRequest): string {
  let text = "";
  for (const name of Object.keys(request)) {
    // For the guest, an absent key and nil are the same.
    const value = encodeValue(request[name]);
    if (value !== "nil") text += `${text === "" ? "(" : " "}:${toKeyword(name)} ${value}`;
  }
  return `${text})`;
}

/** A cache of keywords by name. It stays small, since the names are those of tool arguments. */
const keywords = new Map<string, string>();

function toKeyword(name: string): string {
  let keyword = keywords.get(name);
  if (keyword === undefined) {
    keyword = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    keywords.set(name, keyword);
  }
  return keyword;
}

function encodeValue(value: unknown): string {
  if (value === true) return "t";
  if (typeof value === "string") return `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "nil";
  if (Array.isArray(value)) return value.length === 0 ? "nil" : `(${value.map(encodeValue).join(" ")})`;
  return "nil";
}
