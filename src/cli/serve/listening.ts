// A handler on its wire, as the commands serve it, and what goes wrong there in words for the person. Who is let in is
// decided in admission.ts.

import { ConnectionError } from "../../core/errors.ts";
import { serve, type Closeable, type ServeOptions, type Serving } from "../../serve.ts";
import { readyLines, warningLines, type Ready } from "./announcement.ts";
import { UnreachableError } from "../exit-codes.ts";
import { say } from "../terminal/output.ts";
import { DRAIN_MS, endAtSignal } from "./shutdown.ts";

/** After the end of input: what stands behind a gateway may have to be started first for what was asked. */
export const GATEWAY_GRACE_MS = 2_500;

export async function listen(handler: Closeable, options: ServeOptions): Promise<Serving> {
  const { http } = options;
  if (http === undefined) return serve(handler, options);
  try {
    return await serve(handler, { graceMs: DRAIN_MS, ...options, http });
  } catch (error) {
    const isRefused = error instanceof ConnectionError && error.kind === "refused";
    throw isRefused ? new UnreachableError(error.message, { cause: error }) : error;
  }
}

/** It listens over HTTP: that is told to the person, or to a program as `json`, and signals end it from now on. */
export function announce(serving: Serving, ready: Ready, json: object | undefined, ends?: string): void {
  endAtSignal(() => serving.close());
  const [where = "", ...entry] = readyLines(ready);
  const lines = json === undefined ? [where, ...(ends === undefined ? [] : [ends]), ...entry] : [];
  for (const line of [...lines, ...warningLines(ready)]) say(line);
  if (json === undefined) return;
  const { token } = ready;
  process.stdout.write(`${JSON.stringify({ ...json, ...(token === undefined ? undefined : { token }) })}\n`);
}
