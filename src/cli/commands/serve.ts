// `catenary serve MODULE`: a module's server on this process's stdio.

import { access } from "node:fs/promises";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
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
  await access(file).catch(() => {
    throw new NotFoundError(`There is no module ${path}`);
  });
  const module = (await import(pathToFileURL(file).href)) as Record<string, unknown>;
  const handler = module["default"] ?? module["server"];
  if (typeof handler !== "function") {
    throw new UsageError(`${path} exports no server: export one made by createServer as the default, or as \`server\``);
  }
  return handler as Closeable;
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
      throw new UsageError(`${error instanceof Error ? error.message : String(error)}\n\n${HELP}`);
    }
    const [path, ...more] = parsed.positionals;
    if (path === undefined || more.length > 0) throw new UsageError(`serve takes one MODULE\n\n${HELP}`);
    await serve(await load(path), parsed.values.sequential === true ? { ordering: "sequential" } : {});
    return undefined;
  },
};
