// What is said when a front over HTTP is ready: where it is, what a client's file wants, and, where others than this
// machine can reach it, that they can.

import { boundName, isLoopback } from "../transport/http/host-rules.ts";
import { fitFor } from "./harmless.ts";
import { paint } from "./output.ts";

export interface Ready {
  readonly url: string;
  /** What is served, as it was named. */
  readonly what: string;
  /** What a client may call it. */
  readonly name: string;
  /** What it listens on. */
  readonly host: string;
  /** Callers must bring a token, which stands here in a config. It is not repeated. */
  readonly tokenIn?: string | undefined;
}

export function readyLines({ url, what, name, tokenIn }: Ready): string[] {
  const headers = tokenIn === undefined ? undefined : { headers: { Authorization: "Bearer TOKEN" } };
  const entry = { mcpServers: { [name]: { type: "http", url, ...headers } } };
  return [
    `Serving ${fitFor(process.stderr, what)} at ${paint("cyan", url)}`,
    `A client's entry: ${JSON.stringify(entry)}`,
    ...(tokenIn === undefined ? [] : [`TOKEN stands for what ${tokenIn} says under listen.token.`]),
  ];
}

/** Empty where only this machine can reach it, or whoever calls must show a token. */
export function warningLines({ host, tokenIn }: Pick<Ready, "host" | "tokenIn">): string[] {
  if (tokenIn !== undefined || isLoopback(boundName(host))) return [];
  return [
    `${paint("yellow", "Warning:")} ${host} can be reached from the network, and nobody is asked who they are:`,
    "whoever reaches it may call every tool. Listen on 127.0.0.1; or have a config ask for a token, by",
    '{"listen": {"token": "${MY_TOKEN}"}}; or put a proxy in front that authenticates; or serve it by a',
    "program of your own, with `auth: bearer(...)` of catenary/server.",
  ];
}
