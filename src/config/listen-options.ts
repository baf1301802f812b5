// What a config says of the side that callers see: where to listen, and the limits of what they may send.

import { httpLimits, type HttpLimits } from "../http/server/options.ts";
import { listOf, numberThat, objectOf, text, textThat, type Fields, type Reader } from "./readers.ts";

const isPort = (given: number): boolean => Number.isInteger(given) && given >= 0 && given <= 65_535;

const LISTEN = {
  host: text,
  port: numberThat(isPort, "a whole number from 0 (any that is free) to 65535"),
  path: textThat((given) => given.startsWith("/"), " must begin with a slash", 'write "/mcp"'),
  allowedHosts: listOf(text, 'a list of names, such as ["notes.example.com"]'),
  allowedOrigins: listOf(text, 'a list of origins, such as ["https://app.example.com"]'),
  token: textThat(
    (given) => /^[A-Za-z0-9\-._~+/]+=*$/.test(given),
    " is none that a caller could send",
    "a token is made of letters, digits and - . _ ~ + /, with = at its end",
  ),
} as const satisfies Fields;

export const LISTEN_FIELDS: Fields = LISTEN;

export interface Listen {
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly allowedHosts?: readonly string[];
  readonly allowedOrigins?: readonly string[];
  /** What callers must show; it is never told. */
  readonly token?: string;
}

export const listen: Reader<Listen> = objectOf(LISTEN, 'an object, such as {"port": 3000}');

const limit = numberThat((given) => given > 0 && given <= Number.MAX_SAFE_INTEGER, "a number above 0");

/** Those of a front over HTTP; on stdio the first three count. */
export const LIMIT_FIELDS: Readonly<Record<keyof HttpLimits, Reader<number>>> = Object.fromEntries(
  Object.keys(httpLimits()).map((name) => [name, limit]),
) as Record<keyof HttpLimits, Reader<number>>;

export const limits: Reader<Partial<HttpLimits>> = objectOf(
  LIMIT_FIELDS,
  'an object of numbers, such as {"messageBytes": 4194304}',
);
