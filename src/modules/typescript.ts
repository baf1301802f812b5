// Compiles TypeScript for versions of Node that cannot load it: removes types and keeps every line in place. Only the
// syntax is checked. Node also loads this file as a module hook, on a separate thread, so it has no state.

import { readFile } from "node:fs/promises";
import type { LoadHook } from "node:module";
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

/** `.cts` is excluded, since it is not an ES module. */
export function isTypeScript(path: string): boolean {
  return /\.m?ts$/.test(path);
}

/** If the syntax is invalid, rejects with a SyntaxError whose message starts with file, line and column. */
export async function compile(source: string, file: string): Promise<Compiled> {
  const { transform } = await import("sucrase");
  try {
    const { code, sourceMap } = transform(source, {
      transforms: ["typescript"],
      filePath: file,
      sourceMapOptions: { compiledFilename: basename(file) },
      // Leave JavaScript as it is.
      disableESTransforms: true,
      preserveDynamicImport: true,
    });
    const map = { ...sourceMap, sources: [file], sourcesContent: [source] };
    const inline = Buffer.from(JSON.stringify(map)).toString("base64");
    return { code: `${code}\n//# sourceMappingURL=data:application/json;base64,${inline}\n`, map };
  } catch (error) {
    throw withLocation(error, file);
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
