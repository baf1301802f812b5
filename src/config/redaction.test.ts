// Values of variables are hidden in status, errors and the causes of errors.

import { expect, it } from "vitest";
import { upstream } from "../chain/upstream/upstream.ts";
import type { Context } from "../core/handler.ts";
import { ConnectionError } from "../core/errors.ts";
import { createRedactor, redactUpstream } from "./redaction.ts";

const KEY = { value: "s3cr3t key", reference: "${KEY}" };
const SITE = { value: "https://example.com/p/s3cr3t?token=abcd", reference: "${SITE}" };

it.each([
  ["http://127.0.0.1/s3cr3t%20key/mcp", "http://127.0.0.1/${KEY}/mcp"],
  ["https://example.com/p/s3cr3t", "${SITE}"],
  ["example.com refused /p/s3cr3t", "${SITE} refused ${SITE}"],
  ["it took 3 ms", "it took 3 ms"],
])("redaction of %j gives %j", (text, shown) => {
  expect(createRedactor([KEY, SITE, { value: "3", reference: "${N}" }])(text)).toBe(shown);
});

it("redaction keeps the details of a connection error", async () => {
  const exit = new ConnectionError("closed", `${KEY.value} exited`, { diagnostics: `; its stderr ${KEY.value}` });
  const failure = new ConnectionError("closed", `The upstream failed: ${exit.message}`, {
    cause: exit,
    mayHaveRun: false,
    subject: "The upstream",
  });
  const made = upstream(() => Promise.reject(failure));
  const one = redactUpstream(made, createRedactor([KEY]));
  await expect(one({ method: "ping", params: {} }, {} as Context)).rejects.toMatchObject({
    ...{
      kind: "closed",
      mayHaveRun: false,
      subject: "The upstream",
      message: "The upstream failed: ${KEY} exited; its stderr ${KEY}",
    },
    cause: { message: "${KEY} exited; its stderr ${KEY}", diagnostics: "; its stderr ${KEY}" },
  });
  expect(one.status()).toEqual(made.status());
  await one.close();
  expect(made.status().state).toBe("closed");
});

it("redaction does not change errors from the server", async () => {
  const answer = new Error(KEY.value);
  const one = redactUpstream(
    upstream(() => Promise.reject(answer)),
    createRedactor([KEY]),
  );
  await expect(one({ method: "ping", params: {} }, {} as Context)).rejects.toBe(answer);
});
