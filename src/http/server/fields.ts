// The options of the HTTP server that a config has too, in `listen` and `limits`. Serving needs only their types, so that
// a small server does not load this file.

import { expecting, field, number, strings, text, textLike, type Field, type OptionsOf } from "../../core/fields.ts";
import { DEFAULT_LIMITS } from "../../jsonrpc/codec.ts";
import { LIMIT_DEFAULTS, LISTEN_DEFAULTS } from "./defaults.ts";

export const LISTEN = {
  host: text("The address to listen on.").or(LISTEN_DEFAULTS.host),
  port: expecting(
    "a whole number from 0 (any free port) to 65535",
    number("The port to listen on; 0 picks a free one.", [0, 65_535]),
  ).or(LISTEN_DEFAULTS.port),
  path: textLike("The path of the endpoint.", "^/", ["must begin with a slash", 'write "/mcp"']).or(
    LISTEN_DEFAULTS.path,
  ),
  allowedHosts: expecting(
    'an array of host names, such as ["notes.example.com"]',
    strings(
      "Host headers to accept, as name, name:port or *.name (all subdomains), besides the address that the server listens on. A server on a loopback address and a mounted handler also accept localhost, 127.0.0.1 and [::1]. Other names are refused, since a web page can make a browser call any name that resolves to this machine (DNS rebinding). Only a server that listens on all addresses accepts every name if this option is missing.",
    ),
  ),
  allowedOrigins: expecting(
    'an array of origins, such as ["https://app.example.com"]',
    strings(
      "Origins of web pages that may call, such as https://app.example.com, besides the origins of accepted hosts.",
    ),
  ),
};

/** Where the HTTP server listens, and which names and origins it accepts. */
export type ListenOptions = OptionsOf<typeof LISTEN>;

function limit<const Description extends string>(description: Description): Field<Description, number> {
  const expected = "a number above 0";
  const fits = (value: unknown): value is number => typeof value === "number" && value > 0;
  return expecting(expected, field(description, { type: "number", exclusiveMinimum: 0 }, expected, fits));
}

/** `messageBytes`, `depth` and `batch` also apply to stdio and to upstreams. */
export const LIMITS = {
  messageBytes: limit("Maximum bytes of one message, in both directions, also on stdio and of upstreams.").or(
    DEFAULT_LIMITS.messageBytes,
    "64 MiB",
  ),
  depth: limit("Maximum depth of nested objects and arrays in a message, also on stdio.").or(DEFAULT_LIMITS.depth),
  batch: limit("Maximum messages in one batch, in the revision that has batches, also on stdio.").or(
    DEFAULT_LIMITS.batch,
  ),
  headerBytes: limit("Maximum bytes of all headers of a request.").or(LIMIT_DEFAULTS.headerBytes, "16 KiB"),
  headerMs: limit("Milliseconds that a caller may take to send its headers.").or(LIMIT_DEFAULTS.headerMs),
  bodyMs: limit("Milliseconds that a caller may take to send its body.").or(LIMIT_DEFAULTS.bodyMs),
  sessions: limit("Maximum open sessions.").or(LIMIT_DEFAULTS.sessions),
  sessionIdleMs: limit("Milliseconds after which a session without an open stream ends if nothing uses it.").or(
    LIMIT_DEFAULTS.sessionIdleMs,
  ),
  sessionDisconnectedMs: limit(
    "Milliseconds after which a session without requests is closed if its last GET stream is closed: its client has probably gone, and most clients do not end their session.",
  ).or(LIMIT_DEFAULTS.sessionDisconnectedMs),
  requests: limit("Maximum requests in flight, over all callers; further ones get status 503.").or(
    LIMIT_DEFAULTS.requests,
  ),
  listens: limit("Maximum open subscriptions/listen requests.").or(LIMIT_DEFAULTS.listens),
  keepAliveMs: limit(
    "Milliseconds of silence on a stream after which a keep-alive comment is sent, so that proxies keep it open.",
  ).or(LIMIT_DEFAULTS.keepAliveMs),
  replayBytes: limit("Bytes of events kept for callers that resume a stream, in total.").or(
    LIMIT_DEFAULTS.replayBytes,
    "64 MiB",
  ),
};

/** The limits on messages and on the HTTP server. */
export type HttpLimits = OptionsOf<typeof LIMITS>;
