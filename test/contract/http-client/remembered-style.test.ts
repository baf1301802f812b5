// What the client has found out of an end it does not ask again: the next one that connects goes straight to the style
// that was found. What is no longer true is found out anew, and what could not be found out is not remembered.

import { describe, expect, it } from "vitest";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { status } from "../../support/faulty-server/faults.ts";
import { joined, OLD, opened, outcome, STYLES, textOf } from "./fixture.ts";

const SESSION = STYLES["sessions"] ?? {};

describe("an end that is met again", () => {
  it("in exchanges is asked once, as the first time", async () => {
    const end = await opened({ style: "stateless" });
    await joined(end);
    await joined(end);
    expect(end.asked).toEqual(["server/discover", "server/discover"]);
  });

  it("in sessions is shaken hands with at once", async () => {
    const end = await opened(SESSION);
    await joined(end);
    await end.untilHeard();
    const before = end.visits.length;
    const client = await joined(end);
    await end.until(() => end.count("GET") === 2);
    expect(end.asked.slice(before)).toEqual(["initialize", "notifications/initialized", "GET"]);
    expect(client.revision).toBe(NEWEST_SESSION.name);
  });

  it("at the old pair of addresses is gone to at once", async () => {
    const end = await opened(OLD);
    await joined(end);
    await end.until(() => end.count("notifications/initialized") === 1);
    const before = end.visits.length;
    const client = await joined(end);
    await end.until(() => end.count("notifications/initialized") === 2);
    expect(end.asked.slice(before)).toEqual(["GET", "initialize", "notifications/initialized"]);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
  });

  it.each([
    ["sessions", "stateless", NEWEST.name],
    ["exchanges", "session", NEWEST_SESSION.name],
    ["exchanges", "old", undefined],
    ["sessions", "old", undefined],
  ] as const)("and no longer speaks %s is asked anew, and found to speak by %s", async (was, is, revision) => {
    const end = await opened(STYLES[was] ?? {});
    const first = await joined(end);
    await first.close();
    await end.restart(is);
    const client = await joined(end);
    if (revision !== undefined) expect(client.revision).toBe(revision);
    expect(textOf(await client.callTool("run", { key: "a" }))).toBe("ran a");
    expect(end.desk.runsOf("a")).toBe(1);
  });

  it("that was old and is renewed is found too", async () => {
    const end = await opened(OLD);
    await (await joined(end)).close();
    await end.restart("stateless");
    const client = await joined(end);
    expect(client.revision).toBe(NEWEST.name);
  });

  it("is not taken for what it was while it could not be asked", async () => {
    const end = await opened({ style: "stateless" });
    end.lay("*", status(503), 20);
    await outcome(joined(end));
    end.clear();
    const client = await joined(end);
    expect(client.revision).toBe(NEWEST.name);
    expect(end.asked.at(-1)).toBe("server/discover");
  });
});
