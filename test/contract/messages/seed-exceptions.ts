// Exceptions from the seeds, each with a reason: pieces in braces that are not golden messages, and values where our answer
// differs. The test fails if a piece is neither here nor in a golden file, or if an exception is no longer needed.

export interface LeftOut {
  /** The number of the seed. */
  readonly seed: string;
  /** Where the piece begins. All pieces of a line are left out together. */
  readonly line: number;
  /** The beginning of the first piece on the line, to detect a shifted line. */
  readonly begins: string;
  readonly reason: string;
}

const ELIDED = "Schematic: a part is written as `...`, so it is not JSON.";
const FORM = "Schematic: shows the form of a message with made-up names.";
const SIGNATURE = "A TypeScript signature, not a message; other transcripts use the methods.";

export const LEFT_OUT: readonly LeftOut[] = [
  { seed: "000", line: 21, begins: '{\n  "jsonrpc"', reason: ELIDED },
  { seed: "000", line: 270, begins: '{"jsonrpc":"2.0","id":1,"method":"initialize"', reason: ELIDED },
  { seed: "000", line: 271, begins: '{"jsonrpc":"2.0","id":1,"result"', reason: ELIDED },
  {
    seed: "000",
    line: 313,
    begins: '{"jsonrpc":"2.0","id":2,"result"',
    reason: `${ELIDED} Line 118 has the complete message.`,
  },
  { seed: "000", line: 354, begins: '{\n  "mcpServers"', reason: "The configuration file of a client, not a message." },
  { seed: "000", line: 391, begins: '{"jsonrpc":"2.0",...}', reason: ELIDED },
  { seed: "001", line: 76, begins: '{\n  "jsonrpc"', reason: FORM },
  { seed: "001", line: 87, begins: '{\n  "jsonrpc"', reason: FORM },
  { seed: "001", line: 97, begins: '{\n  "jsonrpc"', reason: FORM },
  { seed: "003", line: 134, begins: "{ resources", reason: SIGNATURE },
  { seed: "003", line: 137, begins: "{ uri", reason: SIGNATURE },
  { seed: "003", line: 140, begins: "{ uri", reason: SIGNATURE },
  { seed: "003", line: 143, begins: "{ uri", reason: SIGNATURE },
  { seed: "003", line: 146, begins: "{}", reason: SIGNATURE },
  { seed: "003", line: 147, begins: "{ uri", reason: SIGNATURE },
  { seed: "003", line: 154, begins: "{ tools", reason: SIGNATURE },
  { seed: "003", line: 157, begins: "{\n  name", reason: SIGNATURE },
  { seed: "003", line: 160, begins: "{ content", reason: SIGNATURE },
  { seed: "003", line: 163, begins: "{}", reason: SIGNATURE },
  { seed: "003", line: 170, begins: "{ prompts", reason: SIGNATURE },
  { seed: "003", line: 173, begins: "{\n  name", reason: SIGNATURE },
  { seed: "003", line: 176, begins: "{ messages", reason: SIGNATURE },
  { seed: "003", line: 179, begins: "{}", reason: SIGNATURE },
  {
    seed: "003",
    line: 187,
    begins: "{\n  // JSON-RPC 2.0 standard",
    reason:
      "A table of codes in TypeScript. The added messages of the transcript `errors` have those that the server can cause; src/dialogue/calls/errors.test.ts has all.",
  },
  { seed: "003", line: 229, begins: '{"jsonrpc":"2.0","id":1,"result"', reason: ELIDED },
  { seed: "004", line: 21, begins: '{\n  "jsonrpc"', reason: FORM },
  { seed: "004", line: 33, begins: '{\n  "jsonrpc"', reason: FORM },
  { seed: "004", line: 44, begins: '{\n  "jsonrpc"', reason: FORM },
  { seed: "004", line: 57, begins: '{\n  "jsonrpc"', reason: FORM },
];

export interface Exception {
  /** The number of the seed. */
  readonly seed: string;
  /** The line of the message in the seed. */
  readonly line: number;
  /** A JSON pointer to the value that differs. */
  readonly path: string;
  /** What is found there, as JSON. */
  readonly found: RegExp;
  /** The start of the server, if others have no such difference. */
  readonly start?: RegExp;
  readonly reason: string;
}

const CURSOR = "A placeholder instead of a cursor. The list has one page, so there is none.";
const MINIMAL = "Shows a flow with the least that a server can answer. This server has what lines 120 and 178 show.";
const CONTENTS =
  "The contents of a resource have a `uri` and no `type` in every revision; content blocks have a `type`.";

export const EXCEPTIONS: readonly Exception[] = [
  {
    seed: "000",
    line: 180,
    path: "/result/content/0/text",
    found:
      /^"\[ERROR\] DIVISION-BY-ZERO\\narithmetic error DIVISION-BY-ZERO signalled\\n.*\\n\\n\[Backtrace\]\\n0: .*\(\/ 1 0\)/,
    reason: "The message and the frames are those of SBCL; the seed leaves the other frames out with `...`.",
  },
  {
    seed: "000",
    line: 242,
    path: "/result/content/0/text",
    found: /^"\[ERROR\] CONDITION-TYPE\\nError message\.\.\.\\n\\n\[Backtrace\]\\n\(top level\)"$/,
    reason: "Schematic. Line 180 shows that types are in upper case and that there is an empty line.",
  },
  {
    seed: "002",
    line: 23,
    path: "/result/tools/length",
    found: /^1$/,
    reason: "Shows the form of a response. Line 139 has the list of this server.",
  },
  {
    seed: "002",
    line: 199,
    path: "/result/content/0/text",
    found: /^"Error: The variable foo is not defined"$/,
    reason: "The seed shows no request, and makes up the text. The engine names the variable.",
  },
  { seed: "002", line: 260, path: "/result/contents/0/type", found: /^undefined$/, reason: CONTENTS },
  { seed: "002", line: 260, path: "/result/contents/0/uri", found: /^"pharo:\/\/system\/version"$/, reason: CONTENTS },
  {
    seed: "002",
    line: 260,
    path: "/result/contents/0/mimeType",
    found: /^"text\/plain"$/,
    reason: "The list of line 224 has this type for the resource, so its contents have it too.",
  },
  {
    seed: "002",
    line: 260,
    path: "/result/contents/0/text",
    found: /^"Amber [\d.]+"$/,
    start: /--live/,
    reason: "The sessions run on Amber. The example has the text of the seed.",
  },
  { seed: "004", line: 86, path: "/result/capabilities/resources", found: /^\{\}$/, reason: MINIMAL },
  { seed: "004", line: 86, path: "/result/capabilities/prompts", found: /^\{\}$/, reason: MINIMAL },
  {
    seed: "004",
    line: 86,
    path: "/result/serverInfo",
    found: /^\{"name":"mcp-chain-server","version":"1\.0\.0"\}$/,
    reason: `${MINIMAL} The specification requires serverInfo.`,
  },
  { seed: "004", line: 89, path: "/result/tools/length", found: /^1$/, reason: MINIMAL },
  { seed: "004", line: 178, path: "/result/nextCursor", found: /^undefined$/, reason: CURSOR },
  { seed: "004", line: 253, path: "/result/nextCursor", found: /^undefined$/, reason: CURSOR },
  { seed: "004", line: 317, path: "/result/nextCursor", found: /^undefined$/, reason: CURSOR },
  {
    seed: "004",
    line: 285,
    path: "/result/contents/0/blob",
    found: /^"[\w+/]+=*"$/,
    reason: "A placeholder instead of base64, which the specification requires.",
  },
];
