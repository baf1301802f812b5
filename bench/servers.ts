// CPU time and memory of a server or gateway per call: over HTTP in both styles, as JSON and as a stream, over stdio, and
// with many tools and sessions. Only the process of the server counts, or that of the gateway without its upstream.

import { callHttp, LineCaller, type HttpLoad, type Style } from "./callers.ts";
import { BASELINE, MeasuredServer, measureCalls, OURS, type Measurement, type Settings } from "./measurement.ts";
import type { Figure, Start, Subject } from "./measurement.ts";
import type { Mode } from "./peers.ts";

const STYLES = [
  { style: "session", name: "session style" },
  { style: "stateless", name: "stateless" },
] as const satisfies readonly { style: Style; name: string }[];

/** For calls over stdio, which take a tenth of those over HTTP, and for many connections, which are opened each time. */
const LARGE_SLICE = 2_000;
const IN_FLIGHT = 32;
const MANY = 10_000;
const MANY_TEXT = MANY.toLocaleString("en");

const overHttp =
  (load: HttpLoad) =>
  (program: string, argument = ""): Start =>
  async () =>
    callHttp(await MeasuredServer.start(program, [argument]), load);

function overStdio(program: string, argument = ""): Start {
  return async (): Promise<Subject> => {
    const server = MeasuredServer.startStdio(program, [argument]);
    const caller = new LineCaller(server.child);
    await caller.initialize();
    return { server, makeCalls: (count) => caller.makeCalls(count, IN_FLIGHT) };
  };
}

function startPeers(
  { peers }: Settings,
  mode: Mode,
  start: (program: string, mode: string) => Start,
): Record<string, Start> {
  const able = peers.filter(({ modes }) => modes.includes(mode));
  return Object.fromEntries(able.map(({ name, program }) => [name, start(program, mode)]));
}

/** The programs that a row compares, by what their column is called. The first is the baseline. */
type Programs = Readonly<Record<string, string>>;

const HTTP: Programs = { [BASELINE]: "bare-http.js", [OURS]: "catenary-http.js" };
/** A gateway cannot take less than a relay, which itself takes more than a server that answers. */
const GATEWAY: Programs = {
  [BASELINE]: "bare-gateway.js",
  [OURS]: "catenary-gateway.js",
  "Bare HTTP": "bare-http.js",
};

function startPrograms(programs: Programs, start: (program: string) => Start): Record<string, Start> {
  return Object.fromEntries(Object.entries(programs).map(([who, program]) => [who, start(program)]));
}

/** A row for each style, with the peers that have the mode. */
function measureStyles(row: string, programs: Programs, modeOf: (style: Style) => Mode): Measurement {
  return async (settings) => {
    const figures: Figure[] = [];
    for (const { style, name } of STYLES) {
      const start = overHttp({ style });
      const all = { ...startPrograms(programs, start), ...startPeers(settings, modeOf(style), start) };
      figures.push(...Object.values(await measureCalls(`${row}, ${name}`, all, settings)));
    }
    return figures;
  };
}

export const measureHttp: Measurement = measureStyles("HTTP", HTTP, (style) => style);
export const measureGateway: Measurement = measureStyles("Gateway to stdio", GATEWAY, () => "gateway");

/** More cases of the same, without peers: many connections, and a tool whose response is an SSE stream. */
export const measureVariants: Measurement = async (settings) => {
  const figures: Figure[] = [];
  for (const { style, name } of STYLES) {
    const busy = overHttp({ style, connections: IN_FLIGHT });
    const stream = overHttp({ style, tool: "steps" });
    const rows = {
      [`HTTP, ${name}, ${IN_FLIGHT} connections`]: [busy, HTTP, LARGE_SLICE],
      [`Gateway to stdio, ${name}, ${IN_FLIGHT} connections`]: [busy, GATEWAY, LARGE_SLICE],
      [`HTTP, ${name}, with progress`]: [stream, HTTP, undefined],
    } as const;
    for (const [row, [start, programs, slice]] of Object.entries(rows)) {
      const subjects = startPrograms(programs, start);
      const { later, memory } = await measureCalls(row, subjects, settings, slice);
      figures.push({ ...later, table: "variants" }, ...(start === busy ? [memory] : []));
    }
  }
  return figures;
};

export const measureStdio: Measurement = async (settings) => {
  const subjects = { [BASELINE]: overStdio("bare-stdio.js"), [OURS]: overStdio("catenary-stdio.js") };
  const all = { ...subjects, ...startPeers(settings, "stdio", overStdio) };
  return Object.values(await measureCalls(`stdio, ${IN_FLIGHT} in flight`, all, settings, LARGE_SLICE));
};

/** The baseline is the same server with few of them. */
export const measureGrowth: Measurement = async (settings) => {
  const session = overHttp({ style: "session" });
  const sessions = overHttp({ style: "session", sessions: MANY });
  const rows = {
    [`${MANY_TEXT} tools against 10`]: {
      [BASELINE]: session("catenary-http.js", "10"),
      [OURS]: session("catenary-http.js", String(MANY)),
    },
    [`${MANY_TEXT} sessions against 1`]: {
      [BASELINE]: session("catenary-http.js"),
      [OURS]: sessions("catenary-http.js"),
    },
  };
  const figures: Figure[] = [];
  for (const [name, subjects] of Object.entries(rows)) {
    figures.push({ ...(await measureCalls(name, subjects, settings)).later, table: "growth" });
  }
  return figures;
};
