// The official suite through a gateway to a server at a URL that speaks every revision, and to one that speaks only an old one.

import { WITH_REQUIREMENTS, WITHOUT_REQUIREMENTS } from "../server-scenarios.ts";
import { testThroughGateway } from "./chain-tests.ts";

for (const revision of WITH_REQUIREMENTS) testThroughGateway(revision, { transport: "http" });
for (const revision of WITHOUT_REQUIREMENTS) testThroughGateway(revision, { transport: "http", revisions: [revision] });
