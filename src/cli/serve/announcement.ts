// What is said when a front over HTTP is ready: where it is, what a client's file wants, and, where others than this
// machine can reach it, that they can.

import { networkInterfaces } from "node:os";
import { boundName, isLoopback } from "../../http/server/guard.ts";
import { fitFor } from "../terminal/harmless.ts";
import { paint } from "../terminal/output.ts";

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
  /** Callers may evaluate code. */
  readonly isLive?: boolean | undefined;
  /** Anybody may. */
  readonly isOpen?: boolean | undefined;
}

type Interfaces = ReturnType<typeof networkInterfaces>;

export function readyLines(ready: Ready, interfaces: Interfaces = networkInterfaces()): string[] {
  const { url, what, name, host, tokenIn, token } = ready;
  const said = token ?? (tokenIn === undefined ? undefined : "TOKEN");
  const headers = said === undefined ? undefined : { headers: { Authorization: `Bearer ${said}` } };
  const entry = { mcpServers: { [name]: { type: "http", url, ...headers } } };
  return [
    `Serving ${fitFor(process.stderr, what)} at ${paint("cyan", url)}${elsewhere(host, url, interfaces)}`,
    `A client's entry: ${JSON.stringify(entry)}`,
    ...(token === undefined ? [] : ["The token is for this run, and is told once: whoever has it can run code here."]),
    ...(tokenIn === undefined ? [] : [`TOKEN stands for what ${tokenIn} says under listen.token.`]),
  ];
}

/** Where else it can be called, where it listens on all addresses of the machine; a client here needs only one. */
function elsewhere(host: string, url: string, interfaces: Interfaces): string {
  const bound = boundName(host);
  if (bound !== "0.0.0.0" && bound !== "[::]") return "";
  const { port, pathname } = new URL(url);
  const others = Object.values(interfaces)
    .flatMap((found) => found ?? [])
    // What holds for one link alone is no address without the name of that link.
    .filter((one) => !one.internal && (one.family === "IPv4" || (bound === "[::]" && one.scopeid === 0)))
    .map(({ address }) => `http://${boundName(address)}${port === "" ? "" : `:${port}`}${pathname}`);
  return `, and on every other address of this machine${others.length === 0 ? "" : `: ${others.join(", ")}`}`;
}

/** Empty where whoever calls can do no harm: only this machine can reach it, or a token is asked for and no code is run. */
export function warningLines({ host, tokenIn, token, isLive, isOpen }: Omit<Ready, "url" | "what" | "name">): string[] {
  const isHere = isLoopback(boundName(host));
  if (isOpen === true) {
    return [
      `${paint("yellow", "Warning:")} code is evaluated here, and nobody is asked for a token: ${isHere ? "every program" : "whoever reaches"}`,
      `${isHere ? "on this machine" : host} can run what it likes in your name. Leave out --no-token to ask for one.`,
    ];
  }
  if (isHere) return [];
  if (isLive === true) {
    return [
      `${paint("yellow", "Warning:")} code is evaluated here, and ${host} can be reached from the network: whoever has the token`,
      "can run what it likes in your name, and the token goes over the wire in the clear. Listen on 127.0.0.1,",
      "or put a proxy in front that speaks TLS.",
    ];
  }
  if (tokenIn !== undefined || token !== undefined) return [];
  return [
    `${paint("yellow", "Warning:")} ${host} can be reached from the network, and nobody is asked who they are:`,
    "whoever reaches it may call every tool. Listen on 127.0.0.1; or have a config ask for a token, by",
    '{"listen": {"token": "${MY_TOKEN}"}}; or put a proxy in front that authenticates; or serve it by a',
    "program of your own, with `auth: bearer(...)` of catenary/server.",
  ];
}
