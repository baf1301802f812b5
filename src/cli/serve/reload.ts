// Reads the config of a running gateway again, at SIGHUP or with --reload when the file has changed. A config with
// errors is reported, and the gateway goes on with the one before. What has not changed in it is not restarted.

import { closeSync, openSync, unwatchFile, watchFile } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import type { Gateway } from "../../chain/gateway.ts";
import type { ConfigChange, ConfigGateway } from "../../config/gateway.ts";
import { type Config, ConfigError } from "../../config/index.ts";
import { errorMessage } from "../../core/values.ts";
import { printProblems, tally } from "../show/problems.ts";
import { isTerminal } from "../terminal/output.ts";
import { oneLine } from "../terminal/text.ts";
import type { EventLog } from "./event-log.ts";

export interface ReloadOptions {
  readonly path: string;
  readonly running: ConfigGateway;
  readonly log: EventLog;
  /** Reads the config. */
  readonly load: () => Promise<Config>;
  /** Throws if this gateway must not be served. */
  readonly check?: ((next: Gateway) => void) | undefined;
}

export class Reloader {
  readonly #options: ReloadOptions;
  /** The config that the gateway was started with. */
  readonly #first: Config;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: ReloadOptions) {
    this.#options = options;
    this.#first = options.running.config;
  }

  /** Resolves to whether the config is in use now. With `isQuiet`, a file without changes is not reported. */
  reload(isQuiet = false): Promise<boolean> {
    const done = this.#last.then(() => this.#reload(isQuiet));
    this.#last = done;
    return done;
  }

  async #reload(isQuiet: boolean): Promise<boolean> {
    const { path, running, log, load, check } = this.#options;
    const before = running.config;
    try {
      const config = await load();
      if (isQuiet && config.text === before.text) return true;
      const change = await running.change(config, check);
      printProblems(path, config.text, config.warnings);
      log.info(`${oneLine(path)} was read again: ${describe(change, before, config)}`);
      for (const key of ["listen", "limits", "compat", "code", "console"] as const) {
        const isKnown = isDeepStrictEqual(config[key], before[key]) || isDeepStrictEqual(config[key], this.#first[key]);
        if (isKnown) continue;
        log.write({
          level: "warning",
          message: `"${key}" has changed; that takes effect when you restart the gateway`,
        });
      }
      return true;
    } catch (error) {
      const problems = error instanceof ConfigError ? error.problems : [];
      if (error instanceof ConfigError) printProblems(path, error.text, problems);
      const isGone = (error as NodeJS.ErrnoException).code === "ENOENT";
      const why =
        problems.length > 0 ? `${path} has ${tally(problems)}` : isGone ? `${path} is gone` : errorMessage(error);
      log.write({ level: "error", message: `${oneLine(why)}; the gateway goes on as before` });
      return false;
    }
  }

  /** Reloads when the file has changed. */
  watch(): void {
    const { path } = this.#options;
    let timer: NodeJS.Timeout | undefined;
    // Looks at the file instead of its folder's events, since it may be replaced, be a link, or be on a network.
    watchFile(path, { interval: WATCH_MS, persistent: false }, () => {
      clearTimeout(timer);
      timer = setTimeout(() => void this.reload(true), SETTLE_MS);
    });
    process.once("exit", () => unwatchFile(path));
  }

  /** Reloads at SIGHUP. If the signal means that our terminal was closed, calls `onTerminalClosed`. */
  reloadAtSignal(onTerminalClosed: () => void): void {
    const hadTerminal = [process.stdin, process.stdout, process.stderr].some(isTerminal);
    process.on("SIGHUP", () => {
      if (hadTerminal && !hasTerminal()) onTerminalClosed();
      else void this.reload();
    });
  }
}

const WATCH_MS = 500;
/** An editor may write a file in several steps. */
const SETTLE_MS = 100;

/** Whether this process still has a terminal. A closed terminal sends SIGHUP too, and takes itself away first. */
function hasTerminal(): boolean {
  if (process.platform === "win32") return false;
  try {
    closeSync(openSync("/dev/tty", "r"));
    return true;
  } catch {
    return false;
  }
}

/** What else of a config takes effect at once. */
const OTHERS = { callers: "callers", profiles: "profiles", naming: "names", instructions: "instructions" } as const;

function describe(
  { added, removed, restarted, changed, isChainChanged }: ConfigChange,
  before: Config,
  config: Config,
): string {
  const keys = Object.keys(OTHERS) as (keyof typeof OTHERS)[];
  const parts = [
    ...named("added", added),
    ...named("restarted", restarted),
    ...named("changed", changed),
    ...named("removed", removed),
    ...(isChainChanged ? ["other middleware"] : []),
    ...keys.filter((key) => !isDeepStrictEqual(before[key], config[key])).map((key) => `other ${OTHERS[key]}`),
  ];
  return parts.length === 0 ? "no server has changed" : parts.join("; ");
}

function named(what: string, names: readonly string[]): string[] {
  return names.length === 0 ? [] : [`${what} ${names.map(oneLine).join(", ")}`];
}
