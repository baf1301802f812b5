// Our client with the servers that others wrote, in every revision that they speak.

import { converse, EXCHANGE, SESSIONS } from "./conversation.ts";
import { openCatenary } from "./catenary-peer.ts";

for (const revision of SESSIONS) {
  for (const server of ["sdk-1", "sdk-2"] as const) {
    converse({
      title: `the server of ${server}, in ${revision}`,
      revision,
      client: "catenary",
      server,
      open: (fixture) => openCatenary(fixture, { revision }),
    });
  }
}
converse({
  title: "the server of sdk-1, asked what it speaks",
  revision: SESSIONS.at(-1) ?? "",
  client: "catenary",
  server: "sdk-1",
  open: (fixture) => openCatenary(fixture),
});
converse({
  title: `the server of sdk-2, in ${EXCHANGE}`,
  revision: EXCHANGE,
  client: "catenary",
  server: "sdk-2",
  open: (fixture) => openCatenary(fixture, { revision: EXCHANGE }),
});
