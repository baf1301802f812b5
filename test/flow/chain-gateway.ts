// An empty chain as a process, before the end that it is told of: an address, or a command that it starts. It serves
// one caller on its stdio; with "--second", another on the pipes 3 (in) and 4 (out).

import { createReadStream, createWriteStream } from "node:fs";
import { chain } from "../../src/chain/chain.ts";
import { end, type EndTarget } from "../../src/chain/end.ts";
import { serve } from "../../src/serve.ts";

const [target = "", second] = process.argv.slice(2);
const gateway = chain().to(end(JSON.parse(target) as EndTarget, { name: "behind" }));
if (second === "--second") {
  // Without its close: the gateway lives as long as the first caller.
  const input = createReadStream("", { fd: 3 });
  const output = createWriteStream("", { fd: 4 });
  await serve((request, context) => gateway(request, context), { stdio: { input, output } });
}
await serve(gateway);
