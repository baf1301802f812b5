// The official suite through a gateway with all built-in middleware at once, in both styles of the protocol. The options
// let everything pass, so that the suite sees only what middleware must not change.

import { MIDDLEWARE } from "../../../src/config/built-in.ts";
import { WITH_REQUIREMENTS } from "../server-scenarios.ts";
import { testThroughGateway } from "./chain-tests.ts";

/** A middleware that is not here has no options. */
const OPTIONS: Readonly<Record<string, unknown>> = {
  audit: { file: "audit.jsonl" },
  authorize: { rules: [{ allow: false, tools: ["none_*"] }], default: "allow" },
  cache: { tools: { none: { ttlMs: 1_000 } } },
  concurrency: { calls: 100 },
  confirm: { include: ["none_*"] },
  describe: { tools: { test_simple_text: { title: "Simple text" } } },
  filter: { tools: { exclude: ["none_*"] }, prompts: { exclude: ["none_*"] }, resources: { exclude: ["none://*"] } },
  inject: { tools: { "none_*": { arguments: { tenant: "acme" } } }, headers: { "x-tenant": "acme" } },
  log: { level: "error" },
  pin: { file: "pins.json" },
  "rate-limit": { calls: 100_000, per: "minute" },
  "read-only": { include: ["*"] },
  rename: { tools: { none: "nothing" } },
  search: { include: ["*"] },
  timeout: { totalMs: 120_000 },
};

const chain = [...MIDDLEWARE.keys()].map((name) => (name in OPTIONS ? { [name]: OPTIONS[name] } : name));

/** The suite adds a tool and a prompt while it runs, which `pin` holds. */
const expectedStderr = /test_temporary_(?:tool|prompt).*: new, so not shown/;

for (const revision of WITH_REQUIREMENTS) {
  testThroughGateway(revision, { transport: "http", chain, expectedStderr });
  testThroughGateway(revision, { transport: "stdio", chain, expectedStderr });
}
