// Bad and odd inputs where there is more or less than a plain session: in the revision that has batches, and before
// any session, where requests may also stand by themselves.

import {
  bytes,
  echo,
  error,
  INVALID,
  invalid,
  METHOD,
  missing,
  NONE,
  notification,
  PARAMS,
  ping,
  request,
  result,
  row,
} from "./row.ts";
import type { Row } from "./row.ts";

/** On a session in the revision that has batches. */
export const WITH_BATCHES: readonly Row[] = [
  row("I-12 an empty batch", "[]", invalid("null", "Empty batch")),
  row("I-12 a batch in a batch", `[[${ping("1")}]]`, {
    kind: "batch",
    answers: [invalid("null", "A batch inside a batch is not a message")],
  }),
  row("I-12 notifications only", `[${notification("notifications/nothing", "{}")}]`, NONE),
  row("I-12 answers only", '[{"jsonrpc":"2.0","id":99,"result":{}}]', NONE),
  row(
    "I-12 a mixed batch",
    `[${ping("1.0")},1,${notification("x", "{}")},${request("nope", "{}", '"n"')},{"id":3,"method":"ping"}]`,
    {
      kind: "batch",
      answers: [
        result("1.0"),
        invalid("null", "A message must be an object"),
        error(METHOD, '"n"'),
        missing("3", "jsonrpc"),
      ],
    },
  ),
  row("I-12 one id twice", `[${echo('"a"')},${echo('"b"')}]`, {
    kind: "batch",
    answers: [result("1", '"text":"a"'), error(INVALID, "1", "in flight")],
  }),
  row("I-12 initialize in a batch", `[${request("initialize", '{"protocolVersion":"2025-03-26"}')}]`, {
    kind: "batch",
    answers: [error(INVALID, "1", "batch")],
  }),
  row(
    "I-12 101 messages",
    `[${Array.from({ length: 101 }, () => "1").join()}]`,
    invalid("null", "Batch of 101 messages is over the limit of 100 (limits.batch)"),
  ),
];

const META = "io.modelcontextprotocol/";

/** Before anything was said. */
export const BEFORE_SESSION: readonly Row[] = [
  row("I-03 a BOM before the first line", bytes([0xef, 0xbb, 0xbf], ping("1")), result()),
  row("a request before initialize", request("tools/list"), error(INVALID, "1", "Server not initialized")),
  row("a batch before initialize", `[${ping("1")}]`, error(INVALID, "null", "initialize")),
  row("initialize without a revision", request("initialize"), error(PARAMS, "1", "protocolVersion")),
  row(
    "initialize with a number for a revision",
    request("initialize", '{"protocolVersion":1}'),
    error(PARAMS, "1", "protocolVersion"),
  ),
  row(
    "initialize with capabilities that are none",
    request("initialize", '{"protocolVersion":"2025-11-25","capabilities":[]}'),
    error(PARAMS, "1", "capabilities"),
  ),
  row(
    "server/discover that says nothing of itself",
    request("server/discover"),
    error(PARAMS, "1", `${META}protocolVersion`),
  ),
  row(
    "a revision that nobody knows",
    request("tools/list", `{"_meta":{"${META}protocolVersion":"1999-01-01","${META}clientCapabilities":{}}}`),
    error(-32022, "1"),
  ),
  row(
    "a revision that is no text",
    request("tools/list", `{"_meta":{"${META}protocolVersion":1,"${META}clientCapabilities":{}}}`),
    error(PARAMS, "1"),
  ),
  row(
    "no capabilities beside the revision",
    request("tools/list", `{"_meta":{"${META}protocolVersion":"2026-07-28"}}`),
    error(PARAMS, "1", "clientCapabilities"),
  ),
  row(
    "a log level that does not exist",
    request(
      "tools/list",
      `{"_meta":{"${META}protocolVersion":"2026-07-28","${META}clientCapabilities":{},"${META}logLevel":"loud"}}`,
    ),
    error(PARAMS, "1", "logLevel"),
  ),
  row(
    "a state that nobody gave",
    request(
      "tools/call",
      `{"name":"echo","arguments":{"text":"a"},"requestState":"forged","_meta":{"${META}protocolVersion":"2026-07-28","${META}clientCapabilities":{}}}`,
    ),
    error(PARAMS, "1"),
  ),
  row(
    "ping in the revision that has none",
    request("ping", `{"_meta":{"${META}protocolVersion":"2026-07-28","${META}clientCapabilities":{}}}`),
    error(METHOD, "1"),
  ),
];
