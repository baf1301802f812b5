// What stands in braces in a seed and is no golden message, each with the reason. A test holds that every piece
// of every block of the seeds is either here or in a golden file, so nothing is missed in silence.


export interface LeftOut {
  /** The number of the seed. */
  readonly seed: string;
  /** Where the piece begins; several pieces on one line are left out together. */
  readonly line: number;
  /** How the line's first piece begins, so that a shifted line is noticed. */
  readonly begins: string;
  readonly reason: string;
}

const ELIDED = "Schematic: a part is written as `...`, so it is no JSON.";
const FORM = "Schematic: shows the form of a message with made-up names, no exchange that could take place.";
const SIGNATURE = "A signature in TypeScript's manner, no message; the methods are played in other transcripts.";

export const LEFT_OUT: readonly LeftOut[] = [
  { seed: "000", line: 21, begins: '{\n  "jsonrpc"', reason: ELIDED },
  { seed: "000", line: 270, begins: '{"jsonrpc":"2.0","id":1,"method":"initialize"', reason: ELIDED },
  { seed: "000", line: 271, begins: '{"jsonrpc":"2.0","id":1,"result"', reason: ELIDED },
  { seed: "000", line: 313, begins: '{"jsonrpc":"2.0","id":2,"result"', reason: `${ELIDED} Line 118 shows it whole.` },
  { seed: "000", line: 354, begins: '{\n  "mcpServers"', reason: "A client's configuration file, no message." },
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
      "A table of codes in TypeScript. Its last four contradict those of seed 004, which the profile `chain` follows.",
  },
  { seed: "003", line: 229, begins: '{"jsonrpc":"2.0","id":1,"result"', reason: ELIDED },
  { seed: "004", line: 21, begins: '{\n  "jsonrpc"', reason: FORM },
  { seed: "004", line: 33, begins: '{\n  "jsonrpc"', reason: FORM },
  { seed: "004", line: 44, begins: '{\n  "jsonrpc"', reason: FORM },
  { seed: "004", line: 57, begins: '{\n  "jsonrpc"', reason: FORM },
];

// Where our answer is not what a seed shows, and why. Each exception names one message of one seed and one field
// of it; a test fails where an exception is not needed any more.

export interface Exception {
  /** The number of the seed. */
  readonly seed: string;
  /** Where the message stands in the seed. */
  readonly line: number;
  /** A JSON pointer to the field that differs. */
  readonly path: string;
  readonly reason: string;
}

const NAMED = "The message names the method, as seed 002 has it; the seeds differ in this text.";
const KIND =
  "`data` is an object with `kind` and the name, so that a program can tell what happened; seed 002 has none.";

export const EXCEPTIONS: readonly Exception[] = [
  { seed: "000", line: 330, path: "/error/message", reason: NAMED },
  { seed: "000", line: 330, path: "/error/data", reason: KIND },
  { seed: "004", line: 408, path: "/error/message", reason: NAMED },
  { seed: "004", line: 408, path: "/error/data", reason: KIND },
  { seed: "004", line: 421, path: "/error/message", reason: "The message names the tool after the seed's text." },
  { seed: "004", line: 421, path: "/error/data", reason: KIND },
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
    reason: "The seed's text is a placeholder and no base64; the official schema asks for base64.",
  },
];
