// A style that is preferred of an end over HTTP: what is asked first, what is found where the end speaks only the other,
// and that what was found for one preference is not taken for the other.

import { afterEach, describe, expect, it } from "vitest";
import { openTarget } from "../../../src/client/connect.ts";
import type { Context } from "../../../src/core/handler.ts";
import type { ServerConnection, ServerConnectionOptions } from "../../../src/dialogue/connect.ts";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { status } from "../../support/faulty-server/faults.ts";
import type { FaultyServer } from "../../support/faulty-server/server.ts";
import { LEGACY_SSE, startServer, outcome, STYLES } from "./fixture.ts";

const home: Context = {
  revision: NEWEST.name,
  caller: { capabilities: {} },
  signal: new AbortController().signal,
  notify: () => undefined,
  ask: () => Promise.reject(new Error("Nobody is asked")),
};

const servers: ServerConnection[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function found(server: FaultyServer, style?: ServerConnectionOptions["style"]): Promise<ServerConnection> {
  const how: ServerConnectionOptions = { info: { name: "us", version: "1" }, capabilities: {}, defaultContext: home };
  const { opened: one } = await openTarget(server.url, {}, style === undefined ? how : { ...how, style });
  servers.push(one);
  return one;
}

describe("an end over HTTP of which a session is preferred", () => {
  it("and that speaks both is shaken hands with, and only then", async () => {
    const server = await startServer({ style: "both" });
    expect(await found(server, "session")).toMatchObject({ revision: NEWEST_SESSION, attributesRequests: true });
    expect(server.operations[0]).toBe("initialize");
    expect(server.operations).not.toContain("server/discover");
    expect(await found(server)).toMatchObject({ revision: NEWEST, attributesRequests: true });
    expect(await found(server, "session")).toMatchObject({ revision: NEWEST_SESSION });
    expect(server.count("server/discover")).toBe(1);
  });

  it("and that speaks exchanges only is spoken to in exchanges, the next time at once", async () => {
    const server = await startServer({ style: "stateless" });
    expect(await found(server, "session")).toMatchObject({ revision: NEWEST });
    expect(server.operations).toEqual(["initialize", "server/discover"]);
    await found(server, "session");
    expect(server.operations).toEqual(["initialize", "server/discover", "server/discover"]);
  });

  it("and that has the old pair of addresses is found there, and does not tell whose its questions are", async () => {
    const server = await startServer(LEGACY_SSE);
    expect(await found(server, "session")).toMatchObject({ attributesRequests: false });
    expect(server.operations.slice(0, 3)).toEqual(["initialize", "server/discover", "GET"]);
  });

  it("and that has come to speak the other style since is found anew", async () => {
    const server = await startServer(STYLES["sessions"] ?? {});
    await (await found(server, "session")).close();
    await server.restart("stateless");
    expect(await found(server, "session")).toMatchObject({ revision: NEWEST });
  });

  it("and that wants to know who we are is asked nothing else", async () => {
    const server = await startServer({ style: "both" });
    server.inject("*", status(401), 20);
    expect((await outcome(found(server, "session"))).error).toMatchObject({ kind: "unauthorized" });
    expect(server.operations).toEqual(["initialize"]);
  });
});
