// A minimal HTTP client on a socket: one keep-alive connection, one request at a time. Node's own client costs several
// times as much CPU, and the server under test would have to wait for it.

import { connect, type Socket } from "node:net";

export interface HttpResponse {
  readonly status: number;
  /** Status line and headers, in lower case. */
  readonly head: string;
  /** Decoded, where it was chunked. */
  readonly body: string;
}

export class HttpConnection {
  readonly #url: URL;
  #socket: Socket;
  #isOpen = true;
  #text = "";
  #settle: { resolve(response: HttpResponse): void; reject(error: Error): void } | undefined;

  constructor(url: string) {
    this.#url = new URL(url);
    this.#socket = this.#connect();
  }

  #connect(): Socket {
    const { hostname, port } = this.#url;
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    const end = (error: Error): void => {
      if (socket === this.#socket) this.#end(error);
    };
    socket.setEncoding("latin1");
    socket.on("data", (text: string) => this.#onData(text));
    socket.on("error", end);
    socket.on("end", () => end(new Error(`The server closed the connection after: ${this.#text}`)));
    return socket;
  }

  post(path: string, headers: string, body: string): Promise<HttpResponse> {
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
      // A server closes a connection that is idle for a while.
      if (!this.#isOpen) this.#socket = this.#connect();
      this.#isOpen = true;
      this.#socket.write(
        `POST ${path} HTTP/1.1\r\nHost: ${this.#url.host}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
      );
    });
  }

  close(): void {
    this.#settle = undefined;
    this.#socket.destroy();
  }

  #onData(text: string): void {
    this.#text += text;
    const end = this.#text.indexOf("\r\n\r\n");
    if (end < 0) return;
    const head = this.#text.slice(0, end).toLowerCase();
    const rest = this.#text.slice(end + 4);
    const length = /\r\ncontent-length: (\d+)/.exec(head)?.[1];
    if (length === undefined ? !rest.endsWith("0\r\n\r\n") : rest.length < Number(length)) return;
    this.#text = "";
    const settle = this.#settle;
    this.#settle = undefined;
    const body = length === undefined ? decodeChunks(rest) : rest;
    settle?.resolve({ status: Number(head.slice(9, 12)), head, body });
  }

  #end(error: Error): void {
    this.#isOpen = false;
    this.#settle?.reject(error);
    this.#settle = undefined;
  }
}

function decodeChunks(text: string): string {
  let body = "";
  for (let at = 0; ;) {
    const line = text.indexOf("\r\n", at);
    const size = Number.parseInt(text.slice(at, line), 16);
    if (!(size > 0)) return body;
    body += text.slice(line + 2, line + 2 + size);
    at = line + 2 + size + 2;
  }
}
