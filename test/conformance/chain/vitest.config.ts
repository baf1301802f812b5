// How `npm run conformance` is run: the official suite through the chain. Apart from the other tests, because without
// the chain the suite is among those already.

import type { ViteUserConfig } from "vitest/config";
import base from "../../../vitest.config.ts";

const config: ViteUserConfig = {
  test: {
    ...base.test,
    include: ["test/conformance/chain/*.conformance.ts"],
    globalSetup: ["test/conformance/chain/everything-program.ts"],
  },
};

export default config;
