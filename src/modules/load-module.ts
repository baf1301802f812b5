// Imports a user's module (JavaScript or TypeScript), finds the handler that it exports, and explains why an import
// failed. A module hook (typescript.ts) compiles TypeScript, and lets modules import `catenary` where it is not installed
// beside them. The hook needs a thread, so it is registered only for the first module that needs it.

import { existsSync } from "node:fs";
import { createRequire, register, SourceMap, type SourceMapPayload } from "node:module";
import { dirname, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { packageFile, readBounded } from "../core/files.ts";
import { isUnfinishedChain, NO_UPSTREAM } from "../core/handler-marks.ts";
import { errorMessage, isObject } from "../core/values.ts";
import { compile, isTypeScript, syntaxError } from "./typescript.ts";

let isHookRegistered = false;

/**
 * `file` is relative to the working directory. Rejects with the error that the module throws. If the module cannot be
 * parsed, rejects with a SyntaxError whose message starts with file, line and column.
 */
export async function loadModule(file: string): Promise<Record<string, unknown>> {
  const path = resolve(file);
  if (!isHookRegistered && !isLoadedAsTypeScript() && (isTypeScript(path) || !canImportUs(path))) {
    isHookRegistered = true;
    register(pathToFileURL(packageFile("dist/modules/typescript.js")));
  }
  try {
    return (await import(/* @vite-ignore */ /* webpackIgnore: true */ pathToFileURL(path).href)) as Record<
      string,
      unknown
    >;
  } catch (error) {
    throw await explainImportError(error, path);
  }
}

/** Like `loadModule`, but its errors name the file and the location. */
export async function loadUserModule(file: string): Promise<Record<string, unknown>> {
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

/** Whether a loader runs this very file as TypeScript. It then loads the modules too, and finds the package. */
function isLoadedAsTypeScript(): boolean {
  return import.meta.url.endsWith(".ts");
}

/** Whether this package is installed where a module would look for it. */
function canImportUs(path: string): boolean {
  try {
    process.getBuiltinModule("node:module").createRequire(path).resolve("catenary");
    return true;
  } catch {
    return false;
  }
}

/** The exports that may be served, in order of preference. */
const EXPORT_NAMES = ["default", "chain", "server"] as const;

/** How `findServer` recognizes a server: a handler, or a value that can be made one. */
export interface ServerRecognizer<Found> {
  /** The handler for a value; undefined if it is none. Under the usual names, any function may be a handler. */
  readonly toHandler: (value: unknown) => Found | undefined;
  /** Whether a value cannot be anything but a server or a chain, so that it is found under any name. */
  readonly isServer: (value: unknown) => boolean;
}

/**
 * The server, chain or other handler that a module exports: by one of the usual names, or else the only export that can
 * be served. Throws an Error that says why there is none, to be put after the name of the module.
 */
export function findServer<Found>(
  module: Readonly<Record<string, unknown>>,
  recognizer: ServerRecognizer<Found>,
): Found {
  const exported = exportObjects(module);
  for (const value of exported.flatMap((exports) => EXPORT_NAMES.map((name) => exports[name]))) {
    const handler = isClass(value) ? undefined : recognizer.toHandler(value);
    if (handler !== undefined) return handler;
  }
  const others = new Map<unknown, string>();
  const all = exported.flatMap((exports) => Object.entries(exports));
  for (const [name, value] of all) if (!isClass(value) && recognizer.isServer(value)) others.set(value, name);
  const [only, ...more] = others.keys();
  const handler = more.length === 0 ? recognizer.toHandler(only) : undefined;
  if (handler !== undefined) return handler;
  if (more.length > 0) {
    throw new Error(`exports several servers: ${[...others.values()].join(", ")}; export one of them as the default`);
  }
  const [unfinished] = all.find(([, value]) => isUnfinishedChain(value)) ?? [];
  if (unfinished !== undefined)
    throw new Error(`exports no server, only the chain \`${unfinished}\`, but ${NO_UPSTREAM}`);
  const isOfSdk = (value: unknown): boolean =>
    isObject(value) && ["connect", "close"].every((name) => typeof value[name] === "function");
  const [ofSdk] = all.find(([, value]) => isOfSdk(value)) ?? [];
  if (ofSdk !== undefined) {
    throw new Error(
      `exports no server, only \`${ofSdk}\`, which looks like a server of the official SDK; write: export default fromSdk(server)`,
    );
  }
  throw new Error(`exports no server; ${EXPECTED}`);
}

const EXPECTED = `write one of these, and do not call serve():
  export default createServer(...)
  export default chain(...).to(...)
  export const chain = ...; or \`server\`, or any other name if it is the only one`;

function isClass(value: unknown): boolean {
  return typeof value === "function" && /^class\b/.test(Function.prototype.toString.call(value));
}

/** The module and, if it is an object, its default export, which contains the exports of a CommonJS module. */
export function exportObjects(module: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>[] {
  const inner = module["default"];
  return typeof inner === "object" && inner !== null ? [module, inner as Record<string, unknown>] : [module];
}

/** How many modules are searched for a syntax error. */
const MAX_MODULES = 32;
const MAX_MODULE_BYTES = 16_777_216;

/**
 * Returns a more helpful error, or the same one. Node reports a syntax error in an ES module without file and line, so
 * the module and its imports are parsed again.
 */
export async function explainImportError(error: unknown, file: string): Promise<unknown> {
  if (!(error instanceof Error)) return error;
  if ((error as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND") return withTypeScriptName(error);
  // Our own errors, and Node's for a missing export, already start with the file.
  const hasLocation = /^(?:SyntaxError: )?(?:file:)?\/.*:\d+/.test(error.stack ?? "");
  if (!(error instanceof SyntaxError) || hasLocation) return error;
  return (await findSyntaxError(file, error)) ?? error;
}

/** Imports of a.ts are often written as `./a.js`, as the TypeScript compiler expects. Node needs the real name. */
function withTypeScriptName(error: Error & { readonly url?: unknown }): Error {
  if (typeof error.url !== "string" || !/^file:.*\.m?js$/.test(error.url)) return error;
  const source = fileURLToPath(error.url).replace(/js$/, "ts");
  if (!existsSync(source)) return error;
  return new Error(`${error.message}\nImport ${source} by its real name, with its own extension`, { cause: error });
}

/** The paths of the files that a module imports by a path or a file: URL, found without parsing it. */
export function localImports(source: string, file: string): string[] {
  const imports = source.matchAll(
    /\b(?:from|import|import\s*\(|require\s*\()\s*(["'`])(\.{1,2}|(?:\.{0,2}\/|file:)[^"'`\n]+)\1/g,
  );
  const specifiers = Array.from(imports, ([, quote, specifier = ""]) => ({ quote, specifier }));
  // A path that is computed is not known.
  const known = specifiers.filter(({ quote, specifier }) => quote !== "`" || !specifier.includes("${"));
  return known.flatMap(({ specifier }) => importedPaths(specifier, dirname(file)));
}

/** For `require`, a specifier is a path; for `import`, it is a URL, with escapes and a query. */
function importedPaths(specifier: string, folder: string): string[] {
  const path = localPath(specifier, folder);
  const base = pathToFileURL(`${folder}/`).href;
  if (!/[?#%]/.test(specifier) || !URL.canParse(specifier, base)) return [path];
  return [path, localPath(new URL(specifier, base).href, folder)];
}

/** The path that is meant by an absolute or relative path, or by a file: URL. */
export function localPath(specifier: string, folder: string): string {
  if (specifier.startsWith("file:")) {
    try {
      return fileURLToPath(specifier);
    } catch {
      // A URL of another host, or with an escaped slash, names no file.
    }
  }
  return resolve(folder, specifier);
}

async function findSyntaxError(entry: string, cause: SyntaxError): Promise<SyntaxError | undefined> {
  const modules = new Set([entry]);
  for (const file of modules) {
    if (modules.size > MAX_MODULES) return undefined;
    const source = (await readBounded(file, MAX_MODULE_BYTES).catch(() => undefined))?.toString();
    if (source === undefined) continue;
    const syntaxError = await syntaxErrorIn(file, source, cause);
    if (syntaxError !== undefined) return syntaxError;
    for (const imported of localImports(source, file)) modules.add(imported);
  }
  return undefined;
}

/** The error of Node with the location at which another parser finds a syntax error; undefined if it finds none. */
async function syntaxErrorIn(file: string, source: string, cause: SyntaxError): Promise<SyntaxError | undefined> {
  const { Parser } = createRequire(import.meta.url)("#acorn") as typeof import("acorn");
  let map: object | undefined;
  try {
    const compiled = isTypeScript(file) ? await compile(source, file) : undefined;
    map = compiled?.map;
    Parser.parse(compiled?.code ?? source, { ecmaVersion: "latest", sourceType: "module", allowHashBang: true });
    return undefined;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const { loc } = error as { readonly loc?: { readonly line: number; readonly column: number } };
    if (loc === undefined) return error;
    const origin = map && new SourceMap(map as SourceMapPayload).findEntry(loc.line - 1, loc.column);
    const [line, column] =
      origin && "originalLine" in origin ? [origin.originalLine + 1, origin.originalColumn] : [loc.line, loc.column];
    return syntaxError(cause.message, { file, line, column: column + 1 }, cause);
  }
}
