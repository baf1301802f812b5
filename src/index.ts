// The main entry: the few names that most programs need. The rest is in the subpaths. `connect` and `serve` are loaded
// on first use, so that a server does not load the client code, and a client does not load the server code.

import type { Client } from "./client/client.ts";
import type { ToolsOf } from "./client/tool-types.ts";
import type { ConnectOptions, Target } from "./client/connect.ts";
import { checkStdio } from "./core/process-stdio.ts";
import type { EnvOf, EnvOption, OptionsWithEnv } from "./core/handler.ts";
import type { ServeHttpOptions } from "./http/server/mount.ts";
import type { Closeable, ServeOptions, Serving } from "./serve.ts";

/**
 * Connects to a URL, a command, a handler or a transport, in the newest MCP revision that both sides support. `Of` types
 * the tools: `typeof server`, or declarations that `catenary types` wrote.
 *
 * @example
 * const client = await connect<typeof server>("http://127.0.0.1:3000/mcp");
 */
export async function connect<Of = unknown>(
  target: Target,
  options?: ConnectOptions & { readonly env?: EnvOf<Of> | undefined },
): Promise<Client<ToolsOf<Of> & object>> {
  return (await import("./client/connect.ts")).connect<Of>(target, options);
}

/** Serves a server, or any other handler, on stdio or over HTTP. Resolves when it accepts messages. */
export function serve<Of extends Closeable>(
  handler: Of,
  options: ServeOptions & EnvOption<Of> & { readonly http: ServeHttpOptions },
): Promise<Serving & { readonly url: string }>;
export function serve<Of extends Closeable>(
  handler: Of,
  ...options: OptionsWithEnv<Of, ServeOptions>
): Promise<Serving>;
export async function serve(handler: Closeable, options?: ServeOptions): Promise<Serving> {
  // Here, and not only after the import: the command that loads a module must learn at once that the module serves itself.
  if (options?.http === undefined && options?.stdio === undefined) checkStdio();
  return (await import("./serve.ts")).serve(handler, options);
}

export { chain } from "./chain/chain.ts";
export { fromSdk } from "./chain/upstream/from-sdk.ts";
export { upstream } from "./chain/upstream/upstream.ts";
export { ConnectionError, UserError } from "./core/errors.ts";
export { McpError } from "./protocol/errors.ts";
export { createServer } from "./server/server.ts";
export { defineTool } from "./server/tools.ts";

// Every type that these functions take or return, and every type in the members of those: a project that emits
// declarations must be able to name what the compiler infers for its exports.
export type * from "./chain/types.ts";
export type * from "./client/types.ts";
export type * from "./server/types.ts";
export type { ParkedCallsOptions } from "./dialogue/stateless/parked-calls.ts";
export type { HttpLimits } from "./http/server/fields.ts";
export type { Health } from "./http/server/options.ts";
export type { Compat } from "./protocol/compat.ts";
export type { ServeHttpOptions, ServeOptions, Serving };
