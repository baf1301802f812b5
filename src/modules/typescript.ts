// Compiles TypeScript: removes types, also those that Node's own loader refuses (enums, namespaces, parameter
// properties), and keeps every line in place. Only the syntax is checked. Node also loads this file as a module hook, on
// a separate thread, so it has no state. As a hook, it also lets modules find this package where it is not installed.

import { readFile } from "node:fs/promises";
import { createRequire, type LoadHook, type ResolveHook } from "node:module";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";

export interface Compiled {
  /** With an inline source map, so that debuggers and `--enable-source-maps` show the original columns. */
  readonly code: string;
  readonly map: object;
}

/** The module hook of Node: compiles TypeScript and passes everything else on. */
export const load: LoadHook = async (url, context, next) => {
  const file = url.startsWith("file:") ? fileURLToPath(url) : "";
  if (!isTypeScript(file)) return next(url, context);
  const { code } = await compile(await readFile(file, "utf8"), file);
  return { format: "module", source: code, shortCircuit: true };
};

/**
 * The module hook of Node: a module that cannot find this package beside it, as after a global install, gets the one that
 * loads it. Self-reference does that: to Node, the import then comes from a file of this package.
 */
export const resolve: ResolveHook = async (specifier, context, next) => {
  if (!/^catenary(?:\/|$)/.test(specifier)) return next(specifier, context);
  try {
    return await next(specifier, context);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    return next(specifier, { ...context, parentURL: import.meta.url });
  }
};

/** `.cts` is excluded, since it is not an ES module. */
export function isTypeScript(path: string): boolean {
  return /\.m?ts$/.test(path);
}

/** If the syntax is invalid, rejects with a SyntaxError whose message starts with file, line and column. */
export async function compile(source: string, file: string): Promise<Compiled> {
  const sucrase = createRequire(import.meta.url)("#sucrase") as Sucrase;
  const transformed = hasNamespace(source, sucrase) ? await compileNamespaces(source, file) : undefined;
  if (transformed !== undefined) return withMap(transformed.code, { ...transformed.map, sourcesContent: [source] });
  try {
    const { code, sourceMap } = sucrase.transform(source, {
      transforms: ["typescript"],
      filePath: file,
      sourceMapOptions: { compiledFilename: basename(file) },
      // Leave JavaScript as it is.
      disableESTransforms: true,
      preserveDynamicImport: true,
    });
    return withMap(code, { ...sourceMap, sources: [file], sourcesContent: [source] });
  } catch (error) {
    throw withLocation(error, file);
  }
}

function withMap(code: string, map: object): Compiled {
  const inline = Buffer.from(JSON.stringify(map)).toString("base64");
  return { code: `${code}\n//# sourceMappingURL=data:application/json;base64,${inline}\n`, map };
}

interface Token {
  readonly start: number;
  readonly end: number;
  readonly type: number;
  /** Whether sucrase takes it for a type, and drops it. */
  readonly isType: boolean;
}

/** What we use of sucrase, which is a file of this package (build.js), since it would install fifteen others. */
type Sucrase = typeof import("sucrase") & {
  readonly parse: (
    source: string,
    ...flags: [jsx: boolean, typeScript: boolean, flow: boolean]
  ) => { readonly tokens: readonly Token[] };
};

/** Whether sucrase would drop a namespace: two names in a row, of which the first is the keyword. */
function hasNamespace(source: string, { parse }: Sucrase): boolean {
  if (!/\b(?:namespace|module)\b/.test(source)) return false;
  try {
    const { tokens } = parse(source, false, true, false);
    return tokens.some(({ start, end, type, isType }, at) => {
      const isKeyword = isType && /^(?:namespace|module)$/.test(source.slice(start, end));
      return isKeyword && tokens[at + 1]?.type === type;
    });
  } catch {
    // The other compiler may know this syntax.
    return true;
  }
}

type Transform = (source: string, options: object) => { readonly code: string; readonly map?: string };

/**
 * Compiles a module with namespaces with the compiler of Node. It moves lines, and takes longer to load, so it is used for
 * nothing else. Returns undefined if the syntax is not valid: sucrase says where.
 */
async function compileNamespaces(source: string, file: string): Promise<Compiled | undefined> {
  // @ts-expect-error -- the version for the oldest supported Node has no types
  const { transformSync } = (await import("amaro")) as { transformSync: Transform };
  try {
    const { code, map } = transformSync(source, { mode: "transform", sourceMap: true, filename: file });
    return { code, map: JSON.parse(map ?? "{}") as object };
  } catch {
    return undefined;
  }
}

/** The compiler's message has the file at its start and the position at its end. */
function withLocation(error: unknown, file: string): unknown {
  const start = `Error transforming ${file}: `;
  if (!(error instanceof Error) || !error.message.startsWith(start)) return error;
  const [, message, line, column] = /^(.*) \((\d+):(\d+)\)$/s.exec(error.message.slice(start.length)) ?? [];
  if (message === undefined) return error;
  return syntaxError(message, { file, line: Number(line), column: Number(column) }, error);
}

export interface SourceLocation {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

export function syntaxError(message: string, { file, line, column }: SourceLocation, cause: unknown): SyntaxError {
  const error = new SyntaxError(`${file}:${line}:${column}: ${message}`, { cause });
  // Our own stack is of no use to the author of the module.
  error.stack = `SyntaxError: ${error.message}`;
  return error;
}
