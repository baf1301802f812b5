// What hides the secrets of a config in messages that are kept.

import { expect, it } from "vitest";
import { messageRedactor } from "./config-secrets.ts";
import type { Config } from "./load.ts";

function configWith(token: string): Config {
  return { upstreams: new Map(), callers: new Map(), listen: { token } } as unknown as Config;
}

it("hides what was a secret before the config was read again", () => {
  let config = configWith("first-secret");
  const redactor = messageRedactor(() => config);
  config = configWith("second-secret");
  expect(redactor().text("first-secret second-secret third-secret")).toBe("[redacted] [redacted] third-secret");
  config = configWith("third-secret");
  expect(redactor().text("first-secret second-secret third-secret")).toBe("[redacted] [redacted] [redacted]");
});
