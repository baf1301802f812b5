// A process that runs the named tasks with a client, closes it, and must then exit by itself. If it does not, the client
// left something open.

import { connect, type Client } from "../../../src/client/index.ts";
import { NOTE } from "../../support/faulty-server/backend.ts";

const [, , ...tasks] = process.argv;

const call = (client: Client, options?: Parameters<Client["callTool"]>[2]): Promise<unknown> =>
  client.callTool("run", { key: "a", steps: 2 }, { onProgress: () => undefined, ...options });

const TASKS: Readonly<Record<string, (url: string) => Promise<void>>> = {
  calls: async (url) => {
    const client = await connect(url);
    await client.listTools();
    await Promise.all([call(client), call(client)]);
    await client.close();
  },
  fails: async (url) => {
    const client = await connect(url);
    await call(client).then(
      () => Promise.reject(new Error("The call should have failed")),
      () => undefined,
    );
    await client.close();
  },
  "cannot connect": async (url) => {
    await connect(url, { startTimeoutMs: 200 }).then(
      () => Promise.reject(new Error("The connection should have failed")),
      () => undefined,
    );
  },
  subscribes: async (url) => {
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
  "closes during a call": async (url) => {
    const client = await connect(url);
    let onStart: () => void = () => undefined;
    const started = new Promise<void>((resolve) => (onStart = resolve));
    const held = client
      .callTool("hold", { key: "b", steps: 1 }, { onProgress: () => onStart() })
      .catch(() => undefined);
    await started;
    await client.close();
    await held;
  },
  "closes while waiting": async (url) => {
    const client = await connect(url);
    const calls = [call(client).catch(() => undefined), client.listTools().catch(() => undefined)];
    await new Promise((resolve) => setTimeout(resolve, 100));
    await client.close();
    await Promise.all(calls);
  },
};

for (const task of tasks) {
  const [name = "", url = ""] = task.split("@");
  await TASKS[name]?.(url);
  process.stdout.write(`${name}\n`);
}
