// A server that closes its subscriptions as it stops, and starts again at the same address: its subscribers stay
// subscribed, in both styles, directly and through a gateway. A server that refuses them afterwards ends them.

import { expect, it } from "vitest";
import {
  chain,
  connect,
  createServer,
  McpError,
  serve,
  upstream,
  type ChangeEvent,
  type Client,
  type Gateway,
} from "../../../src/index.ts";
import { connectInMemory } from "../../../src/testing.ts";
import { sampleOf } from "../../support/thoroughness.ts";
import { eventually } from "../../support/waiting.ts";

const URI = "note://one";

const createNotes = () =>
  createServer({ name: "notes", version: "1.0.0" })
    .tool("echo", {}, () => "echo")
    .resource(URI, { name: "one" }, () => "text");

async function startNotes(port = 0, sealKey?: string) {
  const server = createNotes();
  const serving = await serve(server, { http: { port, ...(sealKey === undefined ? undefined : { sealKey }) } });
  const address = Number(new URL(serving.url).port);
  return { server, port: address, url: serving.url, close: () => serving.close() };
}

type Notes = Awaited<ReturnType<typeof startNotes>>;

const other = () => createServer({ name: "other", version: "1.0.0" }).tool("other", {}, () => "other");

/** A client that reaches the server directly or through a gateway, and what to close after it. */
const PATHS = {
  "a client in a session": async ({ url }: Notes) => ({ client: await connect(url, { revision: "2025-11-25" }) }),
  "a stateless client": async ({ url }: Notes) => ({ client: await connect(url, { revision: "2026-07-28" }) }),
  "a client of a gateway with one upstream": async ({ url }: Notes) => {
    const gateway = chain().to(upstream(url));
    return { gateway, client: await connect(gateway) };
  },
  "a client of a gateway with two upstreams": async ({ url }: Notes) => {
    const gateway = chain().to({ notes: upstream(url), other: other() });
    return { gateway, client: await connect(gateway) };
  },
  "a client in a session with a gateway": async ({ url }: Notes) => {
    const gateway = chain().to(upstream(url));
    const { client } = await connectInMemory(gateway, { revision: "2025-11-25" });
    return { gateway, client };
  },
} as const;

it.concurrent.each(sampleOf(3, Object.entries(PATHS)))(
  "%s stays subscribed when the server restarts gracefully",
  async (_, open) => {
    const first = await startNotes();
    const { client, ...behind }: { client: Client; gateway?: Gateway } = await open(first);
    const events: ChangeEvent[] = [];
    const uri = (await client.listResources()).resources[0]?.uri ?? "";
    const subscription = await client.listen({ toolsListChanged: true, resourceSubscriptions: [uri] }, (event) => {
      events.push(event);
    });
    let isOver = false;
    subscription.ended.catch(() => undefined).finally(() => (isOver = true));
    await first.close();
    const second = await startNotes(first.port);
    try {
      // The changes that may have been missed.
      await eventually(() => expect(events.map(({ method }) => method)).toContain("notifications/resources/updated"));
      const before = events.length;
      await eventually(() => {
        second.server.resourceUpdated(URI);
        expect(events.length).toBeGreaterThan(before);
      });
      expect(isOver).toBe(false);
    } finally {
      await client.close();
      await behind.gateway?.close();
      await second.close();
    }
  },
);

it.concurrent("a server that refuses the subscription after its restart ends it with that error", async () => {
  const first = await startNotes();
  const client = await connect(first.url);
  const subscription = await client.listen({ toolsListChanged: true });
  const ended = subscription.ended.then(
    () => "resolved",
    (error: unknown) => error,
  );
  await first.close();
  let refused = 0;
  const refusing = createNotes().use((request, context, next) => {
    if (request.method !== "subscriptions/listen") return next(request, context);
    refused += 1;
    throw McpError.of("access_denied", "No more subscriptions");
  });
  const second = await serve(refusing, { http: { port: first.port } });
  expect(await ended).toMatchObject({ message: "No more subscriptions" });
  expect(refused).toBe(1);
  await client.close();
  await second.close();
});

it.concurrent("a session that outlives the restart by its key keeps its subscriptions to resources", async () => {
  const key = "a key that the server keeps";
  const first = await startNotes(0, key);
  const client = await connect(first.url, { revision: "2025-11-25" });
  let updates = 0;
  await client.listen({ resourceSubscriptions: [URI] }, () => (updates += 1));
  await first.close();
  const second = await startNotes(first.port, key);
  await eventually(() => {
    second.server.resourceUpdated(URI);
    expect(updates).toBeGreaterThan(0);
  });
  const before = updates;
  await eventually(() => {
    second.server.resourceUpdated(URI);
    expect(updates).toBeGreaterThan(before + 1);
  });
  await client.close();
  await second.close();
});
