// Reads the middleware in a config: built-in middleware by name, with options, and the user's modules by path. To check
// its options, a built-in middleware is created and closed again. Modules are loaded when the config is used, never when
// it is checked.

import { basename, extname } from "node:path";
import { isDefined, optionsSchema, type DefinedMiddleware, type Place } from "../chain/define.ts";
import type { Middleware } from "../core/handler.ts";
import { hiderOf, type Secret } from "../core/secrets.ts";
import { defined, errorMessage } from "../core/values.ts";
import { exportObjects, loadUserModule } from "../modules/load-module.ts";
import type { Position } from "./document.ts";
import * as read from "./readers.ts";

/** A built-in middleware. */
export interface NamedMiddleware {
  readonly kind: "named";
  /** Its name in a config, such as `rate-limit`. */
  readonly name: string;
  readonly file?: undefined;
  /** Undefined if none are given. */
  readonly options: unknown;
  /** Where relative paths in the options begin. Default: the current folder. */
  readonly folder?: string;
  readonly position: Position;
}

/** A middleware in a module of the user's own. */
export interface ModuleMiddleware {
  readonly kind: "module";
  /** The absolute path of the module. */
  readonly file: string;
  /** The argument of the function that the module exports. */
  readonly options: unknown;
  /** Values in the options that must not be shown. */
  readonly secrets: readonly Secret[];
  /** Default: that of its definition, or the name of the file. */
  readonly name?: string;
  readonly position: Position;
  /** The options as the schema of a definition reads them, and where they are. */
  readonly source?: OptionsSource;
}

interface OptionsSource {
  readonly read: (schema: read.Schema) => unknown;
  readonly position: (option: string) => Position;
}

/** A wrong option of a middleware in a module, with its position in the config. */
export class ModuleOptionError extends Error {
  readonly position: Position | undefined;

  constructor(message: string, position: Position | undefined) {
    super(message);
    this.position = position;
  }
}

/** A middleware in a config. */
export type MiddlewareEntry = NamedMiddleware | ModuleMiddleware;

const MODULE_FIELDS = {
  use: read
    .pathTo("file", "error")
    .describe(
      "The path of a JavaScript or TypeScript module that exports a middleware (request, context, next), or a function (options) that returns one, as its default or as `middleware`; relative to this file.",
    ),
  options: read.anything.describe("The argument of the function (options)."),
  name: read.nonEmptyString.describe("The name of the middleware. Default: the name of the file."),
} as const;

export const moduleFields: ReturnType<typeof read.objectOf<typeof MODULE_FIELDS>> = read.objectOf(
  MODULE_FIELDS,
  "an object",
);

const FORMS = '"log", {"log": {...}} or {"use": "./mine.ts"}';

export const middlewareList: read.Reader<readonly MiddlewareEntry[]> = read.reader(
  { $ref: "#/definitions/middlewareList" },
  (cursor) => {
    if (cursor.kind === "array") return cursor.items().flatMap((item) => readEntry(item) ?? []);
    return read.wrongType(cursor, `an array of middleware, such as ["log", {"use": "./mine.ts"}]`);
  },
);

function readEntry(cursor: read.Cursor): MiddlewareEntry | undefined {
  if (cursor.kind === "string") {
    const name = read.anyString(cursor);
    if (name === undefined || read.scanStrings(cursor).isPending) return undefined;
    return readNamed(cursor, name, String(cursor.value), undefined);
  }
  if (cursor.kind !== "object") return read.wrongType(cursor, FORMS);
  const [only, second] = cursor.members();
  if (cursor.get("use") !== undefined) return readModule(cursor);
  if (only === undefined) return cursor.error("the name of the middleware is missing", `write ${FORMS}`);
  if (second === undefined) return readNamed(only, only.name, only.name, only);
  const isModule = [only, second].some(({ name }) => Object.hasOwn(MODULE_FIELDS, name));
  const hint = isModule
    ? 'write the path of a module in "use", beside "options" and "name"'
    : `give each an object of its own: {${JSON.stringify(only.name)}: ...}, {${JSON.stringify(second.name)}: ...}`;
  return cursor.error("expected one name, got several", hint);
}

function readModule(cursor: read.Cursor): ModuleMiddleware | undefined {
  const { use: file, options, name } = moduleFields(cursor) ?? {};
  if (file === undefined) return undefined;
  const written = cursor.get("options");
  const { secrets } = read.scanStrings(written);
  const source: OptionsSource = {
    read: (schema) => written && read.readAs(written, schema),
    position: (option) => (written === undefined ? cursor : findOption(written, option)).position,
  };
  return { kind: "module", file, options, secrets, position: cursor.position, source, ...defined({ name }) };
}

/** `written` is the name before its variables are expanded. */
function readNamed(
  cursor: read.Cursor,
  name: string,
  written: string,
  optionsCursor: read.Cursor | undefined,
): NamedMiddleware | undefined {
  const { context } = cursor;
  const { builtIn, middleware, problems, folder } = context;
  if (builtIn === undefined) {
    context.needsBuiltIn = true;
    return undefined;
  }
  const factory = middleware.get(name) ?? builtIn.get(name);
  if (factory === undefined) {
    const quotedName = JSON.stringify(written);
    const names = [...new Set([...builtIn.keys(), ...middleware.keys()])];
    const known = `there are ${names.join(", ")}; write {"use": "./mine.ts"} for a module of your own`;
    const isPath = /\.|[/\\]/.test(written);
    const hint = isPath
      ? `write {"use": ${quotedName}} for a module of your own`
      : (read.suggest(written, names) ?? known);
    problems.error(cursor.keyOffset, `There is no middleware ${quotedName}`, hint);
    return undefined;
  }
  const definition = builtIn.get(name)?.definition;
  const options = optionsCursor && read.readAs(optionsCursor, definition && optionsSchema(definition));
  const { isPending, secrets } = read.scanStrings(optionsCursor ?? cursor);
  // If a value is missing, it has been reported already, or will be asked for later. The factory would only report it
  // again.
  const problem = isPending ? undefined : checkByCreating(() => factory(options, { folder }));
  if (problem === undefined) return { kind: "named", name, options, folder, position: cursor.position };
  const { offset } = findOption(optionsCursor ?? cursor, problem.option);
  problems.error(offset, hiderOf(secrets, 1)(problem.message));
  return undefined;
}

interface OptionProblem {
  readonly message: string;
  /** The path of the option; empty if no single option is wrong. */
  readonly option: string;
}

function checkByCreating(create: () => Middleware): OptionProblem | undefined {
  try {
    const middleware = create();
    void (async () => middleware.close?.())().catch(() => undefined);
    return undefined;
  } catch (error) {
    return optionProblem(error);
  }
}

function optionProblem(error: unknown): OptionProblem {
  // Not by its class, since a module may use another copy of this package.
  const { option } = error as { readonly option?: unknown };
  return { message: errorMessage(error), option: typeof option === "string" ? option : "" };
}

/** The cursor of an option such as `tools.include` or `rules.0.callers`, or of its nearest parent that is present. */
function findOption(cursor: read.Cursor, option: string): read.Cursor {
  const whole = cursor.get(option);
  if (whole !== undefined) return whole;
  const [first = "", ...rest] = option.split(".");
  const inner = cursor.get(first) ?? cursor.items()[Number(first)];
  return inner === undefined ? cursor : findOption(inner, rest.join("."));
}

/**
 * What a module named by `use` exports, as the default or as `middleware`:
 *
 * - what `define` of catenary/chain returns: the options of the config are checked by its fields;
 * - a function with two or more parameters, `(request, context, next)`: a middleware;
 * - a function with at most one parameter, `(options)`: a factory. It is called once with the `options` of the config
 *   (`{}` if there are none) and returns a middleware or a promise of one.
 *
 * The `length` of the function decides. It counts the parameters before the first one with a default value, without
 * `...rest`. `on(...)` of catenary/chain returns a middleware.
 */
export type MiddlewareModule = DefinedMiddleware | Middleware | ((options: never) => Middleware | Promise<Middleware>);

const EXPORTS = "export a middleware (request, context, next), or a function (options) that returns one";

/** Rejects with an error that names the module, or the wrong option. */
export async function middlewareFromModule(entry: ModuleMiddleware, place: Place = {}): Promise<Middleware> {
  const { file, options, secrets, name } = entry;
  const exported = exportObjects(await loadUserModule(file))
    .flatMap((exports) => [exports["default"], exports["middleware"]])
    .find((value) => typeof value === "function") as Middleware | Factory | undefined;
  if (exported === undefined) {
    throw new Error(`${file} exports no middleware: ${EXPORTS}, as the default or as \`middleware\``);
  }
  if (isDefined(exported)) return createDefined(exported, entry, place);
  const fileName = basename(file, extname(file));
  if (isFactory(exported)) return named(await create(exported, options ?? {}, file, secrets), name ?? fileName);
  if (options !== undefined) {
    throw new Error(
      `${file} takes no options: it exports a middleware, a function with two or more parameters; to use options, export a function (options) that returns a middleware`,
    );
  }
  return named(exported, name ?? fileName);
}

function createDefined(
  defined: DefinedMiddleware,
  { options, secrets, name, source }: ModuleMiddleware,
  place: Place,
): Middleware {
  const { definition } = defined;
  try {
    const middleware = defined(source?.read(optionsSchema(definition)) ?? options, place);
    return Object.defineProperty(middleware, "name", { value: name ?? definition.name });
  } catch (error) {
    const { message, option } = optionProblem(error);
    throw new ModuleOptionError(hiderOf(secrets, 1)(message), source?.position(option));
  }
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
    throw new Error(`${file} could not create its middleware: ${hiderOf(secrets, 1)(errorMessage(error))} (${rule})`, {
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
