// A link that a user's module exports, as `default` or as `link`. What it may be is told apart by one rule that does
// not look at what functions do, only at how many parameters they name.

import { basename, extname } from "node:path";
import type { Link, Middleware } from "../core/handler.ts";
import { errorMessage } from "../core/text.ts";
import { places } from "../modules/exported.ts";
import { userModule } from "./user-module.ts";
import { withoutHidden, type Hidden } from "./variables.ts";
import type { ModuleMiddleware } from "./middleware.ts";

/**
 * What a module that a config uses exports, as its default or as `link`:
 *
 * - an object with `run`: a Link, taken as it is;
 * - a function that names two parameters or more, `(request, context, next)`: a Middleware;
 * - a function that names none or one, `(options)`: it is called once, with the `options` of the config (`{}` where there
 *   are none), and gives a Link or a Middleware, or a promise of one.
 *
 * A parameter with a default value, and those after it, and `...rest` do not count as named: it is what `length` of the
 * function says. `on(...)` of catenary/chain gives a Middleware.
 */
export type MiddlewareModule = Link | Middleware | ((options: never) => Link | Middleware | Promise<Link | Middleware>);

const FORMS =
  "export a link ({ name, run }), a middleware (request, context, next), or a function (options) that makes one";

/** Fails with a sentence about the module. */
export async function middlewareFromModule({ file, options, hidden, name }: ModuleMiddleware): Promise<Link> {
  const module = await userModule(file);
  const exported = exportOf(module);
  if (exported === undefined) throw new Error(`${file} exports no link: ${FORMS}, as the default or as \`link\``);
  const called = name ?? basename(file, extname(file));
  if (isMaker(exported)) return asMiddleware(await made(exported, options ?? {}, file, hidden), called, name, file);
  if (options !== undefined) {
    const why = typeof exported === "function" ? "a middleware, because it names two parameters or more" : "a link";
    throw new Error(`${file} takes no options: it exports ${why}; export a function (options) that makes one`);
  }
  return asMiddleware(exported, called, name, file);
}

function exportOf(module: Readonly<Record<string, unknown>>): unknown {
  return places(module)
    .flatMap((place) => [place["default"], place["link"]])
    .find((value) => typeof value === "function" || isMiddleware(value));
}

type Maker = (options: unknown) => unknown;

function isMaker(exported: unknown): exported is Maker {
  return typeof exported === "function" && exported.length < 2;
}

async function made(make: Maker, options: unknown, file: string, hidden: readonly Hidden[]): Promise<unknown> {
  try {
    return await make(options);
  } catch (error) {
    const rule = "a function that names fewer than two parameters is called with the options of the config";
    throw new Error(`${file} could not make its link: ${withoutHidden(errorMessage(error), hidden)} (${rule})`, {
      cause: error,
    });
  }
}

function asMiddleware(given: unknown, called: string, name: string | undefined, file: string): Link {
  if (typeof given === "function") return { name: called, run: given as Middleware };
  if (!isMiddleware(given)) {
    const rule = "a middleware must name its parameters, (request, context, next)";
    throw new Error(
      `${file} made something that is no link: a function (options) gives a link or a middleware; ${rule}`,
    );
  }
  if (name === undefined && given.name.trim() !== "") return given;
  const close = given.close?.bind(given);
  return { name: called, run: (request, context, next) => given.run(request, context, next), ...(close && { close }) };
}

function isMiddleware(value: unknown): value is Link {
  if (typeof value !== "object" || value === null) return false;
  return "run" in value && typeof value.run === "function" && "name" in value && typeof value.name === "string";
}
