// An empty chain as a program. Its first argument is the upstream as JSON: an address, or a command to start. It
// serves one caller on stdio and, with "--second", another on the socket that it inherits as file descriptor 3.

import { Socket } from "node:net";
import { chain } from "../../src/chain/chain.ts";
import { upstream } from "../../src/chain/upstream/upstream.ts";
import { type UpstreamTarget } from "../../src/chain/upstream/options.ts";
import { serve } from "../../src/serve.ts";

const [target = "", second] = process.argv.slice(2);
const gateway = chain().to(upstream(JSON.parse(target) as UpstreamTarget, { name: "behind" }));
if (second === "--second") {
  const socket = new Socket({ fd: 3 });
  // Without `close`: the gateway lives as long as the first caller.
  await serve((request, context) => gateway(request, context), { stdio: { input: socket, output: socket } });
}
await serve(gateway);
