// Why a module could not be imported, with the place of the fault. Node says of a syntax error in an ES module neither
// file nor line to those who import it; so the module, and those that it imports, are read once more, by a Node that
// only looks at the syntax.

import { execFile } from "node:child_process";
import { access, readFile } from "node:fs/promises";
import { SourceMap, type SourceMapPayload } from "node:module";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { compile, isTypeScript, syntaxFault, type Place } from "./typescript.ts";

/** Modules that are looked through for a syntax error; each takes the start of a process. */
const MOST_MODULES = 32;
const CHECK_MS = 10_000;

/** The same fault, or a better one. */
export async function explained(error: unknown, file: string): Promise<unknown> {
  if (!(error instanceof Error)) return error;
  if ((error as NodeJS.ErrnoException).code === "ERR_MODULE_NOT_FOUND") return withOtherName(error);
  // Those that name their file: ours, and Node's for a name that is not exported.
  const isPlaced = /^(?:SyntaxError: )?(?:file:)?\/.*:\d+/.test(error.stack ?? "");
  if (!(error instanceof SyntaxError) || isPlaced) return error;
  return (await firstFault(file, error)) ?? error;
}

/** The compiler of TypeScript wants `./a.js` for what is in a.ts; Node wants the name of the file. */
async function withOtherName(error: Error & { readonly url?: unknown }): Promise<Error> {
  if (typeof error.url !== "string" || !/^file:.*\.m?js$/.test(error.url)) return error;
  const written = fileURLToPath(error.url).replace(/js$/, "ts");
  const isThere = await access(written).then(
    () => true,
    () => false,
  );
  if (!isThere) return error;
  return new Error(`${error.message}\nThere is ${written}: import it by that name, .ts and all`, { cause: error });
}

async function firstFault(entry: string, cause: SyntaxError): Promise<SyntaxError | undefined> {
  const modules = new Set([entry]);
  for (const file of modules) {
    if (modules.size > MOST_MODULES) return undefined;
    const source = await readFile(file, "utf8").catch(() => undefined);
    if (source === undefined) continue;
    const fault = await faultIn(file, source, cause);
    if (fault !== undefined) return fault;
    for (const [, specifier = ""] of source.matchAll(/\b(?:from|import)\s*["'](\.{1,2}\/[^"'\n]+)["']/g)) {
      modules.add(resolve(dirname(file), specifier));
    }
  }
  return undefined;
}

async function faultIn(file: string, source: string, cause: SyntaxError): Promise<SyntaxError | undefined> {
  if (!isTypeScript(file)) return placed(await check(source), file, (place) => place, cause);
  try {
    const { code, map } = await compile(source, file);
    const lookUp = new SourceMap(map as SourceMapPayload);
    const written = (place: Place): Place => {
      const found = lookUp.findEntry(place.line - 1, place.column - 1);
      if (!("originalLine" in found)) return place;
      return { file, line: found.originalLine + 1, column: found.originalColumn + 1 };
    };
    return placed(await check(code), file, written, cause);
  } catch (error) {
    if (error instanceof SyntaxError) return error;
    throw error;
  }
}

/** What Node says of the syntax: empty where there is nothing to say. */
function check(code: string): Promise<string> {
  return new Promise((say) => {
    const args = ["--check", "--input-type=module", "-"];
    // Without what our own Node was told, which may be to load something first.
    const env = { ...process.env, NODE_OPTIONS: "" };
    const child = execFile(process.execPath, args, { timeout: CHECK_MS, env }, (_error, _stdout, stderr) =>
      say(stderr),
    );
    child.stdin?.on("error", () => undefined);
    child.stdin?.end(code);
  });
}

/** From `[stdin]:LINE`, the line itself, a line with a mark below the place, and the error. */
function placed(
  said: string,
  file: string,
  written: (place: Place) => Place,
  cause: SyntaxError,
): SyntaxError | undefined {
  const [, line, mark, what] = /^\[stdin\]:(\d+)\n[^\n]*\n(\s*)\^[^]*?\nSyntaxError: (.*)$/m.exec(said) ?? [];
  if (line === undefined || mark === undefined || what === undefined) return undefined;
  return syntaxFault(what, written({ file, line: Number(line), column: mark.length + 1 }), cause);
}
