// The operator of a gateway: its calls pass the whole chain under a principal of their own, see everything, and use the
// processes that the callers use. Nobody gets these rights over the network.

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { ConfigGateway } from "../../../src/config/gateway.ts";
import { checkConfig, loadConfig } from "../../../src/config/load.ts";
import type { CallReader } from "../../../src/chain/observe.ts";
import { CallLog } from "../../../src/console/call-log.ts";
import { callAsOperator, operatorContext } from "../../../src/console/operator-call.ts";
import { OPERATOR, TOKEN_PRINCIPAL } from "../../../src/core/authentication.ts";
import type { Context, Handler, Result } from "../../../src/core/handler.ts";
import { withIdentity } from "../../../src/protocol/caller.ts";

const SERVER = `
import { createServer, serve } from ${JSON.stringify(new URL("../../../dist/index.js", import.meta.url).href)};
await serve(createServer({ name: "pid", version: "1" }).tool("pid", { description: "Its process" }, () => String(process.pid)));
`;

async function gatewayOf(more: object): Promise<ConfigGateway> {
  const folder = await mkdtemp(join(tmpdir(), "catenary-operator-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  await writeFile(join(folder, "pid.mjs"), SERVER);
  const file = join(folder, "catenary.json");
  const pid = { command: process.execPath, args: [join(folder, "pid.mjs")] };
  await writeFile(file, JSON.stringify({ mcpServers: { pid, hidden: pid }, ...more }));
  const running = await ConfigGateway.create(await loadConfig(file), { changing: true, rememberNames: false });
  onTestFinished(() => running.gateway.close());
  return running;
}

const CALL = { method: "tools/call", params: { name: "pid_pid", arguments: {} } };

const signal = (): AbortSignal => new AbortController().signal;

function textOf(result: Result): string {
  return (result["content"] as readonly { readonly text: string }[])[0]?.text ?? "";
}

/** As a caller of the network. */
function contextOf(principal: string): Context {
  const { caller, ...rest } = operatorContext({ owner: undefined, signal: signal() });
  return { ...rest, caller: withIdentity({ ...caller, key: `of ${principal}` }, { principal, headers: {} }) };
}

it("uses the processes of the callers, and is told from them in what observes calls", async () => {
  const running = await gatewayOf({});
  running.start({ principal: TOKEN_PRINCIPAL });
  const principals: (string | undefined)[] = [];
  running.gateway.observe({ begin: ({ context }) => void principals.push(context.caller.principal) });
  const gateway: Handler = running.gateway;
  const ofCaller = textOf(await gateway(CALL, contextOf(TOKEN_PRINCIPAL)));
  const ofOperator = textOf(
    await callAsOperator(gateway, CALL, operatorContext({ owner: running.owner, signal: signal(), call: "c1" })),
  );
  expect(ofOperator).toBe(ofCaller);
  expect(principals).toEqual([TOKEN_PRINCIPAL, OPERATOR]);
  // A caller of its own has a process of its own.
  expect(textOf(await gateway(CALL, contextOf("ada")))).not.toBe(ofCaller);
});

it("what the pages read by themselves is no call in Traffic", async () => {
  const running = await gatewayOf({});
  running.start();
  const log = new CallLog();
  running.gateway.observe(log.reader as CallReader);
  const list = { method: "tools/list", params: {} };
  await running.gateway(list, operatorContext({ owner: undefined, signal: signal() }));
  await running.gateway(list, operatorContext({ owner: undefined, signal: signal(), call: "c1" }));
  expect(log.row(1)).toMatchObject({ method: "tools/list", principal: OPERATOR });
  expect(log.row(2)).toBeUndefined();
});

it("sees everything where callers see parts, and no caller of the network is the operator", async () => {
  const running = await gatewayOf({
    profiles: { some: { servers: ["pid"] } },
    callers: { ada: { token: "ada-token", profile: "some" } },
    listen: { token: "the-token" },
  });
  running.start({ principal: TOKEN_PRINCIPAL });
  const list = async (context: Context): Promise<readonly string[]> =>
    ((await running.gateway({ method: "tools/list", params: {} }, context))["tools"] as { name: string }[]).map(
      ({ name }) => name,
    );
  expect(await list(operatorContext({ owner: running.owner, signal: signal(), call: "c1" }))).toEqual([
    "pid_pid",
    "hidden_pid",
  ]);
  expect(await list(contextOf("ada"))).toHaveLength(1);
  await expect(list(contextOf(OPERATOR))).rejects.toThrow(/not among the callers/);
  const problems = await checkConfig(
    JSON.stringify({ mcpServers: { a: { url: "http://127.0.0.1:1/" } }, callers: { console: { token: "x" } } }),
    "/tmp/catenary.json",
  );
  expect(problems.map(({ message }) => message).join()).toContain("not a valid name of a caller");
});
