// A style that is preferred of an end over HTTP: what is asked first, what is found where the end speaks only the other,
// and that what was found for one preference is not taken for the other.

import { afterEach, describe, expect, it } from "vitest";
import { openTarget } from "../../../src/client/connect.ts";
import type { Context } from "../../../src/core/handler.ts";
import type { ServerConnection, ServerConnectionOptions } from "../../../src/dialogue/connect.ts";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { status } from "../../support/faulty-server/faults.ts";
import type { FaultyServer } from "../../support/faulty-server/server.ts";
import { OLD, opened, outcome, STYLES } from "./fixture.ts";

const home: Context = {
  revision: NEWEST.name,
  caller: { capabilities: {} },
  signal: new AbortController().signal,
  notify: () => undefined,
  ask: () => Promise.reject(new Error("Nobody is asked")),
};

const ends: ServerConnection[] = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end.close();
});

async function found(end: FaultyServer, style?: ServerConnectionOptions["style"]): Promise<ServerConnection> {
  const how: ServerConnectionOptions = { info: { name: "us", version: "1" }, capabilities: {}, defaultContext: home };
  const { opened: one } = await openTarget(end.url, {}, style === undefined ? how : { ...how, style });
  ends.push(one);
  return one;
}

describe("an end over HTTP of which a session is preferred", () => {
  it("and that speaks both is shaken hands with, and only then", async () => {
    const end = await opened({ style: "both" });
    expect(await found(end, "session")).toMatchObject({ revision: NEWEST_SESSION, attributesRequests: true });
    expect(end.asked[0]).toBe("initialize");
    expect(end.asked).not.toContain("server/discover");
    expect(await found(end)).toMatchObject({ revision: NEWEST, attributesRequests: true });
    expect(await found(end, "session")).toMatchObject({ revision: NEWEST_SESSION });
    expect(end.count("server/discover")).toBe(1);
  });

  it("and that speaks exchanges only is spoken to in exchanges, the next time at once", async () => {
    const end = await opened({ style: "stateless" });
    expect(await found(end, "session")).toMatchObject({ revision: NEWEST });
    expect(end.asked).toEqual(["initialize", "server/discover"]);
    await found(end, "session");
    expect(end.asked).toEqual(["initialize", "server/discover", "server/discover"]);
  });

  it("and that has the old pair of addresses is found there, and does not tell whose its questions are", async () => {
    const end = await opened(OLD);
    expect(await found(end, "session")).toMatchObject({ attributesRequests: false });
    expect(end.asked.slice(0, 3)).toEqual(["initialize", "server/discover", "GET"]);
  });

  it("and that has come to speak the other style since is found anew", async () => {
    const end = await opened(STYLES["sessions"] ?? {});
    await (await found(end, "session")).close();
    await end.restart("stateless");
    expect(await found(end, "session")).toMatchObject({ revision: NEWEST });
  });

  it("and that wants to know who we are is asked nothing else", async () => {
    const end = await opened({ style: "both" });
    end.lay("*", status(401), 20);
    expect((await outcome(found(end, "session"))).error).toMatchObject({ kind: "unauthorized" });
    expect(end.asked).toEqual(["initialize"]);
  });
});
