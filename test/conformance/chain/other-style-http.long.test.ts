// The official suite through a gateway to a server at a URL that speaks only the other style: sessions for stateless callers,
// stateless for callers with sessions.

import { NEWEST, WITH_REQUIREMENTS, WITHOUT_REQUIREMENTS } from "../server-scenarios.ts";
import { testThroughGateway } from "./chain-tests.ts";

const SESSION_REVISIONS = [...WITH_REQUIREMENTS, ...WITHOUT_REQUIREMENTS].filter((name) => name !== NEWEST);

for (const revision of WITH_REQUIREMENTS) {
  testThroughGateway(revision, { transport: "http", revisions: revision === NEWEST ? SESSION_REVISIONS : [NEWEST] });
}
