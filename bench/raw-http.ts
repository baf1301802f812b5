// A minimal HTTP client on a socket: one keep-alive connection, one request at a time. Node's own client costs several
// times as much CPU, and the server under test would have to wait for it.

import { connect, type Socket } from "node:net";

export interface HttpResponse {
  readonly status: number;
  /** Status line and headers, as they came. */
  readonly head: string;
  /** Decoded, where it was chunked. */
  readonly body: string;
}

export class HttpConnection {
  readonly #socket: Socket;
  readonly #host: string;
  #text = "";
  #settle: { resolve(response: HttpResponse): void; reject(error: Error): void } | undefined;

  constructor(url: string) {
    const { hostname, port, host } = new URL(url);
    this.#host = host;
    this.#socket = connect({ host: hostname, port: Number(port), noDelay: true });
    this.#socket.setEncoding("latin1");
    this.#socket.on("data", (text: string) => this.#onData(text));
    this.#socket.on("error", (error) => this.#fail(error));
    this.#socket.on("close", () => this.#fail(new Error(`The server closed the connection after: ${this.#text}`)));
  }

  post(path: string, headers: string, body: string): Promise<HttpResponse> {
    return new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
      this.#socket.write(
        `POST ${path} HTTP/1.1\r\nHost: ${this.#host}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n${headers}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
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
    const head = this.#text.slice(0, end);
    const rest = this.#text.slice(end + 4);
    const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
    if (length === undefined ? !rest.endsWith("0\r\n\r\n") : rest.length < Number(length)) return;
    this.#text = "";
    const settle = this.#settle;
    this.#settle = undefined;
    const body = length === undefined ? decodeChunks(rest) : rest;
    settle?.resolve({ status: Number(head.slice(9, 12)), head, body });
  }

  #fail(error: Error): void {
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
