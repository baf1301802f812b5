// Subscriptions of a session whose messages are authenticated one by one: each is judged by the message that requests
// it, and a refused one leaves the previous one open.

import { expect, it } from "vitest";
import { eventually } from "../../../test/support/waiting.ts";
import { serveAuthenticatedPeer, type AuthenticatedPeer } from "../../../test/support/dialogue/served-connection.ts";
import type { Context, Handler } from "../../core/handler.ts";
import { McpError } from "../../protocol/errors.ts";
import { NEWEST_SESSION } from "../../protocol/revisions/index.ts";

type Loose = { readonly [key: string]: unknown };

const WIDE = { principal: "ada", scopes: ["read"] };
const NARROW = { principal: "ada", scopes: [] };
const URI = "r:1";
const DENIED = { error: { code: -32603, data: { kind: "access_denied", requiredScopes: ["read"] } } };

interface SubscribableServer {
  /** The open resource subscriptions. */
  readonly subscriptions: Set<Context>;
  /** Subscriptions are granted only when this resolves. */
  held: Promise<void>;
  readonly handler: Handler;
}

/** One resource, for clients with the scope. */
function subscribableServer(): SubscribableServer {
  const subscriptions = new Set<Context>();
  const self: SubscribableServer = {
    subscriptions,
    held: Promise.resolve(),
    handler: async ({ method, params }, context) => {
      if (method === "server/discover") return { capabilities: { resources: { subscribe: true } } };
      if (method !== "subscriptions/listen") throw McpError.of("method_not_found", method);
      const notifications = params["notifications"] as { resourceSubscriptions?: readonly string[] };
      if (notifications.resourceSubscriptions !== undefined) {
        if (context.caller.scopes?.includes("read") !== true) {
          throw McpError.of("access_denied", "It needs the scope read", { requiredScopes: ["read"] });
        }
        await self.held;
        subscriptions.add(context);
      }
      context.notify({ method: "notifications/subscriptions/acknowledged", params: { notifications } });
      await new Promise((resolve) => context.signal.addEventListener("abort", resolve, { once: true }));
      subscriptions.delete(context);
      return { resultType: "complete" };
    },
  };
  return self;
}

let ids = 0;

async function session(
  server: SubscribableServer,
  first: typeof WIDE,
): Promise<AuthenticatedPeer & { ask(method: string): Promise<Loose> }> {
  const connection = await serveAuthenticatedPeer(server.handler, first);
  await connection.peer.handshake(NEWEST_SESSION.name);
  const ask = (method: string): Promise<Loose> =>
    connection.peer.request({ id: (ids += 1), method: `resources/${method}`, params: { uri: URI } });
  return { ...connection, ask };
}

const heard = ({ peer }: AuthenticatedPeer): number =>
  peer.received.filter(({ method }) => method === "notifications/resources/updated").length;

function update({ subscriptions }: SubscribableServer): void {
  for (const { notify } of subscriptions) notify({ method: "notifications/resources/updated", params: { uri: URI } });
}

it("a subscription of a session is granted with the scope, even if the session began without it", async () => {
  const server = subscribableServer();
  const { ask, setCaller } = await session(server, NARROW);
  expect(await ask("subscribe")).toMatchObject(DENIED);
  setCaller(WIDE);
  expect(await ask("subscribe")).toMatchObject({ result: {} });
  expect([...server.subscriptions].map(({ caller }) => caller.scopes)).toEqual([["read"]]);
});

it("a subscription of a session is refused without the scope, even if the session began with it", async () => {
  const server = subscribableServer();
  const { ask, setCaller } = await session(server, WIDE);
  setCaller(NARROW);
  expect(await ask("subscribe")).toMatchObject(DENIED);
  expect(server.subscriptions.size).toBe(0);
});

it("a subscription of a session is refused even if there is a granted one, which stays", async () => {
  const server = subscribableServer();
  const connection = await session(server, WIDE);
  expect(await connection.ask("subscribe")).toMatchObject({ result: {} });
  connection.setCaller(NARROW);
  expect(await connection.ask("subscribe")).toMatchObject(DENIED);
  update(server);
  await eventually(() => expect(heard(connection)).toBe(1));
  expect(await connection.ask("unsubscribe")).toMatchObject({ result: {} });
  expect(server.subscriptions.size).toBe(0);
});

it("a subscription of a session replaces the previous one, so that there is never more than one", async () => {
  const server = subscribableServer();
  const connection = await session(server, WIDE);
  for (const _ of [1, 2, 3]) expect(await connection.ask("subscribe")).toMatchObject({ result: {} });
  await eventually(() => expect(server.subscriptions.size).toBe(1));
  const together = await Promise.all([connection.ask("subscribe"), connection.ask("subscribe")]);
  expect(together).toMatchObject([{ result: {} }, { result: {} }]);
  await eventually(() => expect(server.subscriptions.size).toBe(1));
  update(server);
  await eventually(() => expect(heard(connection)).toBe(1));
});

it("a subscription of a session ends with unsubscribe, even if it is not granted yet", async () => {
  const server = subscribableServer();
  const connection = await session(server, WIDE);
  await connection.ask("subscribe");
  let grant: () => void = () => undefined;
  server.held = new Promise((resolve) => {
    grant = resolve;
  });
  const late = connection.ask("subscribe");
  expect(await connection.ask("unsubscribe")).toMatchObject({ result: {} });
  expect(await late).toMatchObject({ error: { message: expect.stringContaining("The subscription is over") } });
  grant();
  update(server);
  expect(await connection.ask("unsubscribe")).toMatchObject({ result: {} });
  expect(heard(connection)).toBe(0);
});
