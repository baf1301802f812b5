// The bytes of an event stream on a node:http response, and the patience with a caller that does not take what it was
// sent. What goes over a stream, and when a slow reader is cut off, is for event-stream.ts.

import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Sink } from "./visit.ts";

/** How long a caller may take no byte of an answer that waits for it. */
const STALLED_MS = 30_000;

export class NodeSink implements Sink {
  readonly #response: ServerResponse;
  readonly #socket: Socket;
  readonly #over: () => void;
  #isOver = false;

  constructor(response: ServerResponse, socket: Socket, over: () => void) {
    this.#response = response;
    this.#socket = socket;
    this.#over = over;
  }

  get waiting(): number {
    return this.#response.writableLength;
  }

  write(text: string): void {
    if (!this.#isClosed()) this.#response.write(text);
  }

  end(): void {
    if (this.#isClosed()) return;
    this.#isOver = true;
    this.#over();
    this.#response.end();
    expectTaken(this.#response, this.#socket);
  }

  cut(): void {
    if (this.#isOver && this.#response.writableFinished) return;
    this.#isOver = true;
    this.#over();
    this.#socket.destroy();
  }

  #isClosed(): boolean {
    // A write to a destroyed response would be an error that nobody hears.
    return this.#isOver || this.#response.destroyed || this.#socket.destroyed;
  }
}

/** An answer that the system did not take at once is in our memory: it shall not stay there for good. */
export function expectTaken(response: ServerResponse, socket: Socket): void {
  if (response.writableLength === 0) return;
  // The server ends a connection whose time is up. Where the server is somebody else's, so is the time before and after.
  const before = socket.timeout ?? 0;
  socket.setTimeout(STALLED_MS);
  response.once("close", () => socket.setTimeout(before));
}

/** Where a stream goes that nobody can read any more. */
export const NOWHERE: Sink = { waiting: 0, write() {}, end() {}, cut() {} };
