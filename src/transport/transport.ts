// What a wire is to the rest of the house. A transport carries messages and does not read them; an
// inbound message brings its own way back (the pipe itself, or the response stream of its POST), so
// that whoever answers need not know which wire it came by.

import type { Caller } from "../core/handler.ts";
import { ConnectionError } from "../core/errors.ts";
import type { ErrorMessage, Id, Message } from "../jsonrpc/message.ts";

export interface Transport {
  /** Begins to read. `receive` is called once for each thing that comes in, never concurrently. */
  start(receive: (inbound: Inbound) => void): Promise<void>;
  /** Resolves when the wire can take more; rejects with a ConnectionError when the message cannot be carried. */
  send(message: Message | readonly Message[], options?: SendOptions): Promise<void>;
  /** `budgetMs` is the longest that it may take, where somebody waits for us. */
  close(budgetMs?: number): Promise<void>;
}

export interface SendOptions {
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
  /** Called with true while somebody else than the end is waited for (a person who signs in), with false afterwards. */
  readonly onWait?: (isWaiting: boolean) => void;
  /** For a request whose end is not told where its caller leaves it. */
  readonly quiet?: QuietLeave | undefined;
}

export interface QuietLeave {
  /** Aborted when its caller has left: what was not sent by then is not sent any more. */
  readonly left: AbortSignal;
  /** Aborted when its answer is no longer wanted either. */
  readonly over: AbortSignal;
}

export interface ReplyOptions {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Nothing more will come on this way back. */
  readonly last?: boolean;
}

/** A message that came in, with the way its answer must go. */
export interface Inbound {
  /**
   * "fault": what came is no message, and `fault` is the answer that it gets, in its turn.
   * "lost": the other side has forgotten the session that this wire carried, and a new one can be begun.
   * "gap": what the other side said outside of any request may have been missed.
   * "hang-up": the other side has ended the stream of the request `about` and wants us to come again for the rest.
   * "end": the other side will send nothing more.
   */
  readonly kind: "message" | "batch" | "fault" | "lost" | "gap" | "hang-up" | "end";
  readonly message?: Message;
  /** The items of a batch; one that is no message is the answer that it gets. */
  readonly batch?: readonly BatchItem[];
  readonly fault?: ErrorMessage;
  /** The request on whose stream it came, when the wire knows. */
  readonly about?: Id;
  /** When we are to come again, for `kind: "hang-up"`. */
  readonly retryMs?: number;
  /** Auth and headers, when the wire knows. */
  readonly caller?: Partial<Caller>;
  /** Why a connection ended, for `kind: "end"`. */
  readonly error?: Error;
  /** Aborted when the way back is gone. */
  readonly gone: AbortSignal;
  reply(message: Message | readonly Message[], options?: ReplyOptions): Promise<void>;
  /** Nothing will be replied after all: the request was cancelled. For wires that hold the way back open. */
  drop?(): void;
  /** Ends the way back before the answer: the caller comes again for the rest. Only where the wire can do that. */
  hangUp?(retryMs: number): void;
}

export type BatchItem = { readonly message: Message } | { readonly fault: ErrorMessage };

/** The end knows the session of this wire no more. It has not begun with the request, which can be sent in a new one. */
export class SessionLost extends ConnectionError {
  constructor(message: string, options?: { readonly cause?: unknown; readonly status?: number }) {
    super("closed", message, { ...options, mayHaveRun: false });
  }
}
