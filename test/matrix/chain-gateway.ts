// An empty chain as a process, before the end that it is told of: an address, or a command that it starts. It serves
// one caller on its stdio; with "--second", another on the socket that it has as its descriptor 3.

import { Socket } from "node:net";
import { chain } from "../../src/chain/chain.ts";
import { upstream } from "../../src/chain/upstream/upstream.ts";
import { type UpstreamTarget } from "../../src/chain/upstream/options.ts";
import { serve } from "../../src/serve.ts";

const [target = "", second] = process.argv.slice(2);
const gateway = chain().to(upstream(JSON.parse(target) as UpstreamTarget, { name: "behind" }));
if (second === "--second") {
  const socket = new Socket({ fd: 3 });
  // Without its close: the gateway lives as long as the first caller.
  await serve((request, context) => gateway(request, context), { stdio: { input: socket, output: socket } });
}
await serve(gateway);
