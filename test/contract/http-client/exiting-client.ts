// A process that does with an end what it is told, by the name of it, closes its client, and has nothing more to do: if
// it does not leave by itself, something of the client is still there. Nothing here ends the process.

import { connect, type Client } from "../../../src/client/index.ts";
import { NOTE } from "../../support/faulty-server/backend.ts";

const [, , ...tasks] = process.argv;

const call = (client: Client, options?: Parameters<Client["callTool"]>[2]): Promise<unknown> =>
  client.callTool("run", { key: "a", steps: 2 }, { onProgress: () => undefined, ...options });

const WORKS: Readonly<Record<string, (url: string) => Promise<void>>> = {
  calls: async (url) => {
    const client = await connect(url);
    await client.listTools();
    await Promise.all([call(client), call(client)]);
    await client.close();
  },
  fails: async (url) => {
    const client = await connect(url);
    await call(client).then(
      () => Promise.reject(new Error("It should have failed")),
      () => undefined,
    );
    await client.close();
  },
  refused: async (url) => {
    await connect(url, { startTimeoutMs: 200 }).then(
      () => Promise.reject(new Error("It should have been refused")),
      () => undefined,
    );
  },
  listens: async (url) => {
    const client = await connect(url);
    await client.listen({ toolsListChanged: true, resourceSubscriptions: [NOTE] });
    await client.close();
  },
  cancels: async (url) => {
    const client = await connect(url);
    const stop = new AbortController();
    const held = client.callTool(
      "hold",
      { key: "a", steps: 1 },
      { signal: stop.signal, onProgress: () => stop.abort() },
    );
    await held.catch(() => undefined);
    await client.close();
  },
  "closes in mid-call": async (url) => {
    const client = await connect(url);
    let begun: () => void = () => undefined;
    const beginning = new Promise<void>((resolve) => (begun = resolve));
    const held = client.callTool("hold", { key: "b", steps: 1 }, { onProgress: () => begun() }).catch(() => undefined);
    await beginning;
    await client.close();
    await held;
  },
  "closes while it waits": async (url) => {
    const client = await connect(url);
    const calls = [call(client).catch(() => undefined), client.listTools().catch(() => undefined)];
    await new Promise((resolve) => setTimeout(resolve, 100));
    await client.close();
    await Promise.all(calls);
  },
};

for (const task of tasks) {
  const [name = "", url = ""] = task.split("@");
  await WORKS[name]?.(url);
  process.stdout.write(`${name}\n`);
}
