// What a call over HTTP costs the server in CPU, beside a bare node:http echo in the same run: in exchange style, in
// a session, and answered by a stream of events; on one kept connection, and on 32 at once. Every answer is looked
// at; only the server's own CPU counts. The official SDKs stand beside it, as far as they speak the style.

import { MeasuredChild } from "./child.ts";
import { Connection, type Answer } from "./http-client.ts";
import type { Figure } from "./main.ts";
import { median } from "./median.ts";

const ROUNDS = 3;
const CALLS = 10_000;
const WARM_UP = 3_000;

export type Style = "stateless" | "session";

export interface Case {
  readonly style: Style;
  readonly tool: "echo" | "steps";
  readonly inFlight: number;
}

const CASES: readonly Case[] = (["echo", "steps"] as const).flatMap((tool) =>
  (["stateless", "session"] as const).flatMap((style) => [1, 32].map((inFlight) => ({ style, tool, inFlight }))),
);

const META =
  '"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}';

/** The parts of a caller's requests that stay the same. */
interface Script {
  readonly headers: string;
  body(id: number): string;
}

function scriptOf({ style, tool }: Case, session: string): Script {
  const progress = tool === "steps" ? ['"progressToken":7'] : [];
  const meta = [...(style === "stateless" ? [META] : []), ...progress].join(",");
  const head = `"method":"tools/call","params":{${meta === "" ? "" : `"_meta":{${meta}},`}"name":"${tool}","arguments":{"text":"hello there"}}`;
  const headers =
    style === "stateless"
      ? `MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: ${tool}\r\n`
      : `MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: ${session}\r\n`;
  return { headers, body: (id) => `{"jsonrpc":"2.0","id":${id},${head}}` };
}

function check({ status, body }: Answer, id: number, { tool }: Case): void {
  const isMine = body.includes(`"id":${id},`) || body.includes(`"id":${id}}`);
  const isEcho = isMine && body.includes('"text":"hello there"');
  const isWhole = tool === "echo" || (body.includes("notifications/progress") && body.includes("data: "));
  if (status !== 200 || !isEcho || !isWhole) throw new Error(`Not the answer to request ${id}: ${status} ${body}`);
}

/** Opens a session, where the server has such; the bare one has no ids and none is sent. */
async function openSession(url: string): Promise<string> {
  const connection = new Connection(url);
  const params = '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}';
  const { pathname } = new URL(url);
  const { head } = await connection.post(
    pathname,
    "",
    `{"jsonrpc":"2.0","id":0,"method":"initialize","params":${params}}`,
  );
  const session = /\r\nmcp-session-id: (\S+)/.exec(head)?.[1] ?? "none";
  if (session !== "none") {
    const headers = `MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: ${session}\r\n`;
    await connection.post(pathname, headers, '{"jsonrpc":"2.0","method":"notifications/initialized"}');
  }
  connection.close();
  return session;
}

/** Microseconds of CPU for each call of the case. */
async function measure(child: MeasuredChild, one: Case, calls: number, warmUp: number): Promise<number> {
  const { pathname } = new URL(child.url);
  const script = scriptOf(one, one.style === "session" ? await openSession(child.url) : "");
  const connections = Array.from({ length: one.inFlight }, () => new Connection(child.url));
  let id = 0;
  const make = async (count: number): Promise<void> => {
    let left = count;
    const work = async (connection: Connection): Promise<void> => {
      while (left > 0) {
        left -= 1;
        const mine = (id += 1);
        check(await connection.post(pathname, script.headers, script.body(mine)), mine, one);
      }
    };
    await Promise.all(connections.map(work));
  };
  try {
    await make(warmUp);
    const before = await child.costs();
    await make(calls);
    const after = await child.costs();
    return ((after.cpuMs - before.cpuMs) / calls) * 1000;
  } finally {
    for (const connection of connections) connection.close();
  }
}

/** Each case in a new process, so that none is measured in what another has warmed or littered. */
export async function once(script: string, one: Case, calls = CALLS, warmUp = WARM_UP): Promise<number> {
  const child = await MeasuredChild.start(script);
  try {
    return await measure(child, one, calls, warmUp);
  } finally {
    await child.end();
  }
}

/** Which of the official SDKs speaks a style over HTTP. They are slower by far, so fewer calls tell as much. */
const PEERS: Readonly<Record<Style, { readonly name: string; readonly script: string }>> = {
  stateless: { name: "SDK 2.x", script: "sdk-2-http.js" },
  session: { name: "SDK 1.x", script: "sdk-1-http.js" },
};

export async function httpCosts(tell: (text: string) => void): Promise<Figure[]> {
  const figures: Figure[] = [];
  for (const one of CASES) {
    const name = `${one.tool === "echo" ? "echo" : "stream"} over HTTP, ${one.style} style, ${one.inFlight} in flight`;
    tell(`${name}: ${ROUNDS} rounds of ${CALLS} calls`);
    const bare: number[] = [];
    const ours: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      bare.push(await once("bare-http.js", one));
      ours.push(await once("catenary-http.js", one));
    }
    let detail = `${median(ours).toFixed(1)} us a call, bare ${median(bare).toFixed(1)} us`;
    if (one.tool === "echo") {
      const peer = PEERS[one.style];
      detail += `, ${peer.name} ${(await once(peer.script, one, 2_000, 1_000)).toFixed(0)} us`;
    }
    figures.push({ name, value: median(ours) / median(bare), unit: "x bare", detail });
  }
  return figures;
}
