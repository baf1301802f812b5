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
  /** The token that they must bring, where it was made for this run: it is told here and nowhere else. */
  readonly token?: string | undefined;
  /** Anybody may evaluate code. */
  readonly isOpen?: boolean | undefined;
}

export function readyLines({ url, what, name, tokenIn, token }: Ready): string[] {
  const said = token ?? (tokenIn === undefined ? undefined : "TOKEN");
  const headers = said === undefined ? undefined : { headers: { Authorization: `Bearer ${said}` } };
  const entry = { mcpServers: { [name]: { type: "http", url, ...headers } } };
  return [
    `Serving ${fitFor(process.stderr, what)} at ${paint("cyan", url)}`,
    `A client's entry: ${JSON.stringify(entry)}`,
    ...(token === undefined ? [] : ["The token is for this run, and is told once: whoever has it can run code here."]),
    ...(tokenIn === undefined ? [] : [`TOKEN stands for what ${tokenIn} says under listen.token.`]),
  ];
}

/** Empty where whoever calls must show a token, or can do no harm: only this machine can reach it, and no code is run. */
export function warningLines({ host, tokenIn, token, isOpen }: Omit<Ready, "url" | "what" | "name">): string[] {
  const isHere = isLoopback(boundName(host));
  if (isOpen === true) {
    return [
      `${paint("yellow", "Warning:")} code is evaluated here, and nobody is asked for a token: ${isHere ? "every program" : "whoever reaches"}`,
      `${isHere ? "on this machine" : host} can run what it likes in your name. Leave out --no-token to ask for one.`,
    ];
  }
  if (tokenIn !== undefined || token !== undefined || isHere) return [];
  return [
    `${paint("yellow", "Warning:")} ${host} can be reached from the network, and nobody is asked who they are:`,
    "whoever reaches it may call every tool. Listen on 127.0.0.1; or have a config ask for a token, by",
    '{"listen": {"token": "${MY_TOKEN}"}}; or put a proxy in front that authenticates; or serve it by a',
    "program of your own, with `auth: bearer(...)` of catenary/server.",
  ];
}
