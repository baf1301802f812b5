// A TCP proxy whose open connections the test can break all at once. It forwards bytes unread, and accepts new
// connections right after a break.

import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export interface BreakableProxy {
  /** The address of the proxy. */
  readonly url: URL;
  /** The address of the server. */
  readonly direct: URL;
  break(): void;
  /** Breaks all connections and forwards new ones to another server; resolves when clients can notice the break. */
  switchTo(target: URL): Promise<void>;
  close(): Promise<void>;
}

export async function breakableProxy(target: string): Promise<BreakableProxy> {
  const { pathname } = new URL(target);
  let { port, hostname } = new URL(target);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const outgoing = connect(Number(port), hostname);
    for (const one of [socket, outgoing]) {
      sockets.add(one);
      one.on("error", () => undefined).once("close", () => sockets.delete(one));
    }
    socket.pipe(outgoing).pipe(socket);
    socket.once("close", () => outgoing.destroy());
    outgoing.once("close", () => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const breakAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}${pathname}`),
    direct: new URL(target),
    break: breakAll,
    switchTo: async (other) => {
      ({ port, hostname } = other);
      breakAll();
      for (let turns = 0; turns < 3; turns += 1) await new Promise((resolve) => setImmediate(resolve));
    },
    close: async () => {
      const closed = new Promise((resolve) => server.close(resolve));
      breakAll();
      await closed;
    },
  };
}
