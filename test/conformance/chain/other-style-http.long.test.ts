// The official suite through a chain to a server at an address that speaks only the other style: sessions to callers of exchanges,
// exchanges to callers of sessions.

import { ALONE, NEWEST, WITH_SET } from "../server-scenarios.ts";
import { chainRun } from "./chain-tests.ts";

for (const revision of WITH_SET) {
  const others = revision === NEWEST ? [...WITH_SET, ...ALONE].filter((name) => name !== NEWEST) : [NEWEST];
  chainRun(revision, { wire: "http", revisions: others });
}
