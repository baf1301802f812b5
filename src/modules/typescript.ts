// TypeScript into JavaScript, for a Node that does not read it by itself: types are taken out, and lines stay where
// they are. Nothing is checked but the syntax. It runs on the thread of the module hooks too, so it keeps no state.

import { basename } from "node:path";

export interface Compiled {
  /** With its source map inside, so that debuggers and `--enable-source-maps` show columns as they were written. */
  readonly code: string;
  readonly map: object;
}

/** What is loaded as TypeScript; `.cts` is not, because it is no ES module. */
export function isTypeScript(path: string): boolean {
  return /\.m?ts$/.test(path);
}

/** Throws a SyntaxError that begins with file, line and column. */
export async function compile(source: string, file: string): Promise<Compiled> {
  const { transform } = await import("sucrase");
  try {
    const { code, sourceMap } = transform(source, {
      transforms: ["typescript"],
      filePath: file,
      sourceMapOptions: { compiledFilename: basename(file) },
      // Everything that is JavaScript already is left as it is written.
      disableESTransforms: true,
      preserveDynamicImport: true,
    });
    const map = { ...sourceMap, sources: [file], sourcesContent: [source] };
    const inline = Buffer.from(JSON.stringify(map)).toString("base64");
    return { code: `${code}\n//# sourceMappingURL=data:application/json;base64,${inline}\n`, map };
  } catch (error) {
    throw located(error, file);
  }
}

/** The compiler names the file at the beginning of its sentence and the place at the end. */
function located(error: unknown, file: string): unknown {
  const begin = `Error transforming ${file}: `;
  if (!(error instanceof Error) || !error.message.startsWith(begin)) return error;
  const [, what, line, column] = /^(.*) \((\d+):(\d+)\)$/s.exec(error.message.slice(begin.length)) ?? [];
  if (what === undefined) return error;
  return syntaxFault(what, { file, line: Number(line), column: Number(column) }, error);
}

export interface Place {
  readonly file: string;
  readonly line: number;
  readonly column: number;
}

export function syntaxFault(what: string, { file, line, column }: Place, cause: unknown): SyntaxError {
  const fault = new SyntaxError(`${file}:${line}:${column}: ${what}`, { cause });
  // Where we noticed it is of no use to the author.
  fault.stack = `SyntaxError: ${fault.message}`;
  return fault;
}
