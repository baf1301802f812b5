// The memory of a long body's chunks, given back as soon as they were read. What Node reads from a socket is garbage
// once its parser has copied the body out of it, and the copy is garbage once we have gathered it; V8 counts neither
// before it has other reasons to collect, so 10 MB that were read left 20 MB behind. Short bodies are not touched.

import type { IncomingMessage } from "node:http";

/** What comes before is left to the collector, and so are small chunks: to give them back costs some microseconds. */
const LONG_BODY = 256 * 1024;
const LONG_CHUNK = 4 * 1024;

export class SpentChunks {
  readonly #response: IncomingMessage;
  #bytes = 0;

  constructor(response: IncomingMessage) {
    this.#response = response;
  }

  /** A chunk of the body that nobody will look at again. */
  add(chunk: Uint8Array): void {
    if (this.#bytes >= LONG_BODY) {
      giveBack(chunk);
      return;
    }
    this.#bytes += chunk.length;
    if (this.#bytes >= LONG_BODY) this.#watchSocket();
  }

  #watchSocket(): void {
    const response = this.#response;
    const { socket } = response;
    // The last chunks are spent when the socket has gone on to others.
    if (response.readableEnded || response.destroyed) return;
    // What the system did not read came from somebody who stands in for a socket, and may be his to keep.
    if (socket.bytesRead < this.#bytes) return;
    let newest: ArrayBufferLike | undefined;
    const hear = ({ buffer }: Uint8Array): void => {
      newest = buffer;
    };
    // Node's parser heard the socket before us, and has taken the body out. Should it ever do so without a copy, then
    // the memory is that of the newest chunk, or of one that waits.
    const take = (chunk: Uint8Array): void => {
      if (response.readableLength === 0 && chunk.buffer !== newest) giveBack(chunk);
    };
    const stop = (): void => void socket.removeListener("data", take);
    socket.on("data", take);
    // Ended before another request has the socket, whose parser would hear it after us.
    response.on("data", hear).once("end", stop).once("close", stop);
  }
}

let nowhere: InstanceType<typeof MessagePort> | undefined;

/** What is sent to a port is not ours any more, and a closed one keeps nothing. */
function giveBack({ buffer, byteLength }: Uint8Array): void {
  // Memory that is shared with other chunks is not this one's to give.
  if (byteLength < LONG_CHUNK || byteLength !== buffer.byteLength) return;
  if (nowhere === undefined) {
    nowhere = new MessageChannel().port1;
    nowhere.close();
  }
  nowhere.postMessage(undefined, [buffer as ArrayBuffer]);
}
