// The baseline for a gateway: node:http in, the id replaced by one of its own, one line to the stdin of one child, and the
// answer back with the id of the request. It checks nothing and knows no protocol.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { StringDecoder } from "node:string_decoder";
import { fileURLToPath } from "node:url";

const child = spawn(process.execPath, [fileURLToPath(new URL("catenary-stdio.js", import.meta.url))], {
  stdio: ["pipe", "pipe", "inherit"],
});
/** The id and the response of each request that waits for its answer, by the id that the child got. */
const waiting = new Map();
let lastId = 0;

const decoder = new StringDecoder("utf8");
let rest = "";
child.stdout.on("data", (chunk) => {
  const lines = (rest + decoder.write(chunk)).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) {
    const message = JSON.parse(line);
    const { id, response } = waiting.get(message.id);
    waiting.delete(message.id);
    message.id = id;
    const answer = JSON.stringify(message);
    response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(answer) });
    response.end(answer);
  }
});

const server = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (chunk) => (body += chunk));
  request.on("end", () => {
    const message = JSON.parse(body);
    lastId += 1;
    waiting.set(lastId, { id: message.id, response });
    message.id = lastId;
    child.stdin.write(`${JSON.stringify(message)}\n`);
  });
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
process.send?.({ url: `http://127.0.0.1:${server.address().port}/mcp` });
process.once("disconnect", () => child.kill());
