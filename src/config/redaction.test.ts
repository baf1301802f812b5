// What came from a variable is named by the variable, whoever speaks of it: status, errors, and errors behind errors.

import { describe, expect, it } from "vitest";
import { upstream } from "../chain/upstream/upstream.ts";
import type { Context } from "../core/handler.ts";
import { ConnectionError } from "../core/errors.ts";
import { redactedUpstream, concealing } from "./redaction.ts";

const KEY = { value: "s3cr3t key", reference: "${KEY}" };
const SITE = { value: "https://example.com/p/s3cr3t?token=abcd", reference: "${SITE}" };

describe("what is shown", () => {
  it.each([
    ["http://127.0.0.1/s3cr3t%20key/mcp", "http://127.0.0.1/${KEY}/mcp"],
    ["https://example.com/p/s3cr3t", "${SITE}"],
    ["example.com refused /p/s3cr3t", "${SITE} refused ${SITE}"],
    ["it took 3 ms", "it took 3 ms"],
  ])("of %j is %j", (text, shown) => {
    expect(concealing([KEY, SITE, { value: "3", reference: "${N}" }])(text)).toBe(shown);
  });

  it("of an end that fails keeps what is known of the failure, but for the secret", async () => {
    const exit = new ConnectionError("closed", `${KEY.value} exited`, { evidence: `; it said ${KEY.value}` });
    const failure = new ConnectionError("closed", `The end failed: ${exit.message}`, {
      cause: exit,
      mayHaveRun: false,
    });
    const made = upstream(() => Promise.reject(failure));
    const one = redactedUpstream(made, concealing([KEY]));
    await expect(one({ method: "ping", params: {} }, {} as Context)).rejects.toMatchObject({
      ...{ kind: "closed", mayHaveRun: false, message: "The end failed: ${KEY} exited; it said ${KEY}" },
      cause: { message: "${KEY} exited; it said ${KEY}", evidence: "; it said ${KEY}" },
    });
    expect(one.status()).toEqual(made.status());
    await one.close();
    expect(made.status().state).toBe("closed");
  });

  it("of an end that answers with an error is the answer", async () => {
    const answer = new Error(KEY.value);
    const one = redactedUpstream(
      upstream(() => Promise.reject(answer)),
      concealing([KEY]),
    );
    await expect(one({ method: "ping", params: {} }, {} as Context)).rejects.toBe(answer);
  });
});
