// `catenary read TARGET URI`: what stands at one address. A single text, or a single file to a pipe, comes out byte for
// byte, so that it can be piped on; bytes never go to a terminal.

import { isTerminal } from "../terminal/harmless.ts";
import { ConnectionError } from "../../core/errors.ts";
import { McpError } from "../../protocol/errors.ts";
import type { ReadResourceResult, ResourceContents } from "../../protocol/model/index.ts";
import { bytesOf, showContents, type Showing } from "../show/content.ts";
import { errand } from "../target/errand.ts";
import { EXIT, NotFoundError, UsageError } from "../exit-codes.ts";
import { reporting } from "../show/failure.ts";
import type { Command } from "../main.ts";
import { sound, surplus } from "../target/names.ts";
import { printBytes, printJson, printRaw } from "../terminal/print.ts";
import { destination, SAVE_FLAGS, Saver } from "../show/saving.ts";
import { EXIT_HELP, readLine, TARGET_HELP } from "../target/target.ts";

const USAGE = `Usage: catenary read TARGET URI [OPTIONS]
       catenary read URI [OPTIONS] -- COMMAND ARGS...
`;

const HELP = `${USAGE}
Reads a resource. A text goes to stdout as it is, and so do bytes where stdout is no terminal.
Of several parts, texts go to stdout and the others to files, on request. With --json: the result.

Files:
  --output FILE          write what was read to this file, text or bytes
  --save DIR             write each part to a file of its own in this folder
  --force                replace files that are there already

${TARGET_HELP}
${EXIT_HELP}`;

const INVALID_PARAMS = -32602;

async function run(args: readonly string[]): Promise<number> {
  const wanted = readLine("read", args, SAVE_FLAGS, USAGE);
  const { values, words } = wanted;
  const [uri, ...more] = words;
  if (uri === undefined) throw new UsageError(`read needs a URI\n\n${USAGE}`);
  if (more.length > 0) throw surplus("read", more, USAGE);
  const saver = new Saver(await destination(values));
  return errand(wanted, async ({ client, call, busy, note, done }) => {
    if (client.capabilities["resources"] === undefined) throw new NotFoundError("The server has no resources");
    busy(`Reading ${uri}`);
    const result = await client.readResource(uri, call).catch((error: unknown) => {
      throw asNotFound(uri, error);
    });
    done();
    if (values.json === true) printJson(result);
    else await show(uri, result, { saver, note });
    return EXIT.ok;
  });
}

/** The address is all that can be wrong with the params of a read. */
function asNotFound(uri: string, error: unknown): unknown {
  if (!(error instanceof McpError) || error.code !== INVALID_PARAMS) return error;
  return new NotFoundError(`There is no resource ${uri}: ${error.message}`, { cause: error });
}

async function show(uri: string, { contents }: ReadResourceResult, showing: Showing): Promise<void> {
  const parts = sound<ResourceContents>(contents, "uri");
  const { saver, note } = showing;
  const [only] = parts;
  if (only === undefined) throw new NotFoundError(`${uri} is there, but there is nothing in it`);
  // An empty file would pass for what was asked for.
  if (parts.every((part) => bytesOf(part) === undefined)) {
    throw new ConnectionError("protocol", `What came of ${uri} is neither a text nor base64`);
  }
  if (saver.isWanted) {
    for (const part of parts) {
      const bytes = bytesOf(part);
      if (bytes === undefined) note(`${part.uri}: its data is not base64, and is left out`);
      else note(`${part.uri}: written to ${await saver.save(bytes, part.uri, part.mimeType)}`);
    }
  } else if (parts.length > 1) for (const part of parts) await showContents(part, showing);
  else if ("text" in only && typeof only.text === "string") printRaw(only.text);
  else if (isTerminal(process.stdout)) await showContents(only, showing);
  else printBytes(bytesOf(only) ?? Buffer.alloc(0));
}

export const readCommand: Command = { help: HELP, run: (args) => reporting(args, () => run(args)) };
