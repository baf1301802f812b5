// `listen` and `limits`: the HTTP side of the gateway, where it listens and how much callers may send.

import { httpLimits, type HttpLimits } from "../http/server/options.ts";
import { arrayOf, nonEmptyString, numberThat, objectOf, stringThat, type Fields, type Reader } from "./readers.ts";

const isPort = (given: number): boolean => Number.isInteger(given) && given >= 0 && given <= 65_535;

const LISTEN = {
  host: nonEmptyString,
  port: numberThat(isPort, "a whole number from 0 (any free port) to 65535"),
  path: stringThat((given) => given.startsWith("/"), "must begin with a slash", 'write "/mcp"'),
  allowedHosts: arrayOf(nonEmptyString, 'an array of host names, such as ["notes.example.com"]'),
  allowedOrigins: arrayOf(nonEmptyString, 'an array of origins, such as ["https://app.example.com"]'),
  token: stringThat(
    (given) => /^[A-Za-z0-9\-._~+/]+=*$/.test(given),
    "not a valid bearer token",
    "use letters, digits and - . _ ~ + /, with = only at the end",
  ),
} as const satisfies Fields;

export const LISTEN_FIELDS: Fields = LISTEN;

export interface Listen {
  readonly host?: string;
  readonly port?: number;
  readonly path?: string;
  readonly allowedHosts?: readonly string[];
  readonly allowedOrigins?: readonly string[];
  /** The token that callers must send; never shown. */
  readonly token?: string;
}

export const listen: Reader<Listen> = objectOf(LISTEN, 'an object, such as {"port": 3000}');

const limit = numberThat((given) => given > 0 && given <= Number.MAX_SAFE_INTEGER, "a number above 0");

/** The limits of the HTTP server; the first three also apply to stdio. */
export const LIMIT_FIELDS: Readonly<Record<keyof HttpLimits, Reader<number>>> = Object.fromEntries(
  Object.keys(httpLimits()).map((name) => [name, limit]),
) as Record<keyof HttpLimits, Reader<number>>;

export const limits: Reader<Partial<HttpLimits>> = objectOf(
  LIMIT_FIELDS,
  'an object of numbers, such as {"messageBytes": 4194304}',
);
