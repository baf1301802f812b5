// Where to listen, as a person writes it on a command line: `127.0.0.1:3000`, `:3000`, `3000`, `localhost`,
// `[::1]:0`. Only the text is read here; whether there is such an address is seen when it is listened on.

import { isIPv6 } from "node:net";
import { UsageError } from "../exit-codes.ts";

export interface Address {
  /** Without the brackets of IPv6. */
  readonly host: string;
  readonly port: number;
}

const HOST = "127.0.0.1";
const PORT = 3_000;
export const FORMS = "write HOST:PORT, such as 127.0.0.1:3000, or :PORT, or HOST alone (port 3000)";

export function parseAddress(text: string): Address {
  if (text === "") throw new UsageError(`--http needs an address: ${FORMS}`);
  if (/^\w+:\/\//.test(text)) throw new UsageError(`--http ${text} is a URL: ${FORMS}; the path is set by --path`);
  if (/^\d+$/.test(text)) return { host: HOST, port: parsePort(text, text) };
  if (text.startsWith("[")) {
    const [, host = "", , port] = /^\[([^\]]+)\](:(\d+))?$/.exec(text) ?? [];
    if (!isIPv6(host)) throw new UsageError(`--http ${text} is no address: write [::1]:3000 for IPv6`);
    return { host, port: parsePort(port, text) };
  }
  if (text.split(":").length > 2) {
    throw new UsageError(`--http ${text} cannot be told apart from a port: write [${text}] or [${text}]:3000`);
  }
  const [, host = "", , port] = /^([A-Za-z0-9._-]*)(:(\d+))?$/.exec(text) ?? [];
  if (host === "" && port === undefined) throw new UsageError(`--http ${text} is no address: ${FORMS}`);
  return { host: host === "" ? HOST : host, port: parsePort(port, text) };
}

function parsePort(digits: string | undefined, text: string): number {
  const port = digits === undefined ? PORT : Number(digits);
  if (port > 65_535) throw new UsageError(`--http ${text}: a port is a number from 0 (any that is free) to 65535`);
  return port;
}
