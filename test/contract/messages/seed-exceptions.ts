// Exceptions from the seeds, each with a reason: pieces in braces that are not golden messages, and fields where our answer
// differs. Tests fail if a piece is neither here nor in a golden file, or if an exception is no longer needed.

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
    reason: "A table of codes in TypeScript. The added messages of the transcript `errors` have all of them.",
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
  /** A JSON pointer to the field that differs. */
  readonly path: string;
  readonly reason: string;
}

const NAMED = "The message names the method, as in seed 002; the seeds differ in this text.";
const KIND = "`data` is an object with `kind` and the name, for programs; seed 002 has no `data`.";

export const EXCEPTIONS: readonly Exception[] = [
  { seed: "000", line: 330, path: "/error/message", reason: NAMED },
  { seed: "000", line: 330, path: "/error/data", reason: KIND },
  {
    seed: "003",
    line: 45,
    path: "/error/message",
    reason: "The message has the details too, which hosts show to the model.",
  },
  {
    seed: "002",
    line: 260,
    path: "/result/contents/0/type",
    reason: "The contents of a resource have a `uri` and no `type` in every revision; content blocks have a `type`.",
  },
  {
    seed: "004",
    line: 285,
    path: "/result/contents/0/blob",
    reason: "The seed has a placeholder instead of base64; the official schema requires base64.",
  },
];
