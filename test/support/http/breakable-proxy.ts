// A way to a server over HTTP that breaks when it is told to: bytes are passed on as they are, until every connection
// that is open is destroyed at once. New ones can be made right after. It reads nothing of what it carries.

import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export interface Breakable {
  /** The server by this way. */
  readonly url: URL;
  /** The server itself. */
  readonly direct: URL;
  break(): void;
  /** Breaks, and leads to another server from then on; resolves when the break can be seen. */
  turn(target: URL): Promise<void>;
  close(): Promise<void>;
}

export async function breakable(target: string): Promise<Breakable> {
  const { pathname } = new URL(target);
  let { port, hostname } = new URL(target);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    const onward = connect(Number(port), hostname);
    for (const one of [socket, onward]) {
      sockets.add(one);
      one.on("error", () => undefined).once("close", () => sockets.delete(one));
    }
    socket.pipe(onward).pipe(socket);
    socket.once("close", () => onward.destroy());
    onward.once("close", () => socket.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const breakAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}${pathname}`),
    direct: new URL(target),
    break: breakAll,
    turn: async (other) => {
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
