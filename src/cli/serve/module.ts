// Loads the module that a command line names and finds the server that it exports. Errors of the module are shown with
// their stack, since the user is its author. Also keeps modules from serving on our stdio.

import { stat } from "node:fs/promises";
import { basename, dirname, extname, resolve } from "node:path";
import { SERVER_RECOGNIZER } from "../../chain/transform.ts";
import { redirectConsole } from "../../transport/stdio.ts";
import { STDIO_TAKEN, takeStdio } from "../../core/process-stdio.ts";
import { errorMessage } from "../../core/values.ts";
import { findServer, loadModule } from "../../modules/load-module.ts";
import type { Closeable } from "../../serve.ts";
import { NotFoundError, UsageError } from "../command.ts";
import { exitWithError } from "../terminal/output.ts";

/** File names that do not describe their content. */
const GENERIC_NAMES = new Set(["app", "index", "main", "mod", "server"]);

/** The error for a module that calls serve(). */
export function servesItself(path: string): string {
  // Node 20 does not load TypeScript by itself.
  const needsTsx = /\.[cm]?ts$/.test(path) && !("typescript" in process.features && process.features.typescript);
  const start = `${needsTsx ? "npx tsx" : "node"} ${path}`;
  return `${path} calls serve() itself; start it with \`${start}\`, or remove the call and export the server`;
}

/** Loads a server, or any other handler. */
export async function loadHandler(path: string): Promise<Closeable> {
  const file = resolve(path);
  const stats = await stat(file).catch(() => undefined);
  if (stats === undefined) throw new NotFoundError(`There is no module ${path}`);
  if (!stats.isFile()) throw new UsageError(`${path} is not a file; name the module itself, such as ./server.js`);
  let module: Record<string, unknown>;
  try {
    module = await loadModule(file);
  } catch (error) {
    const refusal = servesItself(path);
    throw new UsageError(errorMessage(error) === refusal ? refusal : `Cannot load ${path}: ${describeError(error)}`);
  }
  try {
    return findServer(module, SERVER_RECOGNIZER);
  } catch (error) {
    throw new UsageError(`${path} ${errorMessage(error)}`);
  }
}

/** What an import that failed tells the author of the module. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ((error as NodeJS.ErrnoException).code === "ERR_UNKNOWN_FILE_EXTENSION") {
    if (!/Unknown file extension "\.[cm]?tsx?"/.test(error.message))
      return "a module is a .js, .mjs, .cjs, .ts or .mts file";
    return `${error.message}\nThis version of Node cannot load it: compile it first, or run with \`node --import tsx\``;
  }
  return error.stack ?? error.message;
}

/** A name for clients: the name of the file, or of its folder if the file has a generic name. */
export function moduleName(path: string): string {
  const file = resolve(path);
  const name = basename(file, extname(file));
  return GENERIC_NAMES.has(name) ? basename(dirname(file)) || name : name;
}

/**
 * Makes serve() on stdio throw in modules, until the returned function is called. From now on, what modules print with
 * `console.log` goes to stderr, since stdout has messages or data.
 */
export function reserveStdio(refusal: string): () => void {
  const release = takeStdio(refusal);
  redirectConsole();
  // If the module does not await serve(), the error is an unhandled rejection.
  process.once("unhandledRejection", (error) => {
    if (![refusal, STDIO_TAKEN].includes(errorMessage(error))) throw error;
    exitWithError(new UsageError(refusal));
  });
  return release;
}
