// `catenary serve MODULE`: a module's server on this process's stdio.

import { stat } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { textOf } from "../../core/text.ts";
import { serve, type Closeable } from "../../serve.ts";
import { NotFoundError, UsageError } from "../exit-codes.ts";
import type { Command } from "../main.ts";

const HELP = `Usage: catenary serve MODULE [--stdio] [--sequential]

Serves what MODULE exports (its default export, or \`server\`) on stdin and stdout:
a server made by createServer, or any handler (request, context) => Promise<Result>.

  --stdio       stdin and stdout; this is the default
  --sequential  take one request at a time and answer in order
`;

async function load(path: string): Promise<Closeable> {
  const file = resolve(path);
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) throw new NotFoundError(`There is no module ${path}`);
  if (!found.isFile()) throw new UsageError(`${path} is no file; name the module itself, such as ./server.js`);
  let module: Record<string, unknown>;
  try {
    module = (await import(pathToFileURL(file).href)) as Record<string, unknown>;
  } catch (error) {
    throw new UsageError(`Cannot load ${path}: ${reason(error)}`);
  }
  const handler = module["default"] ?? module["server"];
  if (typeof handler !== "function") {
    const advice = "export one made by createServer as the default, or as `server`, and leave serve() to this command";
    throw new UsageError(`${path} exports no server: ${advice}`);
  }
  return handler as Closeable;
}

/** A fault of the module is its author's to find: with its place. */
function reason(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ((error as NodeJS.ErrnoException).code === "ERR_UNKNOWN_FILE_EXTENSION") {
    return `${error.message}\nThis Node cannot read it as it is: compile it first, or run it with \`node --import tsx\``;
  }
  return error.stack ?? error.message;
}

export const serveCommand: Command = {
  summary: "serve a module's server on stdio",
  help: HELP,
  async run(args) {
    let parsed;
    try {
      parsed = parseArgs({
        args: [...args],
        allowPositionals: true,
        options: { stdio: { type: "boolean" }, sequential: { type: "boolean" } },
      });
    } catch (error) {
      throw new UsageError(`${textOf(error)}\n\n${HELP}`);
    }
    const [path, ...more] = parsed.positionals;
    if (path === undefined || more.length > 0) throw new UsageError(`serve takes one MODULE\n\n${HELP}`);
    await serve(await load(path), parsed.values.sequential === true ? { ordering: "sequential" } : {});
    return undefined;
  },
};
