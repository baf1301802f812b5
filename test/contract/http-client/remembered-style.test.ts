// What the client has found out of an end it does not ask again: the next one that connects goes straight to the style
// that was found. What is no longer true is found out anew, and what could not be found out is not remembered.

import { describe, expect, it } from "vitest";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { status } from "../../support/faulty-server/faults.ts";
import { connectTo, LEGACY_SSE, startServer, outcome, STYLES, textOf } from "./fixture.ts";

const SESSION = STYLES["sessions"] ?? {};

describe("an end that is met again", () => {
  it("in exchanges is asked once, as the first time", async () => {
    const server = await startServer({ style: "stateless" });
    await connectTo(server);
    await connectTo(server);
    expect(server.operations).toEqual(["server/discover", "server/discover"]);
  });

  it("in sessions is shaken hands with at once", async () => {
    const server = await startServer(SESSION);
    await connectTo(server);
    await server.untilSubscribed();
    const before = server.requests.length;
    const client = await connectTo(server);
    await server.until(() => server.count("GET") === 2);
    expect(server.operations.slice(before)).toEqual(["initialize", "notifications/initialized", "GET"]);
    expect(client.revision).toBe(NEWEST_SESSION.name);
  });

  it("at the old pair of addresses is gone to at once", async () => {
    const server = await startServer(LEGACY_SSE);
    await connectTo(server);
    await server.until(() => server.count("notifications/initialized") === 1);
    const before = server.requests.length;
    const client = await connectTo(server);
    await server.until(() => server.count("notifications/initialized") === 2);
    expect(server.operations.slice(before)).toEqual(["GET", "initialize", "notifications/initialized"]);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
  });

  it.each([
    ["sessions", "stateless", NEWEST.name],
    ["exchanges", "session", NEWEST_SESSION.name],
    ["exchanges", "old", undefined],
    ["sessions", "old", undefined],
  ] as const)("and no longer speaks %s is asked anew, and found to speak by %s", async (was, is, revision) => {
    const server = await startServer(STYLES[was] ?? {});
    const first = await connectTo(server);
    await first.close();
    await server.restart(is);
    const client = await connectTo(server);
    if (revision !== undefined) expect(client.revision).toBe(revision);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(server.backend.runCount("a")).toBe(1);
  });

  it("that was old and is renewed is found too", async () => {
    const server = await startServer(LEGACY_SSE);
    await (await connectTo(server)).close();
    await server.restart("stateless");
    const client = await connectTo(server);
    expect(client.revision).toBe(NEWEST.name);
  });

  it("is not taken for what it was while it could not be asked", async () => {
    const server = await startServer({ style: "stateless" });
    server.inject("*", status(503), 20);
    await outcome(connectTo(server));
    server.clearFaults();
    const client = await connectTo(server);
    expect(client.revision).toBe(NEWEST.name);
    expect(server.operations.at(-1)).toBe("server/discover");
  });
});
