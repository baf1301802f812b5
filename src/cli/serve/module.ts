// The module that a command line names: loaded, and looked through for what can be served. A fault of the module
// is told with its place in it, because its author is who reads it.

import { stat } from "node:fs/promises";
import { basename, dirname, extname, resolve } from "node:path";
import { errorMessage } from "../../core/text.ts";
import { exportedFunction, places } from "../../modules/exported.ts";
import { loadModule } from "../../modules/load-module.ts";
import { isObject } from "../../core/objects.ts";
import type { Closeable } from "../../serve.ts";
import { NotFoundError, UsageError } from "../exit-codes.ts";

/** File names that say nothing about what is in them. */
const NAMELESS = new Set(["app", "index", "main", "mod", "server"]);

/** What a module is told that wants the stdio which is ours to serve. */
export function ownServing(path: string): string {
  const ways = `start it by \`node ${path}\`, or take the call out, export the server, and this command serves it`;
  return `${path} calls serve() itself: ${ways}`;
}

/** A server or any other handler: all of them are functions. */
export async function loadHandler(path: string): Promise<Closeable> {
  const file = resolve(path);
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) throw new NotFoundError(`There is no module ${path}`);
  if (!found.isFile()) throw new UsageError(`${path} is no file; name the module itself, such as ./server.js`);
  let module: Record<string, unknown>;
  try {
    module = await loadModule(file);
  } catch (error) {
    const said = ownServing(path);
    throw new UsageError(errorMessage(error) === said ? said : `Cannot load ${path}: ${reason(error)}`);
  }
  const handler = exportedFunction(module) as Closeable | undefined;
  if (handler === undefined) {
    const advice = places(module).some(hasChain)
      ? "its chain leads nowhere: export chain(...).to(...), with the ends that it stands in front of"
      : "export one made by createServer as the default, or as `server`, and leave serve() to this command";
    throw new UsageError(`${path} exports no server: ${advice}`);
  }
  return handler;
}

/** One without ends is an object that waits for them. */
function hasChain(exports: Readonly<Record<string, unknown>>): boolean {
  return Object.values(exports).some((one) => isObject(one) && typeof one["to"] === "function");
}

function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ((error as NodeJS.ErrnoException).code === "ERR_UNKNOWN_FILE_EXTENSION") {
    return `${error.message}\nThis Node cannot read it as it is: compile it first, or run it with \`node --import tsx\``;
  }
  return error.stack ?? error.message;
}

/** What a client may call it: the name of its file, or of its folder where the file's says nothing. */
export function moduleName(path: string): string {
  const file = resolve(path);
  const name = basename(file, extname(file));
  return NAMELESS.has(name) ? basename(dirname(file)) || name : name;
}
