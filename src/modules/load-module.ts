// Imports a user's module (JavaScript or TypeScript), finds the handler that it exports, and explains why an import
// failed. If Node cannot import TypeScript itself, a module hook compiles it. The hook needs a thread, so it is
// registered only when the first TypeScript module is imported.

import { execFile } from "node:child_process";
import { access, readFile } from "node:fs/promises";
import { register, SourceMap, type SourceMapPayload } from "node:module";
import { dirname, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { errorMessage } from "../core/values.ts";
import { compile, isTypeScript, type SourceLocation, syntaxError } from "./typescript.ts";

let isHookRegistered = false;

/**
 * `file` is relative to the working directory. Rejects with the error that the module throws. If the module cannot be
 * parsed, rejects with a SyntaxError whose message starts with file, line and column.
 */
export async function loadModule(file: string): Promise<Record<string, unknown>> {
  const path = resolve(file);
  if (isTypeScript(path) && !canReadTypeScript()) {
    isHookRegistered = true;
    register("./typescript.js", import.meta.url);
  }
  try {
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>;
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

/** Whether TypeScript can be imported: by our hook, by Node, or by a loader that runs this file as TypeScript. */
function canReadTypeScript(): boolean {
  const { typescript } = process.features as { readonly typescript?: string | false };
  return isHookRegistered || (typescript ?? false) !== false || import.meta.url.endsWith(".ts");
}

/** The exports that may be served, in order of preference. */
const EXPORT_NAMES = ["default", "chain", "server"] as const;

type Callable = (...args: never[]) => unknown;

/** The server or other handler that a module exports. Every handler is a function. */
export function exportedFunction(module: Readonly<Record<string, unknown>>): Callable | undefined {
  return exportObjects(module)
    .flatMap((exports) => EXPORT_NAMES.map((name) => exports[name]))
    .find((value) => typeof value === "function") as Callable | undefined;
}

/** The module and, if it is an object, its default export, which contains the exports of a CommonJS module. */
export function exportObjects(module: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>[] {
  const inner = module["default"];
  return typeof inner === "object" && inner !== null ? [module, inner as Record<string, unknown>] : [module];
}

/** How many modules are searched for a syntax error; each needs a process. */
const MAX_MODULES = 32;
const CHECK_TIMEOUT_MS = 10_000;

/**
 * Returns a more helpful error, or the same one. Node reports a syntax error in an ES module without file and line, so
 * `node --check` checks the module and its imports again.
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
async function withTypeScriptName(error: Error & { readonly url?: unknown }): Promise<Error> {
  if (typeof error.url !== "string" || !/^file:.*\.m?js$/.test(error.url)) return error;
  const source = fileURLToPath(error.url).replace(/js$/, "ts");
  const exists = await access(source).then(
    () => true,
    () => false,
  );
  if (!exists) return error;
  return new Error(`${error.message}\nImport ${source} by its real name, with its own extension`, { cause: error });
}

async function findSyntaxError(entry: string, cause: SyntaxError): Promise<SyntaxError | undefined> {
  const modules = new Set([entry]);
  for (const file of modules) {
    if (modules.size > MAX_MODULES) return undefined;
    const source = await readFile(file, "utf8").catch(() => undefined);
    if (source === undefined) continue;
    const found = await syntaxErrorIn(file, source, cause);
    if (found !== undefined) return found;
    for (const [, specifier = ""] of source.matchAll(/\b(?:from|import)\s*["'](\.{1,2}\/[^"'\n]+)["']/g)) {
      modules.add(resolve(dirname(file), specifier));
    }
  }
  return undefined;
}

async function syntaxErrorIn(file: string, source: string, cause: SyntaxError): Promise<SyntaxError | undefined> {
  if (!isTypeScript(file)) return parseCheckOutput(await runNodeCheck(source), file, (location) => location, cause);
  try {
    const { code, map } = await compile(source, file);
    const sourceMap = new SourceMap(map as SourceMapPayload);
    const toSource = (location: SourceLocation): SourceLocation => {
      const found = sourceMap.findEntry(location.line - 1, location.column - 1);
      if (!("originalLine" in found)) return location;
      return { file, line: found.originalLine + 1, column: found.originalColumn + 1 };
    };
    return parseCheckOutput(await runNodeCheck(code), file, toSource, cause);
  } catch (error) {
    if (error instanceof SyntaxError) return error;
    throw error;
  }
}

/** The output of `node --check`; empty if the syntax is valid. */
function runNodeCheck(code: string): Promise<string> {
  return new Promise((done) => {
    const args = ["--check", "--input-type=module", "-"];
    // NODE_OPTIONS may preload modules, which could print to stderr.
    const env = { ...process.env, NODE_OPTIONS: "" };
    const child = execFile(process.execPath, args, { timeout: CHECK_TIMEOUT_MS, env }, (_error, _stdout, stderr) =>
      done(stderr),
    );
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(code);
  });
}

/** Parses `[stdin]:LINE`, the source line, a line with a caret at the column, and the error. */
function parseCheckOutput(
  output: string,
  file: string,
  toSource: (location: SourceLocation) => SourceLocation,
  cause: SyntaxError,
): SyntaxError | undefined {
  const [, line, indent, message] = /^\[stdin\]:(\d+)\n[^\n]*\n(\s*)\^[^]*?\nSyntaxError: (.*)$/m.exec(output) ?? [];
  if (line === undefined || indent === undefined || message === undefined) return undefined;
  return syntaxError(message, toSource({ file, line: Number(line), column: indent.length + 1 }), cause);
}
