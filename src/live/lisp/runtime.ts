// SBCL as a runtime of the live room: which command starts a guest, from the saved core where there is one, else from
// the compiled guest, else from its sources; and the core that is saved in the background once a guest is ready. What
// goes on inside the guest is in the .lisp files; what a session is, in the files above.

import { within } from "../../core/async.ts";
import type { GuestCommand, GuestRequest, Limits, Runtime } from "../runtime.ts";
import { CoreCache } from "./core-cache.ts";
import { findSbcl, runtimeOptions, startOptions, type Sbcl, lispSources, type LispSources } from "./sbcl.ts";

export interface LispRuntimeOptions {
  /** The program; `sbcl` on the PATH. */
  readonly command?: string;
  /** Added to our own environment. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
}

export interface LispRuntime extends Runtime {
  /** A guest ended before it was ready. True: what it was started from was thrown away, and another start is worth it. */
  failed(command: GuestCommand, isGivenUp?: boolean): Promise<boolean>;
  /** Resolves when no core is being saved; with why it could not be, when it could not. */
  saved(): Promise<Error | undefined>;
}

interface Home {
  readonly sbcl: Sbcl;
  readonly sources: LispSources;
  readonly cache: CoreCache;
}

/** As long as a guest may take until it is ready. */
const COMPILE_MS = 60_000;

/** `notice` is told once what makes sessions slow, and can be mended. */
export function lispRuntime(
  options: LispRuntimeOptions = {},
  notice: (text: string) => void = (text) => process.emitWarning(text),
): LispRuntime {
  return new SbclRuntime(options, notice);
}

class SbclRuntime implements LispRuntime {
  readonly language = "lisp";
  readonly ladder = ["interrupt", "renew"] as const;
  /** Of an exhausted stack the condition tells; these come with it, and some of them an evaluation later. */
  readonly noise: RegExp =
    /^(?:INFO: )?(?:Control|Binding|Alien) stack guard page (?:unprotected|reprotected|temporarily disabled: proceed with caution)\n/gm;
  readonly encode: (request: GuestRequest) => string = encodeRequest;
  readonly #options: LispRuntimeOptions;
  #notice: ((text: string) => void) | undefined;
  #home: Promise<Home> | undefined;
  #saving: Promise<Error | undefined> | undefined;
  #isClosed = false;
  /** Resolves when the first guest that had to compile has done so, or has failed. */
  #compiling: Promise<void> | undefined;
  #compiled: () => void = () => undefined;

  constructor(options: LispRuntimeOptions, notice: (text: string) => void) {
    this.#options = options;
    this.#notice = notice;
  }

  async start(limits: Limits): Promise<GuestCommand> {
    const { sbcl, sources, cache } = await this.#find();
    const { env, cwd } = this.#options;
    const place = { ...(env === undefined ? {} : { env }), ...(cwd === undefined ? {} : { cwd }) };
    const runtime = runtimeOptions(limits.memoryMb);
    if (await cache.hasCore()) return { command: sbcl.command, args: ["--core", cache.core, ...runtime], ...place };
    const fault = await cache.prepare();
    if (fault !== undefined) {
      this.#notice?.(fault.message);
      this.#notice = undefined;
    }
    await this.#turn(cache);
    const args = [...runtime, ...startOptions(sources.start, cache.words("guest"))];
    return { command: sbcl.command, args, ...place };
  }

  settled(): void {
    this.#compiled();
    if (this.#isClosed || this.#saving !== undefined) return;
    this.#saving = this.#save();
  }

  async failed(command: GuestCommand, isGivenUp = false): Promise<boolean> {
    this.#compiled();
    if (isGivenUp) return false;
    const { cache } = await this.#find();
    const isFromCore = command.args[0] === "--core";
    // What does not begin from a core has nothing else to begin from.
    if (!isFromCore) return false;
    await cache.drop();
    this.#saving = undefined;
    return true;
  }

  async saved(): Promise<Error | undefined> {
    return this.#saving;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#compiled();
    const home = await this.#home?.catch(() => undefined);
    await home?.cache.close();
    await this.#saving;
  }

  /** Where several begin together and nothing is compiled yet, one does it, and the others load what it leaves. */
  async #turn(cache: CoreCache): Promise<void> {
    if (await cache.hasCompiled()) return;
    if (this.#compiling === undefined) this.#compiling = new Promise((resolve) => (this.#compiled = resolve));
    else await within(COMPILE_MS, this.#compiling);
  }

  #find(): Promise<Home> {
    this.#home ??= this.#look().catch((error: unknown) => {
      // It may be installed while we run.
      this.#home = undefined;
      throw error;
    });
    return this.#home;
  }

  async #look(): Promise<Home> {
    const [sbcl, sources] = await Promise.all([
      findSbcl(this.#options.command, this.#options.env?.["PATH"]),
      lispSources(),
    ]);
    return { sbcl, sources, cache: new CoreCache(sbcl, sources) };
  }

  /** Never rejects: a session without a core is only slower. */
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

// A request as the Lisp guest reads it: one property list, with keywords for keys. Only what a reader of Lisp would take
// for something else is escaped, and what Lisp has no form for is nil.

export function encodeRequest(request: GuestRequest): string {
  let text = "";
  for (const name of Object.keys(request)) {
    // An absent key and nil are the same to the guest.
    const value = form(request[name]);
    if (value !== "nil") text += `${text === "" ? "(" : " "}:${keyword(name)} ${value}`;
  }
  return `${text})`;
}

/** Names that have been written before; there are as many as tools have arguments. */
const keywords = new Map<string, string>();

function keyword(name: string): string {
  let known = keywords.get(name);
  if (known === undefined) {
    known = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    keywords.set(name, known);
  }
  return known;
}

function form(value: unknown): string {
  if (value === true) return "t";
  if (typeof value === "string") return `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "nil";
  if (Array.isArray(value)) return value.length === 0 ? "nil" : `(${value.map(form).join(" ")})`;
  return "nil";
}
