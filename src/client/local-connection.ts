// Connects a client to a handler in this process: no transport, and only the newest revision. It does the work of both
// sides of a connection: it checks params, drops notifications that were not asked for, applies timeouts, and ends an
// aborted call on both sides at once.

import { CancelToken } from "../core/cancel.ts";
import { ConnectionError } from "../core/errors.ts";
import {
  type Context,
  type Handler,
  levelRank,
  type Notification,
  type Request,
  type Result,
} from "../core/handler.ts";
import { isObject } from "../core/values.ts";
import type { ResponseMessage } from "../jsonrpc/message.ts";
import { type PendingCall, PendingCalls } from "../dialogue/calls/pending-calls.ts";
import type { ServerConnection, ServerConnectionOptions } from "../dialogue/connect.ts";
import { checkClientRequest } from "../protocol/client-requests.ts";
import { toMcpError } from "../protocol/errors.ts";
import { checkParams } from "../protocol/params.ts";
import { isVendorMethod, NEWEST } from "../protocol/revisions/index.ts";

/** Closing the connection does not close the handler. */
export async function openHandler(
  target: Handler,
  { defaultContext, timeouts }: Pick<ServerConnectionOptions, "defaultContext" | "timeouts">,
): Promise<ServerConnection> {
  const calls = new PendingCalls("The handler", timeouts);
  const close = (): void => calls.close(new ConnectionError("closed", "The connection was closed"));
  const handler: Handler = async (request, context) => {
    const call = calls.open(request.method, context);
    return call.answeredBy(runHandler(target, request, call));
  };
  let discovered: Result;
  try {
    discovered = await handler({ method: "server/discover", params: {} }, defaultContext);
  } catch (error) {
    close();
    throw error;
  }
  return {
    handler,
    revision: NEWEST,
    discovered,
    attributesRequests: true,
    ended: (signal) => calls.ended(signal),
    close: async () => close(),
  };
}

/** Turns errors into those that a client would get over a connection. */
async function runHandler(target: Handler, request: Request, call: PendingCall): Promise<ResponseMessage> {
  const { method, params } = request;
  checkParams(method, params);
  let result: unknown;
  try {
    result = await target(request, innerContext(call, request));
  } catch (error) {
    throw error instanceof ConnectionError ? error : toMcpError(error);
  }
  if (!isObject(result)) {
    throw new ConnectionError("protocol", `The handler's answer to ${method} is not an object`);
  }
  return { jsonrpc: "2.0", id: call.id, result };
}

function innerContext(call: PendingCall, { params }: Request): Context {
  const { context } = call;
  const stop = new CancelToken();
  const onStop = (reason: unknown): void => stop.abort(reason);
  call.onStop = onStop;
  const progressToken = params._meta?.["progressToken"];
  const minLevel = context.logLevel === undefined ? Infinity : levelRank(context.logLevel);
  const notify = (notification: Notification): void => {
    if (call.isOver) return;
    const { method, params } = notification;
    if (method === "notifications/progress") {
      if (progressToken === undefined) return;
      call.touch();
      context.notify({ method, params: { ...params, progressToken } });
    } else if (method !== "notifications/message" || levelRank(params?.["level"]) >= minLevel) {
      context.notify(notification);
    }
  };
  const ask: Context["ask"] = async (request, options) => {
    if (!isVendorMethod(request.method)) checkClientRequest(request, context.caller.capabilities);
    call.onWait(true);
    try {
      return await context.ask(request, options);
    } finally {
      call.onWait(false);
    }
  };
  return { ...context, signal: stop.signal, notify, ask };
}
