// Exchange style over HTTP: one POST is one request, whole in itself. Its headers must agree with its body, its
// errors have statuses, and hanging up cancels it. Nothing is kept between two of them but the calls that wait for
// their callers' answers (see rounds).

import type { Caller, Handler } from "../../core/handler.ts";
import { encode } from "../../jsonrpc/codec.ts";
import {
  isNotification,
  isResponse,
  type Message,
  type RequestMessage,
  type ResponseMessage,
} from "../../jsonrpc/message.ts";
import { McpError } from "../../protocol/errors.ts";
import { type SseWriter, formatEvent } from "./sse.ts";
import { HttpError } from "./http-request.ts";
import type { Inbound, ReplyOptions } from "../../transport/transport.ts";
import { envelope, StatelessFront, type StatelessFrontOptions } from "../../dialogue/stateless/front.ts";
import { cancellation } from "../../dialogue/calls/errors.ts";
import { loneFlight, type Flight, outcomeOf, SETTLE_MS } from "../../dialogue/calls/in-flight.ts";
import { Rounds, type RoundsOptions } from "../../dialogue/stateless/parked-calls.ts";
import { checkHeaders } from "../headers.ts";
import { errorResponse, statusOf, NEVER_ABORTED, type Release } from "./admission.ts";
import { encodeResponse, type Reply } from "./reply.ts";

export class StatelessEndpoint {
  readonly #front: StatelessFront;
  readonly #rounds: Rounds;
  readonly #maxListens: number;
  readonly #flights = new Map<Flight, StatelessInbound>();
  #listens = 0;
  #idle: (() => void) | undefined;

  constructor(handler: Handler, options: StatelessFrontOptions, rounds: RoundsOptions | undefined, maxListens: number) {
    this.#rounds = new Rounds(rounds);
    this.#front = new StatelessFront(handler, this.#rounds, options);
    this.#maxListens = maxListens;
  }

  /** Resolves when the answer is out, or nobody waits for it any more. */
  async take(message: Message, way: Reply, caller: Partial<Caller>, over: Release): Promise<void> {
    if (isResponse(message)) {
      const refusal = "A response cannot be posted in this revision: answers travel in a retry, as inputResponses";
      way.whole(errorResponse(400, refusal), 400);
    } else if (isNotification(message)) way.empty(202);
    else await this.#answer(message, way, caller, over);
  }

  async #answer(message: RequestMessage, way: Reply, caller: Partial<Caller>, over: Release): Promise<void> {
    const { id, method } = message;
    try {
      const { name } = envelope(message.params ?? {});
      checkHeaders(message, name, way.visit.headers);
    } catch (error) {
      way.whole({ jsonrpc: "2.0", id, error: this.#front.fault(error, message) }, 400);
      return;
    }
    const listens = method === "subscriptions/listen";
    if (listens && this.#listens >= this.#maxListens) {
      throw new HttpError(503, "Too many callers listen already; try again later", { "retry-after": "10" });
    }
    const flight = loneFlight(listens);
    const inbound = new StatelessInbound(message, way, { origin: flight, ...caller });
    // Filled once it runs: the caller may be found gone before that.
    const work: { running?: Promise<ResponseMessage> } = {};
    const cancel = (): void => {
      this.#cancel(flight);
      over(work.running);
    };
    way.visit.onGone(cancel);
    // Who is gone already wants nothing done.
    if (flight.cancelled) return;
    inbound.onCut = cancel;
    way.hold(() => inbound.open());
    this.#flights.set(flight, inbound);
    if (listens) this.#listens += 1;
    work.running = outcomeOf(this.#front, message, inbound, flight);
    try {
      const response = await work.running;
      flight.done = true;
      if (!flight.cancelled) inbound.finish(response);
    } finally {
      if (listens) this.#listens -= 1;
      this.#flights.delete(flight);
      if (this.#flights.size === 0) this.#idle?.();
    }
  }

  /** RequestLimiter in flight may go on for the grace; whoever only listens is told at once that it is over. */
  async close(graceMs: number): Promise<void> {
    const reason = new Error("The connection is closed");
    for (const flight of this.#flights.keys()) if (flight.background) flight.stop.abort(reason);
    await this.#drained(graceMs);
    for (const flight of this.#flights.keys()) flight.stop.abort(reason);
    await this.#drained(SETTLE_MS);
    // Those that do not heed their signal: what they do is lost, but their callers need not wait for it.
    for (const [flight, inbound] of this.#flights) {
      if (flight.cancelled) continue;
      flight.cancelled = true;
      const error = McpError.of("unreachable", "The server was shut down before the answer was there").toBody();
      inbound.finish({ jsonrpc: "2.0", id: inbound.message.id, error });
    }
    this.#rounds.close();
  }

  async #drained(ms: number): Promise<void> {
    if (this.#flights.size === 0 || ms <= 0) return;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#idle = () => {
        clearTimeout(timer);
        resolve();
      };
    });
    this.#idle = undefined;
  }

  #cancel(flight: Flight): void {
    if (flight.done || flight.cancelled) return;
    flight.cancelled = true;
    flight.stop.abort(cancellation("it hung up", "the caller"));
  }
}

/** A request with the response stream of its own POST. */
class StatelessInbound implements Inbound {
  readonly kind = "message";
  readonly message: RequestMessage;
  readonly caller: Partial<Caller>;
  /** The stream was ended by us: the caller reads too slowly. */
  onCut: (() => void) | undefined;
  readonly #way: Reply;
  #stream: SseWriter | undefined;
  #ended = false;

  constructor(message: RequestMessage, way: Reply, caller: Partial<Caller>) {
    this.message = message;
    this.#way = way;
    this.caller = caller;
  }

  get gone(): AbortSignal {
    return this.#way.visit.isGone || this.#ended ? AbortSignal.abort() : NEVER_ABORTED;
  }

  open(): SseWriter {
    return (this.#stream ??= this.#way.events(() => {
      this.#ended = true;
      this.onCut?.();
    }));
  }

  async reply(message: Message | readonly Message[], _options?: ReplyOptions): Promise<void> {
    if (!this.#ended) this.open().send(formatEvent({ event: "message", data: encode(message) }));
  }

  /** The last thing that is said. */
  finish(response: ResponseMessage): void {
    this.onCut = undefined;
    if (this.#stream === undefined) this.#way.whole(response, "error" in response ? statusOf(response.error) : 200);
    else {
      this.#stream.send(formatEvent({ event: "message", data: encodeResponse(response) }));
      this.#stream.end();
    }
  }
}
