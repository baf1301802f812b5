// Bad and odd inputs, each with its expected answer: in a session, in a session with batches, and before any session.

import {
  broken,
  bytes,
  call,
  echo,
  error,
  INVALID,
  invalid,
  METHOD,
  missing,
  NONE,
  notification,
  odd,
  PARAMS,
  ping,
  request,
  result,
  row,
  type Row,
} from "./bad-input-row.ts";

/** A request whose objects and arrays are nested `depth` deep. */
const nested = (depth: number): string =>
  call("echo", `{"text":"deep","more":${"[".repeat(depth - 3)}${"]".repeat(depth - 3)}}`);

const DEEP = "Nested deeper than 128 levels (limits.depth)";
const NO_UTF8 = broken("Invalid UTF-8");

const long = `"${"x".repeat(64 * 1024)}"`;
const digits = "7".repeat(1024 * 1024);

/** In a session of the newest session-style revision. */
export const IN_SESSION: readonly Row[] = [
  // Duplicate keys: the last one wins.
  row("I-01 two ids", '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', result("2")),
  row("I-01 two methods", '{"jsonrpc":"2.0","id":1,"method":"nope","method":"ping"}', result()),
  row("I-01 two revisions of JSON-RPC", '{"jsonrpc":"1.0","jsonrpc":"2.0","id":1,"method":"ping"}', result()),
  row("I-01 two arguments of one name", call("echo", '{"text":"a","text":"b"}'), result("1", '"text":"b"')),

  row(
    "I-02 __proto__ as the envelope",
    '{"jsonrpc":"2.0","id":1,"__proto__":{"method":"ping"}}',
    missing("1", "method"),
  ),
  ...["__proto__", "constructor", "toString", "hasOwnProperty"].flatMap((name) => [
    row(`I-02 ${name} as a tool`, call(name, "{}"), error(PARAMS, "1", `Tool not found: ${name}`)),
    row(`I-02 ${name} as a method`, request(name), error(METHOD, "1")),
    row(`I-02 ${name} as an id`, ping(`"${name}"`), result(`"${name}"`)),
  ]),
  row(
    "I-02 __proto__ as a prompt",
    request("prompts/get", '{"name":"__proto__"}'),
    error(PARAMS, "1", "Prompt not found"),
  ),
  row("I-02 __proto__ as a resource", request("resources/read", '{"uri":"__proto__"}'), error(-32002, "1")),
  row(
    "I-02 an argument inherited from __proto__",
    call("echo", '{"__proto__":{"text":"x"}}'),
    result("1", '"isError":true'),
  ),
  row(
    "I-02 a polluting argument",
    call("echo", '{"text":"a","constructor":{"prototype":{"polluted":1}}}'),
    result("1", '"text":"a"'),
  ),

  row("I-03 a BOM before a line", bytes([0xef, 0xbb, 0xbf], ping("1")), result()),
  row("I-03 two BOMs before a line", bytes([0xef, 0xbb, 0xbf, 0xef, 0xbb, 0xbf], ping("1")), broken()),

  row("I-04 a byte that is never UTF-8", bytes('{"jsonrpc":"2.0","id":1,"method":"', [0xff], '"}'), NO_UTF8),
  row("I-04 an overlong form", bytes('{"jsonrpc":"2.0","id":1,"method":"', [0xc0, 0x80], '"}'), NO_UTF8),
  row("I-04 a character cut short", bytes('{"jsonrpc":"2.0","id":1,"method":"', [0xe2, 0x82], '"}'), NO_UTF8),
  row("I-04 a surrogate as UTF-8", bytes('{"jsonrpc":"2.0","id":1,"method":"', [0xed, 0xa0, 0x80], '"}'), NO_UTF8),
  row(
    "I-04 a character split between two writes",
    [
      bytes('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"', [0xc2]),
      bytes([0xb0], '"}}}'),
    ],
    result("1", '"text":"°"'),
  ),

  row("I-05 half a surrogate pair, escaped", echo('"\\ud800"'), result("1", '"text":"\\ud800"')),
  row("I-05 half a surrogate pair as an id", ping('"\\ud800"'), result('"\\ud800"')),

  row("I-06 a NUL in a string", '{"jsonrpc":"2.0","id":1,"method":"a\u0000"}', broken()),
  row("I-06 a NUL, escaped", echo('"\\u0000"'), result("1", '"text":"\\u0000"')),
  row("I-06 a tab in a string", echo('"a\tb"'), broken()),
  row("I-06 a NUL alone", "\u0000", broken()),
  row("I-06 line separators of Unicode in a string", echo('"\u2028\u2029"'), result("1", '"text":"\u2028\u2029"')),

  row("I-07 CR LF", `${ping("1")}\r`, result()),
  row("I-07 CR between two messages", `${ping("1")}\r${ping("2")}`, broken()),
  row("I-07 an empty line", "", NONE),
  row("I-07 an empty line with CR", "\r", NONE),
  row("I-07 spaces and tabs", " \t  ", NONE),
  row("I-07 many empty lines", "\n\n\r\n\n", NONE),
  row("I-07 spaces around a message", `  ${ping("1")}  `, result()),

  row("I-08 128 levels", nested(128), result("1", '"text":"deep"')),
  row("I-08 129 levels", nested(129), invalid("1", DEEP)),
  row("I-08 4,097 levels", nested(4_097), invalid("1", DEEP)),
  row("I-08 100,000 arrays that are not closed", "[".repeat(100_000), invalid("null", DEEP)),
  row("I-08 5,000,000 arrays", "[".repeat(5_000_000), invalid("null", DEEP)),

  row("I-09 a number beyond doubles", call("echo", '{"text":"a","n":1e400}'), result("1", '"text":"a"')),
  row("I-09 minus zero", call("echo", '{"text":"a","n":-0}'), result("1", '"text":"a"')),
  row("I-09 a megabyte of digits", call("echo", `{"text":"a","n":${digits}}`), result("1", '"text":"a"')),
  row("I-09 a number instead of a string", echo("1"), result("1", '"isError":true')),

  ...["0", "-1", '"1"', '""', "9007199254740993", "-9007199254740993", "1.0", "1e3", "-0", digits, long].map((id) =>
    row(`I-10 the id ${id.slice(0, 30)}`, ping(id), result(id)),
  ),
  ...['"\\u0041"', '"a\\/b"', '"\\u00e9é"', '"\\"\\\\"'].map((id) =>
    row(`I-10 the id ${id}`, echo('"a"', id), result(id, '"text":"a"')),
  ),
  odd(row("I-10 the id 1.5", ping("1.5"), result("1.5"))),
  odd(row("I-10 the id 1e400", ping("1e400"), result("1e400"))),
  ...["null", "true", "{}", "[]"].map((id) =>
    row(`I-10 the id ${id}`, ping(id), invalid("null", "Invalid field: id must be a string or a number")),
  ),
  row("I-10 no id", '{"jsonrpc":"2.0","method":"tools/list"}', NONE),

  row("I-11 Method", '{"jsonrpc":"2.0","id":1,"Method":"ping"}', missing("1", "method")),
  row("I-11 JSONRPC", '{"JSONRPC":"2.0","id":1,"method":"ping"}', missing("1", "jsonrpc")),
  row("I-11 ID", '{"jsonrpc":"2.0","ID":1,"method":"ping"}', NONE),
  row("I-11 unknown keys", '{"jsonrpc":"2.0","id":1,"method":"ping","trace":[1],"_":null}', result()),

  row("I-12 an empty batch", "[]", invalid("null", "Empty batch")),
  row("I-12 a batch in a revision without batches", `[${ping("1")}]`, error(INVALID, "null", "batch")),
  row(
    "I-12 101 messages",
    `[${Array.from({ length: 101 }, (_, id) => ping(String(id))).join()}]`,
    invalid("null", "Batch of 101 messages is over the limit of 100 (limits.batch)"),
  ),

  row("I-13 no jsonrpc", '{"id":1,"method":"ping"}', missing("1", "jsonrpc")),
  ...['"1.0"', "2", '"2.00"', "null"].map((found) =>
    row(
      `I-13 jsonrpc ${found}`,
      `{"jsonrpc":${found},"id":1,"method":"ping"}`,
      invalid("1", "Invalid jsonrpc version"),
    ),
  ),

  row("I-14 result and error", '{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}', NONE),
  row("I-14 neither, and no method", '{"jsonrpc":"2.0","id":1}', missing("1", "method")),
  row("I-14 a response to no request", '{"jsonrpc":"2.0","id":99,"result":{}}', NONE),
  row(
    "I-14 an error response to no request",
    '{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}',
    NONE,
  ),
  row("I-14 an error that is a string", '{"jsonrpc":"2.0","id":1,"error":"x"}', NONE),
  row(
    "I-14 a method and a result",
    '{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}',
    invalid("1", "Invalid field: result is not allowed with method"),
  ),

  ...["[]", '"x"', "null", "1"].map((params) =>
    row(
      `I-15 params ${params}`,
      request("tools/list", params),
      invalid("1", "Invalid field: params must be an object (JSON-RPC also allows an array, MCP does not)"),
    ),
  ),
  row("I-15 a call without a name", request("tools/call"), error(PARAMS, "1", "name")),
  row("I-15 a name that is a number", request("tools/call", '{"name":1}'), error(PARAMS, "1", "name")),
  row("I-15 arguments in an array", call("echo", "[]"), error(PARAMS, "1", "arguments")),
  row("I-15 an unknown cursor", request("tools/list", '{"cursor":"forged"}'), error(PARAMS, "1", "cursor")),
  row("I-15 an unknown log level", request("logging/setLevel", '{"level":"loud"}'), error(PARAMS, "1", "level")),
  row("I-15 _meta that is an array", request("tools/list", '{"_meta":[]}'), error(PARAMS, "1", "_meta")),

  ...["{}", "[]", "true", "null"].map((token) =>
    row(
      `I-16 progressToken ${token}`,
      request("tools/list", `{"_meta":{"progressToken":${token}}}`),
      error(PARAMS, "1", "progressToken"),
    ),
  ),
  row(
    "I-16 progress for an unknown token",
    notification("notifications/progress", '{"progressToken":"?","progress":1}'),
    NONE,
  ),
  row("I-16 negative progress", notification("notifications/progress", '{"progressToken":"?","progress":-1}'), NONE),
  ...[
    '{"requestId":"?"}',
    "{}",
    '{"requestId":null}',
    '{"requestId":{}}',
    '{"requestId":[1]}',
    '{"requestId":true}',
  ].map((params) => row(`I-16 a cancellation with ${params}`, notification("notifications/cancelled", params), NONE)),

  ...["1", '"ping"', "null", "true"].map((value) =>
    row(`JSON that is not a message: ${value}`, value, invalid("null", "A message must be an object")),
  ),
  row("an empty object", "{}", missing("null", "jsonrpc")),
  ...[
    "hello",
    "{",
    "}",
    `${ping("1")}}`,
    `${ping("1")} ${ping("2")}`,
    "{'jsonrpc':'2.0'}",
    '{"jsonrpc":"2.0",}',
    "NaN",
    "Content-Length: 46",
  ].map((text) => row(`not JSON: ${text}`, text, broken())),
  row(
    "a method that is a number",
    '{"jsonrpc":"2.0","id":1,"method":1}',
    invalid("1", "Invalid field: method must be a string"),
  ),
  row("an empty method", request(""), error(METHOD, "1")),
  row("a method of 64 KiB", request("x".repeat(64 * 1024)), error(METHOD, "1")),
  row("an unknown notification", notification("notifications/nothing", "{}"), NONE),
  row("initialized as a request", request("initialized"), error(METHOD, "1")),
  row(
    "a second initialize",
    request("initialize", '{"protocolVersion":"2025-11-25"}'),
    error(INVALID, "1", "already initialized"),
  ),
];

/** In a session of the revision with batches. */
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

/** Before the first message. */
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
    "initialize with capabilities in an array",
    request("initialize", '{"protocolVersion":"2025-11-25","capabilities":[]}'),
    error(PARAMS, "1", "capabilities"),
  ),
  row("server/discover without `_meta`", request("server/discover"), error(PARAMS, "1", `${META}protocolVersion`)),
  row(
    "an unknown revision",
    request("tools/list", `{"_meta":{"${META}protocolVersion":"1999-01-01","${META}clientCapabilities":{}}}`),
    error(-32022, "1"),
  ),
  row(
    "a revision that is a number",
    request("tools/list", `{"_meta":{"${META}protocolVersion":1,"${META}clientCapabilities":{}}}`),
    error(PARAMS, "1"),
  ),
  row(
    "a revision without capabilities",
    request("tools/list", `{"_meta":{"${META}protocolVersion":"2026-07-28"}}`),
    error(PARAMS, "1", "clientCapabilities"),
  ),
  row(
    "an unknown log level",
    request(
      "tools/list",
      `{"_meta":{"${META}protocolVersion":"2026-07-28","${META}clientCapabilities":{},"${META}logLevel":"loud"}}`,
    ),
    error(PARAMS, "1", "logLevel"),
  ),
  row(
    "an unknown requestState",
    request(
      "tools/call",
      `{"name":"echo","arguments":{"text":"a"},"requestState":"forged","_meta":{"${META}protocolVersion":"2026-07-28","${META}clientCapabilities":{}}}`,
    ),
    error(PARAMS, "1"),
  ),
  row(
    "ping in a revision without ping",
    request("ping", `{"_meta":{"${META}protocolVersion":"2026-07-28","${META}clientCapabilities":{}}}`),
    error(METHOD, "1"),
  ),
];
