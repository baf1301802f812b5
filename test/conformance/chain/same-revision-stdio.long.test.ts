// The official suite through a chain to a program that speaks every revision, and to one that speaks only an old one.

import { ALONE, WITH_SET } from "../server-scenarios.ts";
import { chainRun } from "./chain-tests.ts";

for (const revision of WITH_SET) chainRun(revision, { wire: "stdio" });
for (const revision of ALONE) chainRun(revision, { wire: "stdio", revisions: [revision] });
