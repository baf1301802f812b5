// The baseline for a server over HTTP: reads the body, JSON.parse, JSON.stringify, one response; for `steps` a stream of
// two events.

import { once } from "node:events";
import { createServer } from "node:http";

const server = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (chunk) => (body += chunk));
  request.on("end", () => {
    const { id, params } = JSON.parse(body);
    const result = { content: [{ type: "text", text: params?.arguments?.text }], isError: false };
    const answer = JSON.stringify({ jsonrpc: "2.0", id, result });
    if (params?.name !== "steps") {
      response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(answer) });
      response.end(answer);
      return;
    }
    const progress = { progressToken: params._meta.progressToken, progress: 1, total: 2 };
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(
      `event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", method: "notifications/progress", params: progress })}\n\n`,
    );
    response.end(`event: message\ndata: ${answer}\n\n`);
  });
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
process.send?.({ url: `http://127.0.0.1:${server.address().port}/mcp` });
