// The baseline for a server over stdio: lines in, JSON.parse, JSON.stringify, lines out, with
// one write for all that came at once.

import { StringDecoder } from "node:string_decoder";

const decoder = new StringDecoder("utf8");
let rest = "";
process.stdin.on("data", (chunk) => {
  const lines = (rest + decoder.write(chunk)).split("\n");
  rest = lines.pop() ?? "";
  let answers = "";
  for (const line of lines) {
    const { id, params } = JSON.parse(line);
    if (id === undefined) continue;
    const result = { content: [{ type: "text", text: params?.arguments?.text }], isError: false };
    answers += `${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`;
  }
  if (answers !== "") process.stdout.write(answers);
});
