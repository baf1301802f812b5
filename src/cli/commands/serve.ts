// `catenary serve MODULE`: a module's server on this process's stdio, or over HTTP. The command line is read here
// and nowhere else; what it says to the person goes to stderr, and only `--json` puts a line on stdout.

import { LinkError } from "../../core/errors.ts";
import { textOf } from "../../core/text.ts";
import { serve, STDIO_TAKEN, takeStdio, type Closeable, type ServeOptions, type Serving } from "../../serve.ts";
import { FORMS, parseAddress, type Address } from "../address.ts";
import { readyLines, warningLines } from "../announcement.ts";
import { UnreachableError, UsageError } from "../exit-codes.ts";
import { parseFlags } from "../flags.ts";
import type { Command } from "../main.ts";
import { loadHandler, ownServing } from "../module.ts";
import { fail, say } from "../output.ts";
import { DRAIN_MS, endAtSignal } from "../shutdown.ts";

const HELP = `Usage: catenary serve MODULE [--stdio | --http HOST:PORT] [OPTIONS]

Serves what MODULE exports: a server made by createServer, or any other handler
(request, context) => Promise<Result>. It may be the default export, or be called \`server\`
or \`chain\`. The module must not call serve() itself.

  --stdio                on stdin and stdout; this is the default
  --http HOST:PORT       over HTTP; also :PORT, PORT, [::1]:PORT, or HOST alone (port 3000);
                         port 0 takes any that is free
  --sequential           take one request at a time and answer in order

With --http:
  --path PATH            the path of the endpoint; /mcp
  --allow-host NAME      a name in the Host header that is answered to; may be given several times
  --allow-origin ORIGIN  a web page's origin, such as https://app.example, that may call; likewise
  --json                 one line of JSON on stdout when it is ready: {"url": ...}

  SIGTERM and SIGINT close it: calls that are under way have 30 s; a second signal ends it at once.

Exit codes: 0, 130 after SIGINT, 1 where the command line or the module is wrong,
2 where there is no such module, 4 where the address cannot be listened on.
`;

const OPTIONS = {
  stdio: { type: "boolean" },
  sequential: { type: "boolean" },
  http: { type: "string" },
  path: { type: "string" },
  "allow-host": { type: "string", multiple: true },
  "allow-origin": { type: "string", multiple: true },
  json: { type: "boolean" },
} as const;

interface Wanted {
  readonly module: string;
  readonly connection: Pick<ServeOptions, "ordering">;
  /** Absent for stdio. */
  readonly http?: Address & NonNullable<ServeOptions["http"]>;
  readonly json: boolean;
}

function read(args: readonly string[]): Wanted {
  const { positionals, values } = parseFlags("serve", args, OPTIONS, { http: `an address: ${FORMS}` });
  const [module, ...more] = positionals;
  if (module === undefined || more.length > 0) throw new UsageError(`serve takes one MODULE\n\n${HELP}`);
  const { http, path, "allow-host": allowedHosts, "allow-origin": allowedOrigins } = values;
  const wanted: Wanted = {
    module,
    connection: values.sequential === true ? { ordering: "sequential" } : {},
    json: values.json === true,
  };
  if (http === undefined) {
    const stray = (["path", "allow-host", "allow-origin", "json"] as const).find((name) => values[name] !== undefined);
    if (stray !== undefined) throw new UsageError(`--${stray} goes with --http HOST:PORT`);
    return wanted;
  }
  if (values.stdio === true) throw new UsageError("--stdio or --http: one of them, not both");
  if (path !== undefined && !path.startsWith("/")) throw new UsageError(`--path ${path} must begin with a slash`);
  return {
    ...wanted,
    http: {
      ...parseAddress(http),
      ...(path === undefined ? undefined : { path }),
      ...(allowedHosts === undefined ? undefined : { allowedHosts }),
      ...(allowedOrigins === undefined ? undefined : { allowedOrigins }),
    },
  };
}

/** The stdio is ours while a module is loaded: it would be served twice, or with no end to it. Returns what ends that. */
function keepStdio(module: string): () => void {
  const refusal = ownServing(module);
  const release = takeStdio(refusal);
  // A module that does not wait for its serve() does not hear that it is refused.
  process.once("unhandledRejection", (error) => {
    if (![refusal, STDIO_TAKEN].includes(textOf(error))) throw error;
    fail(new UsageError(refusal));
  });
  return release;
}

async function listen(handler: Closeable, { http, connection }: Wanted): Promise<Serving> {
  if (http === undefined) return serve(handler, connection);
  try {
    return await serve(handler, { ...connection, graceMs: DRAIN_MS, http });
  } catch (error) {
    const isRefused = error instanceof LinkError && error.kind === "refused";
    throw isRefused ? new UnreachableError(error.message, { cause: error }) : error;
  }
}

export const serveCommand: Command = {
  help: HELP,
  async run(args) {
    const wanted = read(args);
    const release = keepStdio(wanted.module);
    const handler = await loadHandler(wanted.module);
    // Over HTTP it is never left to others: the end of input would be the end of a process that does not read it.
    if (wanted.http === undefined) release();
    const serving = await listen(handler, wanted);
    const { url } = serving;
    if (url === undefined || wanted.http === undefined) return undefined;
    endAtSignal(() => serving.close());
    const ready = { url, module: wanted.module, host: wanted.http.host };
    if (wanted.json) process.stdout.write(`${JSON.stringify({ url })}\n`);
    else readyLines(ready).forEach(say);
    warningLines(ready).forEach(say);
    return undefined;
  },
};
