// Our server with the clients that others wrote, in every revision that they speak.

import { converse, EXCHANGE, SESSIONS } from "./conversation.ts";
import { openSdk1 } from "./sdk-1-peer.ts";
import { openSdk2 } from "./sdk-2-peer.ts";

const newest = SESSIONS.at(-1);

for (const revision of SESSIONS) {
  converse({
    title: `the client of SDK 1.x, in ${revision}`,
    revision,
    client: "sdk-1",
    server: "catenary",
    // It offers the newest; a server that speaks only an older one answers with that.
    serverArgs: revision === newest ? [] : [revision],
    open: openSdk1,
  });
  converse({
    title: `the client of SDK 2.x, in ${revision}`,
    revision,
    client: "sdk-2",
    server: "catenary",
    // Left alone it offers the newest.
    open: (fixture) => openSdk2(fixture, revision === newest ? {} : { supportedProtocolVersions: [revision] }),
  });
}
converse({
  title: "the client of SDK 2.x, asked to negotiate",
  revision: EXCHANGE,
  client: "sdk-2",
  server: "catenary",
  open: (fixture) => openSdk2(fixture, { versionNegotiation: { mode: "auto" } }),
});
converse({
  title: `the client of SDK 2.x, pinned to ${EXCHANGE}`,
  revision: EXCHANGE,
  client: "sdk-2",
  server: "catenary",
  open: (fixture) => openSdk2(fixture, { versionNegotiation: { mode: { pin: EXCHANGE } } }),
});
