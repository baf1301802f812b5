// CPU time and memory of a server or gateway per call: over HTTP in both styles, as JSON and as a stream, over stdio, and
// with many tools and sessions. Only the process of the server counts, or that of the gateway without its upstream.

import { overHttp, overStdio } from "./callers.ts";
import { measureRows, peersWith, type Measurement } from "./measurement.ts";

/** Each connection over HTTP has one call at a time. */
const connections = 16;
const session = overHttp({ style: "session", connections });
const stateless = overHttp({ style: "stateless", connections });
const stdio = overStdio(32);
const MANY = 10_000;

export const measureHttp: Measurement = measureRows([
  {
    table: "calls",
    name: "HTTP, session style",
    baseline: session("bare-http.js"),
    ours: session("catenary-http.js"),
    beside: peersWith("session", session),
    maxCpu: 1.25,
    maxMemory: 1.25,
  },
  {
    table: "calls",
    name: "HTTP, stateless",
    baseline: stateless("bare-http.js"),
    ours: stateless("catenary-http.js"),
    beside: peersWith("stateless", stateless),
    maxCpu: 1.25,
    maxMemory: 1.25,
  },
]);

export const measureStdio: Measurement = measureRows([
  {
    table: "calls",
    name: "stdio",
    baseline: stdio("bare-stdio.js"),
    ours: stdio("catenary-stdio.js"),
    beside: peersWith("stdio", stdio),
    slice: 2_000,
    maxCpu: 1.3,
    maxMemory: 1.25,
  },
]);

/** The baseline is a relay, since a gateway cannot take less. */
export const measureGateway: Measurement = measureRows([
  {
    table: "calls",
    name: "Gateway, session style",
    baseline: session("bare-gateway.js"),
    ours: session("catenary-gateway.js"),
    beside: peersWith("gateway", session),
    maxCpu: 1.4,
    maxMemory: 1.6,
  },
  {
    table: "calls",
    name: "Gateway, stateless",
    baseline: stateless("bare-gateway.js"),
    ours: stateless("catenary-gateway.js"),
    maxCpu: 1.4,
    maxMemory: 1.6,
  },
]);

/** The response is an SSE stream. */
const steps = { tool: "steps", connections } as const;
const sessionSteps = overHttp({ style: "session", ...steps });
const statelessSteps = overHttp({ style: "stateless", ...steps });
/** One call after another. */
const alone = overHttp({ style: "stateless" });

/** More cases of the same, without peers. */
export const measureVariants: Measurement = measureRows([
  {
    table: "variants",
    name: "HTTP, session style, with progress",
    baseline: sessionSteps("bare-http.js"),
    ours: sessionSteps("catenary-http.js"),
    maxCpu: 2.3,
  },
  {
    table: "variants",
    name: "HTTP, stateless, with progress",
    baseline: statelessSteps("bare-http.js"),
    ours: statelessSteps("catenary-http.js"),
    maxCpu: 2.3,
  },
  {
    table: "variants",
    name: "HTTP, stateless, one call at a time",
    baseline: alone("bare-http.js"),
    ours: alone("catenary-http.js"),
    maxCpu: 1.5,
  },
  {
    table: "variants",
    name: "Gateway, stateless, one call at a time",
    baseline: alone("bare-gateway.js"),
    ours: alone("catenary-gateway.js"),
    maxCpu: 2.2,
  },
]);

/** The baseline is the same server with few of them. */
export const measureGrowth: Measurement = measureRows([
  {
    table: "growth",
    name: "10,000 tools against 10",
    baseline: session("catenary-http.js", "10"),
    ours: session("catenary-http.js", String(MANY)),
    maxCpu: 1.05,
  },
  {
    table: "growth",
    name: "10,000 sessions against 1",
    baseline: session("catenary-http.js"),
    ours: overHttp({ style: "session", connections, sessions: MANY })("catenary-http.js"),
    maxCpu: 1.05,
  },
]);
