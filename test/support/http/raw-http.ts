// An HTTP client on a bare socket, for requests that no client library would send: bytes are sent unchanged, and
// responses are parsed just enough to find their end.

import { connect } from "node:net";
import type { Socket } from "node:net";

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export class RawHttp {
  readonly socket: Socket;
  /** Resolves when the connection is closed, for any reason. */
  readonly closed: Promise<void>;
  #received = "";
  #isClosed = false;
  #wake: (() => void) | undefined;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => {
      this.#received += text;
      this.#wake?.();
    });
    // A reset counts as a close.
    socket.on("error", () => {});
    this.closed = new Promise((resolve) => {
      socket.once("close", () => {
        this.#isClosed = true;
        this.#wake?.();
        resolve();
      });
    });
  }

  static open(port: number, host = "127.0.0.1"): Promise<RawHttp> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host });
      socket.once("error", reject);
      socket.once("connect", () => {
        socket.off("error", reject);
        resolve(new RawHttp(socket));
      });
    });
  }

  /** Sends the lines of a head with the line breaks of HTTP, and then the body. */
  send(head: readonly string[], body = ""): this {
    this.socket.write(`${head.join("\r\n")}\r\n\r\n${body}`, "latin1");
    return this;
  }

  write(bytes: string | Uint8Array): this {
    if (typeof bytes === "string") this.socket.write(bytes, "latin1");
    else this.socket.write(bytes);
    return this;
  }

  /** Waits for the text, and returns everything up to its end. */
  async until(text: string): Promise<string> {
    for (;;) {
      const at = this.#received.indexOf(text);
      if (at >= 0) return this.#take(at + text.length);
      if (this.#isClosed)
        throw new Error(`The connection was closed before ${JSON.stringify(text)} came: ${this.#received}`);
      await this.#more();
    }
  }

  /** The next response that is not an interim one. */
  async answer(): Promise<RawAnswer> {
    for (;;) {
      const { status, headers } = await this.head();
      if (status < 200) continue;
      return { status, headers, body: await this.#body(status, headers) };
    }
  }

  async head(): Promise<Omit<RawAnswer, "body">> {
    const [first = "", ...lines] = (await this.until("\r\n\r\n")).trimEnd().split("\r\n");
    const headers: Record<string, string> = {};
    for (const line of lines) {
      const colon = line.indexOf(":");
      headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
    }
    return { status: Number(first.split(" ")[1]), headers };
  }

  /** Everything received until the connection is closed. */
  async rest(): Promise<string> {
    await this.closed;
    return this.#take(this.#received.length);
  }

  destroy(): void {
    this.socket.destroy();
  }

  async #body(status: number, headers: Readonly<Record<string, string>>): Promise<string> {
    if (status === 204 || status === 304) return "";
    const length = headers["content-length"];
    if (length !== undefined) return this.#exactly(Number(length));
    if (headers["transfer-encoding"] !== "chunked") return this.rest();
    let body = "";
    for (;;) {
      const size = Number.parseInt(await this.until("\r\n"), 16);
      const chunk = await this.#exactly(size + 2);
      if (size === 0) return Buffer.from(body, "latin1").toString();
      body += chunk.slice(0, -2);
    }
  }

  async #exactly(length: number): Promise<string> {
    while (this.#received.length < length) {
      if (this.#isClosed)
        throw new Error(`The connection was closed after ${this.#received.length} of ${length} bytes`);
      await this.#more();
    }
    return this.#take(length);
  }

  #more(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  #take(length: number): string {
    const taken = this.#received.slice(0, length);
    this.#received = this.#received.slice(length);
    return taken;
  }
}
