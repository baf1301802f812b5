// Reads the middleware in a config: built-in middleware by name, with options, and the user's modules by path. To check
// its options, a built-in middleware is created and closed again. Modules are loaded later, by user-modules.ts.

import type { MiddlewareFactory } from "../chain/middleware/index.ts";
import { OptionError } from "../core/options.ts";
import { errorMessage } from "../core/values.ts";
import {
  type Cursor,
  anyString,
  anything,
  nonEmptyString,
  objectOf,
  pathTo,
  scanStrings,
  suggest,
  wrongType,
  type Fields,
  type Reader,
} from "./readers.ts";
import type { Member, Position } from "./document.ts";
import { redact, type Secret } from "./variables.ts";

export interface NamedMiddleware {
  readonly kind: "named";
  readonly name: string;
  /** Undefined if none are given. */
  readonly options: unknown;
  readonly position: Position;
}

export interface ModuleMiddleware {
  readonly kind: "module";
  readonly file: string;
  readonly options: unknown;
  /** Values in the options that must not be shown. */
  readonly secrets: readonly Secret[];
  /** Default: the name of the file. */
  readonly name?: string;
  readonly position: Position;
}

export type MiddlewareEntry = NamedMiddleware | ModuleMiddleware;

const MODULE = {
  use: pathTo("file", "error"),
  options: anything,
  name: nonEmptyString,
} as const satisfies Fields;

export const MODULE_FIELDS: Fields = MODULE;

const moduleFields = objectOf(MODULE, "an object");

const FORMS = '"log", {"log": {...}} or {"use": "./mine.ts"}';

export const middlewareList: Reader<readonly MiddlewareEntry[]> = (cursor) => {
  if (cursor.value.kind === "array") return cursor.items().flatMap((item) => readEntry(item) ?? []);
  return wrongType(cursor, `an array of middleware, such as ["log", {"use": "./mine.ts"}]`);
};

function readEntry(cursor: Cursor): MiddlewareEntry | undefined {
  const { value } = cursor;
  if (value.kind === "string") {
    const name = anyString(cursor);
    if (name === undefined || scanStrings(cursor).isPending) return undefined;
    return readNamed(cursor, name, value.text, undefined);
  }
  if (value.kind !== "object") return wrongType(cursor, FORMS);
  if (value.members.some(({ name }) => name === "use")) return readModule(cursor);
  const [only, second] = value.members;
  if (only === undefined) return cursor.error("the name of the middleware is missing", `write ${FORMS}`);
  if (second !== undefined) return rejectSeveral(cursor, only, second);
  return readNamed(cursor.member(only), only.name, only.name, cursor.member(only));
}

function readModule(cursor: Cursor): ModuleMiddleware | undefined {
  const { use: file, options, name } = moduleFields(cursor) ?? {};
  if (file === undefined) return undefined;
  const given = cursor.get("options");
  const { secrets } = given === undefined ? { secrets: [] } : scanStrings(given);
  return { kind: "module", file, options, secrets, position: cursor.position, ...(name !== undefined && { name }) };
}

function rejectSeveral(cursor: Cursor, first: Member, second: Member): undefined {
  const isModule = [first, second].some(({ name }) => Object.hasOwn(MODULE, name));
  const hint = isModule
    ? 'write the path of a module in "use", beside "options" and "name"'
    : `give each an object of its own: {${JSON.stringify(first.name)}: ...}, {${JSON.stringify(second.name)}: ...}`;
  return cursor.error("expected one name, got several", hint);
}

/** `written` is the name before its variables are expanded. */
function readNamed(
  cursor: Cursor,
  name: string,
  written: string,
  given: Cursor | undefined,
): NamedMiddleware | undefined {
  const { middleware, problems } = cursor.context;
  const factory = middleware.get(name);
  if (factory === undefined) {
    const shown = JSON.stringify(written);
    const known = `there are ${[...middleware.keys()].join(", ")}; write {"use": "./mine.ts"} for a module of your own`;
    const isPath = /\.|[/\\]/.test(written);
    const hint = isPath
      ? `write {"use": ${shown}} for a module of your own`
      : (suggest(written, middleware.keys()) ?? known);
    problems.error(cursor.keyOffset, `There is no middleware ${shown}`, hint);
    return undefined;
  }
  const options = given && anything(given);
  const { isPending, secrets } = scanStrings(given ?? cursor);
  // If a value is missing, it has been reported already, or will be asked for later. The factory would only report it
  // again.
  const problem = isPending ? undefined : checkByCreating(factory, options);
  if (problem === undefined) return { kind: "named", name, options, position: cursor.position };
  const { offset } = findOption(given ?? cursor, problem.option).value;
  problems.error(offset, redact(problem.message, secrets));
  return undefined;
}

function checkByCreating(
  factory: MiddlewareFactory,
  options: unknown,
): { readonly message: string; readonly option: string } | undefined {
  try {
    void factory(options)
      .close?.()
      .catch(() => undefined);
    return undefined;
  } catch (error) {
    return { message: errorMessage(error), option: error instanceof OptionError ? error.option : "" };
  }
}

/** The cursor of an option such as `tools.only`, or of its nearest parent that is present. */
function findOption(cursor: Cursor, option: string): Cursor {
  const whole = cursor.get(option);
  if (whole !== undefined) return whole;
  const [first = "", ...rest] = option.split(".");
  const inner = cursor.get(first);
  return inner === undefined ? cursor : findOption(inner, rest.join("."));
}
