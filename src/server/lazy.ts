// A server whose tools are found out at the first request, for servers that have to read something first: the help of
// programs, an OpenAPI document. A failure is the answer to that request, and the next one tries again.

import { ConnectionError } from "../core/errors.ts";
import type { Handler } from "../core/handler.ts";
import type { Server } from "./server.ts";

/** A handler that can be closed. */
export interface ClosableHandler extends Handler {
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

export interface LazyServerOptions {
  readonly server: Server;
  /** Used in the error after closing: "The server of NAME was closed". */
  readonly name: string;
  /** Registers the tools. The signal is aborted when the server is closed. */
  readonly fill: (closing: AbortSignal) => Promise<void>;
  /** Ends what still runs, once the server is closed. */
  readonly end?: (reason: unknown) => Promise<unknown>;
}

export function lazyServer({ server, name, fill, end }: LazyServerOptions): ClosableHandler {
  const closing = new AbortController();
  const closedError = (): ConnectionError =>
    new ConnectionError("closed", `The server of ${name} was closed`, { mayHaveRun: false });
  let filling: Promise<void> | undefined;
  let isFilled = false;
  const fillOnce = (): Promise<void> => {
    filling ??= fill(closing.signal).then(
      () => void (isFilled = true),
      (error: unknown) => {
        filling = undefined;
        throw error;
      },
    );
    return filling;
  };
  const handler: Handler = (request, context) => {
    if (closing.signal.aborted) return Promise.reject(closedError());
    return isFilled ? server(request, context) : fillOnce().then(() => server(request, context));
  };
  const close = async (): Promise<void> => {
    closing.abort(closedError());
    await Promise.allSettled([filling, server.close(), end?.(closing.signal.reason)]);
  };
  return Object.defineProperties(handler, {
    close: { value: close },
    [Symbol.asyncDispose]: { value: close },
  }) as ClosableHandler;
}
