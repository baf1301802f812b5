// Loads the modules that a config names: a server, or middleware. Modules are loaded when the config is used, never
// when it is checked.

import { basename, extname } from "node:path";
import { fileURLToPath } from "node:url";
import type { Handler, Middleware } from "../core/handler.ts";
import { errorMessage } from "../core/values.ts";
import { exportedFunction, loadModule, exportObjects } from "../modules/load-module.ts";
import type { ModuleMiddleware } from "./middleware.ts";
import { redact, type Secret } from "./variables.ts";

async function loadUserModule(file: string): Promise<Record<string, unknown>> {
  try {
    return await loadModule(file);
  } catch (error) {
    throw new Error(`Cannot load ${file}: ${errorMessage(error)}${locationOf(error)}`, { cause: error });
  }
}

/** Where the error was thrown. Empty for a syntax error, whose message already contains the location. */
function locationOf(error: unknown): string {
  if (!(error instanceof Error) || error instanceof SyntaxError) return "";
  const [, url, position] = /^ {4}at (?:.*\()?(file:.*?|\/.*?):(\d+:\d+)\)?$/m.exec(error.stack ?? "") ?? [];
  if (url === undefined || position === undefined) return "";
  return `, at ${url.startsWith("file:") ? fileURLToPath(url.replace(/\?.*$/, "")) : url}:${position}`;
}

export async function serverFromModule(file: string): Promise<Handler> {
  const server = exportedFunction(await loadUserModule(file)) as Handler | undefined;
  if (server !== undefined) return server;
  throw new Error(`${file} exports no server: export one made by createServer as the default, or as \`server\``);
}

/**
 * What a module named by `use` exports, as the default or as `middleware`:
 *
 * - a function with two or more parameters, `(request, context, next)`: a middleware;
 * - a function with at most one parameter, `(options)`: a factory. It is called once with the `options` of the config
 *   (`{}` if there are none) and returns a middleware or a promise of one.
 *
 * The `length` of the function decides. It counts the parameters before the first one with a default value, without
 * `...rest`. `on(...)` of catenary/chain returns a middleware.
 */
export type MiddlewareModule = Middleware | ((options: never) => Middleware | Promise<Middleware>);

const FORMS = "export a middleware (request, context, next), or a function (options) that returns one";

/** Rejects with an error that names the module. */
export async function middlewareFromModule({ file, options, secrets, name }: ModuleMiddleware): Promise<Middleware> {
  const exported = exportObjects(await loadUserModule(file))
    .flatMap((exports) => [exports["default"], exports["middleware"]])
    .find((value) => typeof value === "function") as Middleware | Factory | undefined;
  if (exported === undefined) {
    throw new Error(`${file} exports no middleware: ${FORMS}, as the default or as \`middleware\``);
  }
  const fileName = basename(file, extname(file));
  if (isFactory(exported)) return named(await create(exported, options ?? {}, file, secrets), name ?? fileName);
  if (options !== undefined) {
    throw new Error(
      `${file} takes no options: it exports a middleware, a function with two or more parameters; to use options, export a function (options) that returns a middleware`,
    );
  }
  return named(exported, name ?? fileName);
}

type Factory = (options: unknown) => unknown;

function isFactory(exported: Middleware | Factory): exported is Factory {
  return exported.length < 2;
}

async function create(
  factory: Factory,
  options: unknown,
  file: string,
  secrets: readonly Secret[],
): Promise<Middleware> {
  let created: unknown;
  try {
    created = await factory(options);
  } catch (error) {
    const rule = "a function with fewer than two parameters is called with the options of the config";
    throw new Error(`${file} could not create its middleware: ${redact(errorMessage(error), secrets)} (${rule})`, {
      cause: error,
    });
  }
  if (typeof created === "function") return created as Middleware;
  throw new Error(
    `The function that ${file} exports did not return a middleware; a middleware must declare its parameters, (request, context, next)`,
  );
}

/** Returns a copy with another name, since the module may be used several times under different names. */
function named(middleware: Middleware, name: string): Middleware {
  const copy: Middleware = (request, context, next) => middleware(request, context, next);
  if (middleware.close !== undefined) copy.close = async () => middleware.close?.();
  return Object.defineProperty(copy, "name", { value: name });
}
