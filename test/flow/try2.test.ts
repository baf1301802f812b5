import { it } from "vitest";
import { chain } from "../../src/chain/chain.ts";
import { end } from "../../src/chain/end.ts";
import { connect } from "../../src/client/index.ts";
import { serve } from "../../src/serve.ts";
import { makeChainServer } from "./chain-end-server.ts";
import { answering } from "./chain-features.ts";
it("tries", async () => {
  const heard = { logs: [] as any[], asked: [] as string[] };
  const server = makeChainServer();
  const log = (who: string, h: any) => async (r: any, c: any) => { console.log(who, ">", r.method, JSON.stringify(r.params).slice(0, 150), JSON.stringify(c.caller.capabilities)); try { const x = await h(r, c); console.log(who, "<", r.method, JSON.stringify(x).slice(0, 150)); return x; } catch (e) { console.log(who, "!", r.method, String(e)); throw e; } };
  const back = await serve(log("end", server), { http: { port: 0, revisions: ["2025-11-25"] } });
  const gate = chain().to(end(back.url, { name: "behind" }));
  const front = await serve(log("gate", gate), { http: { port: 0 } });
  const client = await connect(front.url, { ...answering("ada", heard), revision: "2026-07-28", timeout: 5000 });
  await client.startTool("hold", { name: "x" }).then((h) => console.log(h.id), (e) => console.log(String(e)));
  console.log("---");
  await client.close(); await front.close(); await gate.close(); await back.close();
}, 60000);
