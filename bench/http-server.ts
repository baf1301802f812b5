// CPU time of a server and of a gateway per call over HTTP, compared with a bare node:http echo and the SDKs: in both
// styles, answered by JSON or by a stream, on 1 and on 32 keep-alive connections. Every response is checked; only the CPU
// time of the server counts, or of the gateway without its upstream.

import { MeasuredServer, median, type Figure, type Measurement } from "./measurement.ts";
import { HttpConnection, type HttpResponse } from "./raw-http.ts";

const ROUNDS = 3;
const CALLS = 10_000;
const WARM_UP = 3_000;

type Style = "stateless" | "session";

interface Case {
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
interface RequestTemplate {
  readonly headers: string;
  body(id: number): string;
}

function createTemplate({ style, tool }: Case, session: string): RequestTemplate {
  const progress = tool === "steps" ? ['"progressToken":7'] : [];
  const meta = [...(style === "stateless" ? [META] : []), ...progress].join(",");
  const head = `"method":"tools/call","params":{${meta === "" ? "" : `"_meta":{${meta}},`}"name":"${tool}","arguments":{"text":"hello there"}}`;
  const headers =
    style === "stateless"
      ? `MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: ${tool}\r\n`
      : `MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: ${session}\r\n`;
  return { headers, body: (id) => `{"jsonrpc":"2.0","id":${id},${head}}` };
}

function check({ status, body }: HttpResponse, id: number, { tool }: Case): void {
  const isMine = body.includes(`"id":${id},`) || body.includes(`"id":${id}}`);
  const isEcho = isMine && body.includes('"text":"hello there"');
  const isWhole = tool === "echo" || (body.includes("notifications/progress") && body.includes("data: "));
  if (status !== 200 || !isEcho || !isWhole) throw new Error(`Unexpected response to request ${id}: ${status} ${body}`);
}

/** Opens a session. The bare server has none and ignores the id. */
async function openSession(url: string): Promise<string> {
  const connection = new HttpConnection(url);
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

/** Microseconds of CPU per call. */
async function measureCalls(server: MeasuredServer, testCase: Case, calls: number, warmUp: number): Promise<number> {
  const { pathname } = new URL(server.url);
  const template = createTemplate(testCase, testCase.style === "session" ? await openSession(server.url) : "");
  const connections = Array.from({ length: testCase.inFlight }, () => new HttpConnection(server.url));
  let id = 0;
  const makeCalls = async (count: number): Promise<void> => {
    let remaining = count;
    const work = async (connection: HttpConnection): Promise<void> => {
      while (remaining > 0) {
        remaining -= 1;
        const callId = (id += 1);
        check(await connection.post(pathname, template.headers, template.body(callId)), callId, testCase);
      }
    };
    await Promise.all(connections.map(work));
  };
  try {
    await makeCalls(warmUp);
    const before = await server.cost();
    await makeCalls(calls);
    const after = await server.cost();
    return ((after.cpuMs - before.cpuMs) / calls) * 1000;
  } finally {
    for (const connection of connections) connection.close();
  }
}

/** Runs a case in a new process, so that the cases do not influence each other. */
async function measureCase(program: string, testCase: Case, calls = CALLS, warmUp = WARM_UP): Promise<number> {
  const server = await MeasuredServer.start(program);
  try {
    return await measureCalls(server, testCase, calls, warmUp);
  } finally {
    await server.stop();
  }
}

/** The SDK for each style. They are much slower, so they make fewer calls. */
const SDKS: Readonly<Record<Style, { readonly name: string; readonly program: string }>> = {
  stateless: { name: "SDK 2.x", program: "sdk-2-http.js" },
  session: { name: "SDK 1.x", program: "sdk-1-http.js" },
};

export const measureHttpServer: Measurement = async (onProgress) => {
  const figures: Figure[] = [];
  for (const testCase of CASES) {
    const name = `${testCase.tool === "echo" ? "echo" : "stream"} over HTTP, ${testCase.style} style, ${testCase.inFlight} in flight`;
    onProgress(`${name}: ${ROUNDS} rounds of ${CALLS} calls`);
    const bare: number[] = [];
    const ours: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      bare.push(await measureCase("bare-http.js", testCase));
      ours.push(await measureCase("catenary-http.js", testCase));
    }
    let detail = `${median(ours).toFixed(1)} us a call, bare ${median(bare).toFixed(1)} us`;
    if (testCase.tool === "echo") {
      const sdk = SDKS[testCase.style];
      detail += `, ${sdk.name} ${(await measureCase(sdk.program, testCase, 2_000, 1_000)).toFixed(0)} us`;
    }
    figures.push({ name, value: median(ours) / median(bare), unit: "x bare", detail });
  }
  return figures;
};

/** The largest ratio that the project allows for a gateway. */
const GATEWAY_BOUND = 4;

const GATEWAY_CASES: readonly Case[] = (["stateless", "session"] as const).flatMap((style) =>
  [1, 32].map((inFlight): Case => ({ style, tool: "echo", inFlight })),
);

export const measureGateway: Measurement = async (onProgress) => {
  const figures: Figure[] = [];
  for (const testCase of GATEWAY_CASES) {
    const name = `echo through an empty chain, ${testCase.style} style, ${testCase.inFlight} in flight`;
    onProgress(`${name}: ${ROUNDS} rounds`);
    const bare: number[] = [];
    const ours: number[] = [];
    for (let round = 0; round < ROUNDS; round += 1) {
      bare.push(await measureCase("bare-http.js", testCase));
      ours.push(await measureCase("catenary-gateway.js", testCase));
    }
    const detail = `${median(ours).toFixed(1)} us a call, bare ${median(bare).toFixed(1)} us`;
    figures.push({ name, value: median(ours) / median(bare), unit: "x bare", bound: GATEWAY_BOUND, detail });
  }
  return figures;
};
