// The baseline for a server over stdio: lines in, JSON.parse, JSON.stringify, lines out.

import { StringDecoder } from "node:string_decoder";
import { reportCostAtExit } from "./report-cost.js";

reportCostAtExit();
const decoder = new StringDecoder("utf8");
let rest = "";
process.stdin.on("data", (chunk) => {
  const lines = (rest + decoder.write(chunk)).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) {
    const { id, params } = JSON.parse(line);
    const result = { content: [{ type: "text", text: params?.arguments?.text }], isError: false };
    process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
  }
});
