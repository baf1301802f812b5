// Serves the stateless style over HTTP: each POST is one self-contained request. Its headers must agree with its body,
// some errors have their own status, and a disconnect cancels the request. Only parked calls are kept between requests:
// their handlers wait until the client retries the request with the input that it was asked for.

import { ignoreRejection } from "../../core/async.ts";
import type { FairLimit } from "../../core/budgets.ts";
import type { Caller, Context, Handler, Request, Result } from "../../core/handler.ts";
import { isObject } from "../../core/values.ts";
import { cancellationError } from "../../dialogue/calls/errors.ts";
import { InFlightCalls, runRequest, SETTLE_MS } from "../../dialogue/calls/in-flight.ts";
import type { InFlightCall } from "../../dialogue/calls/in-flight.ts";
import { StatelessFront } from "../../dialogue/stateless/front.ts";
import type { StatelessFrontOptions } from "../../dialogue/stateless/front.ts";
import { ParkedCalls } from "../../dialogue/stateless/parked-calls.ts";
import type { ParkedCallsOptions } from "../../dialogue/stateless/parked-calls.ts";
import { encode } from "../../jsonrpc/codec.ts";
import { isNotification, isResponse } from "../../jsonrpc/message.ts";
import type { Message, NotificationMessage, RequestMessage, ResponseMessage } from "../../jsonrpc/message.ts";
import { McpError } from "../../protocol/errors.ts";
import { LIST_CAPABILITIES } from "../../protocol/lists.ts";
import { readEnvelope } from "../../protocol/params.ts";
import type { Envelope } from "../../protocol/params.ts";
import { isVendorMethod } from "../../protocol/revisions/index.ts";
import { isTasksNotDeclared, TASKS_EXTENSION } from "../../protocol/tasks.ts";
import type { Inbound } from "../../transport/transport.ts";
import { checkHeaders } from "../headers.ts";
import { errorResponse, neverAbortedSignal, statusOf, takePlace } from "./admission.ts";
import type { Release, SharedLimits } from "./admission.ts";
import { encodeResponse, formatEvent } from "./reply.ts";
import type { Reply, SilenceListener, SseWriter } from "./reply.ts";

export class StatelessEndpoint {
  readonly #front: StatelessFront;
  readonly #parkedCalls: ParkedCalls;
  readonly #listens: FairLimit;
  readonly #fail: SharedLimits["fail"];
  readonly #calls = new InFlightCalls();

  constructor(
    handler: Handler,
    options: StatelessFrontOptions,
    parkedCalls: ParkedCallsOptions | undefined,
    listens: FairLimit,
    { fail }: SharedLimits,
  ) {
    this.#parkedCalls = new ParkedCalls(parkedCalls);
    this.#front = new StatelessFront(handler, this.#parkedCalls, options);
    this.#listens = listens;
    this.#fail = fail;
  }

  /** Calls `release` when the response was sent, or the client has disconnected. */
  post(message: Message, reply: Reply, caller: Partial<Caller>, release: Release): void {
    if (isResponse(message)) {
      const problem = "Responses cannot be posted in this revision: send inputResponses in a retry of the request";
      reply.sendJson(errorResponse(400, problem), 400);
    } else if (isNotification(message)) {
      reply.sendEmpty(202);
      if (isVendorMethod(message.method)) return this.#takeVendor(message, caller, release);
    } else return this.#answer(message, reply, caller, release);
    release();
  }

  /** A vendor's notification. It has no stream, so nothing can be sent back. */
  #takeVendor(message: NotificationMessage, caller: Partial<Caller>, release: Release): void {
    const inbound: Inbound = {
      kind: "message",
      message,
      caller,
      gone: neverAbortedSignal(),
      reply: async () => undefined,
    };
    const call = this.#calls.beginAnonymous();
    const done = (): void => {
      this.#calls.end(call);
      release();
    };
    this.#front.takeVendor(message, inbound, call).then(done, done);
  }

  #answer(message: RequestMessage, reply: Reply, caller: Partial<Caller>, release: Release): void {
    const { id, method } = message;
    let envelope: Envelope;
    try {
      envelope = readEnvelope(message.params ?? {});
      checkHeaders(message, envelope.name, reply.request.headers);
    } catch (error) {
      reply.sendJson({ jsonrpc: "2.0", id, error: this.#front.errorBody(error, message) }, 400);
      return release();
    }
    // The client may have disconnected while its body was read.
    if (reply.request.isDisconnected) return release();
    const isListen = method === "subscriptions/listen";
    if (isListen) takePlace(this.#listens, caller.principal, "subscriptions");
    const call = this.#calls.beginAnonymous(isListen, envelope);
    const inbound = new StatelessInbound(message, reply, caller, call, release);
    call.inbound = inbound;
    const cancel = (): void => inbound.cancel();
    reply.request.onDisconnect(cancel);
    reply.watchSilence(inbound);
    inbound.running = runRequest(this.#front, message, inbound, call);
    const settle = (response: ResponseMessage): void => {
      this.#end(inbound);
      if (call.cancelled) return;
      try {
        inbound.finish(response);
      } catch (error) {
        this.#fail(reply, error);
      }
    };
    const failed = (error: unknown): void => {
      this.#end(inbound);
      this.#fail(reply, error);
    };
    inbound.running.then(settle, failed);
  }

  #end({ call, caller, release }: StatelessInbound): void {
    this.#calls.end(call);
    if (call.background) this.#listens.release(caller.principal);
    release();
  }

  get isIdle(): boolean {
    return this.#calls.all().length === 0 && this.#parkedCalls.isEmpty;
  }

  /** Ends subscriptions at once; other calls may finish within `graceMs`. */
  async close(graceMs: number): Promise<void> {
    const reason = new Error("The connection is closed");
    for (const { background, cancelToken } of this.#calls.all()) if (background) cancelToken.abort(reason);
    await this.#calls.settled(graceMs);
    this.#calls.abortAll(reason);
    await this.#calls.settled(SETTLE_MS);
    // The handlers that still run ignore their signal. Their clients get an error now.
    const error = McpError.of("unreachable", "The server was shut down before the request was answered").toBody();
    for (const call of this.#calls.all()) {
      const { inbound } = call;
      if (call.cancelled || !(inbound instanceof StatelessInbound)) continue;
      call.cancelled = true;
      inbound.finish({ jsonrpc: "2.0", id: inbound.message.id, error });
    }
    this.#parkedCalls.close();
  }
}

/** A request, and the HTTP reply that carries its response and notifications. */
class StatelessInbound implements Inbound, SilenceListener {
  readonly kind = "message";
  readonly message: RequestMessage;
  readonly caller: Partial<Caller>;
  readonly call: InFlightCall;
  readonly release: Release;
  /** Set once the call runs; the client may disconnect before that. */
  running: Promise<ResponseMessage> | undefined;
  readonly #reply: Reply;
  #stream: SseWriter | undefined;
  #isClosed = false;
  #isFinished = false;

  constructor(message: RequestMessage, reply: Reply, caller: Partial<Caller>, call: InFlightCall, release: Release) {
    this.message = message;
    this.#reply = reply;
    this.caller = caller;
    this.call = call;
    this.release = release;
  }

  /** Called when the client has left, or was disconnected as too slow, before the response. */
  cancel(): void {
    const { call } = this;
    if (!call.done && !call.cancelled) {
      call.cancelled = true;
      call.cancelToken.abort(cancellationError("it disconnected", "the caller"));
    }
    this.release(this.running);
  }

  onSilence(): void {
    this.openStream();
  }

  get gone(): AbortSignal {
    return this.#reply.request.isDisconnected || this.#isClosed ? AbortSignal.abort() : neverAbortedSignal();
  }

  openStream(): SseWriter {
    return (this.#stream ??= this.#reply.openStream(() => {
      if (!this.#isFinished) this.cancel();
      this.#isClosed = true;
    }));
  }

  async reply(message: Message | readonly Message[]): Promise<void> {
    if (!this.#isClosed)
      this.openStream().send(formatEvent({ event: "message", data: encode(message, this.#reply.limits.messageBytes) }));
  }

  /** Sends the response and ends the reply. */
  finish(response: ResponseMessage): void {
    this.#isFinished = true;
    if (this.#stream === undefined)
      this.#reply.sendJson(response, "error" in response ? statusOf(response.error) : 200);
    else {
      this.#stream.send(formatEvent({ event: "message", data: encodeResponse(response, this.#reply.limits) }));
      this.#stream.end();
    }
  }
}

// `stateless: true`: nothing is kept in memory between HTTP requests, so that any process can answer any request: behind
// a load balancer without sticky sessions, in serverless functions, in Workers. This file takes away from a handler what
// needs the memory of one process: questions during a call, tasks, and changes announced to sessions.

type Capabilities = Caller["capabilities"];

const WHY = "This server keeps nothing between requests (`stateless: true`)";

/** Wraps a handler. Results, progress and logs of a call pass; `inputRequired` works for stateless callers. */
export function withoutState(handler: Handler): Handler {
  return async (request, context) => {
    const { caller } = context;
    const isSession = caller.style === "session";
    if (isSession && request.method === "subscriptions/listen") {
      throw refusal(`${WHY}, so it cannot announce changes to clients of revision ${context.revision}`);
    }
    const alone: Context = {
      ...context,
      // A session-style caller gets the outcome of a task in the same request, so there it needs no later one.
      caller: isSession ? caller : { ...caller, capabilities: withoutTasks(caller.capabilities) },
      ask: (input) => ignoreRejection(refuseToAsk(input)),
    };
    try {
      const result = await handler(request, alone);
      return request.method === "server/discover" ? withoutPromises(result, isSession) : result;
    } catch (error) {
      if (isTasksNotDeclared(error)) throw isSession ? error : refusal(`${WHY}, so it has no tasks`);
      // The handshake, which has the client's capabilities, was another request.
      if (!isSession || !(error instanceof McpError) || error.kind !== "missing_capability") throw error;
      throw refusal(`${WHY}, so it cannot ask a client of revision ${context.revision}: ${error.message}`);
    }
  };
}

async function refuseToAsk({ method }: Request): Promise<never> {
  throw refusal(
    `${WHY}, so a call cannot wait for the answer to ${method}: return inputRequired(...) from the handler, or serve ` +
      "without `stateless`, with all requests of a client in one process",
  );
}

function refusal(message: string): McpError {
  return McpError.of("invalid_request", message);
}

/** Does not promise tasks, nor, to callers with sessions, changes: those would need a stream outside of any request. */
function withoutPromises(discovered: Result, isSession: boolean): Result {
  const given = discovered["capabilities"];
  if (!isObject(given)) return discovered;
  const capabilities = withoutTasks(given);
  if (!isSession) return { ...discovered, capabilities };
  const silent = Object.entries(capabilities).map(([name, capability]): [string, unknown] => {
    if (!(LIST_CAPABILITIES as readonly string[]).includes(name) || !isObject(capability)) return [name, capability];
    const { listChanged: _changes, subscribe: _updates, ...rest } = capability;
    return [name, rest];
  });
  return { ...discovered, capabilities: Object.fromEntries(silent) };
}

function withoutTasks(capabilities: Capabilities): Capabilities {
  const { extensions, ...rest } = capabilities;
  if (!isObject(extensions) || !Object.hasOwn(extensions, TASKS_EXTENSION)) return capabilities;
  const { [TASKS_EXTENSION]: _tasks, ...others } = extensions;
  return { ...rest, extensions: others };
}
