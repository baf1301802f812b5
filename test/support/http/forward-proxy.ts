// A forward proxy on this machine, for tests: requests with a whole URL, and CONNECT tunnels. Whatever host a client asks
// for is this machine, as if the proxy were the only one that can resolve its name.

import {
  createServer,
  request as sendRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";

export interface ForwardProxy {
  /** Without credentials. */
  readonly url: URL;
  /** The first line of each request, and its Proxy-Authorization header if there is one. */
  readonly seen: string[];
  close(): Promise<void>;
}

/** `password`: what clients must send. `status`: the answer to every CONNECT. */
export async function forwardProxy({
  password,
  status = 200,
}: { readonly password?: string; readonly status?: number } = {}): Promise<ForwardProxy> {
  const seen: string[] = [];
  const sockets = new Set<Socket>();
  const isAllowed = ({ method, url, headers }: IncomingMessage): boolean => {
    const given = headers["proxy-authorization"];
    seen.push([method, url, ...(given === undefined ? [] : [given])].join(" "));
    return password === undefined || given === `Basic ${Buffer.from(password).toString("base64")}`;
  };
  const forward = (request: IncomingMessage, response: ServerResponse): void => {
    if (!isAllowed(request)) {
      response.writeHead(407, { "proxy-authenticate": "Basic" }).end();
      return;
    }
    const { port, pathname, search } = new URL(request.url ?? "");
    const { "proxy-authorization": _, ...headers } = request.headers;
    const options = { host: "127.0.0.1", port, path: pathname + search, method: request.method, headers };
    const sent = sendRequest(options, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    sent.on("error", () => response.destroy());
    request.pipe(sent);
  };
  const server: Server = createServer(forward)
    .on("connect", (request: IncomingMessage, socket: Socket) => {
      const answer = isAllowed(request) ? status : 407;
      if (answer !== 200) {
        socket.end(`HTTP/1.1 ${answer} No\r\ncontent-length: 0\r\n\r\n`);
        return;
      }
      const port = Number(request.url?.split(":").at(-1));
      const target = connect(port, "127.0.0.1", () => {
        socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
        target.pipe(socket).pipe(target);
      });
      for (const one of [target, socket]) one.on("error", () => [target, socket].forEach((each) => each.destroy()));
    })
    .on("connection", (socket: Socket) => {
      sockets.add(socket.once("close", () => sockets.delete(socket)));
    });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    seen,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
