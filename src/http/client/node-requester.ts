// Sends HTTP requests with node:http and node:https. The global fetch is not used: it aborts a body that is silent for
// five minutes, and does not report whether a failed request may have reached the server, which decides whether it may
// be retried. The only timeout here is for connecting. Proxies of the environment are used (proxy.ts).

import { Buffer } from "node:buffer";
import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders, RequestOptions } from "node:http";
import type { LookupFunction, Socket } from "node:net";
import { type Cancellation, CancelToken, onCancellation } from "../../core/cancel.ts";
import type { ConnectionError } from "../../core/errors.ts";
import { systemErrorCode } from "../../core/values.ts";
import { type Address, ConnectionPool } from "./connection-pool.ts";
import { NodeHttpResponse } from "./node-response.ts";
import type { ClientHttpRequest, HttpResponse, Requester } from "./requester.ts";
import {
  cancelled,
  connectFailed,
  connectTimedOut,
  noResponse,
  notSendable,
  responseCompressed,
  unexpectedUpgrade,
} from "./requester-errors.ts";

export interface NodeRequesterOptions {
  readonly connectTimeoutMs?: number;
  /** Resolves a host name, and may refuse it. Default: the resolver of the system. */
  readonly lookup?: LookupFunction;
  /** Trusted certificates in PEM format, instead of those built into Node. */
  readonly ca?: string;
}

const CONNECT_TIMEOUT_MS = 10_000;
/** The operating system probes a connection after this much silence. */
const KEEP_ALIVE_PROBE_MS = 30_000;
const MAX_HEADER_BYTES = 32 * 1024;

export function nodeRequester({
  connectTimeoutMs = CONNECT_TIMEOUT_MS,
  ...options
}: NodeRequesterOptions = {}): Requester {
  const pool = new ConnectionPool(options, connectTimeoutMs);
  const findAndSend = async (request: ClientHttpRequest): Promise<HttpResponse> =>
    send(request, pool, await pool.findAddress(request.url), connectTimeoutMs, true);
  const requester = (request: ClientHttpRequest): Promise<HttpResponse> => {
    const address = pool.addresses.get(request.url.href);
    if (address === undefined) return findAndSend(request);
    return send(request, pool, address, connectTimeoutMs, true);
  };
  requester.close = (): void => pool.close();
  return requester;
}

/** A GET is safe to repeat, but a DPoP proof may be used only once. */
function mayRepeat({ method, headers }: ClientHttpRequest): boolean {
  return method === "GET" && headers["dpop"] === undefined;
}

/** Resolves when the head of the response arrives. */
function send(
  sent: ClientHttpRequest,
  pool: ConnectionPool,
  address: Address,
  connectTimeoutMs: number,
  isFirst: boolean,
): Promise<HttpResponse> {
  return new Promise((resolve, reject) => {
    const { url, signal } = sent;
    const { route } = address;
    if (isAborted(signal)) {
      reject(cancelled(url, signal, false));
      return;
    }
    let request: ClientRequest;
    try {
      pool.dropExpired();
      request = route.request(requestOptions(sent, address));
    } catch (error) {
      reject(notSendable(url, error));
      return;
    }
    let timer: NodeJS.Timeout | undefined;
    /** The connection is established, so the request may have been sent. */
    let isConnected = false;
    let isSettled = false;
    let received: IncomingMessage | undefined;
    const settle = (): void => {
      isSettled = true;
      if (timer !== undefined) clearTimeout(timer);
    };
    const fail = (error: ConnectionError): void => {
      settle();
      forget();
      reject(error);
      request.destroy();
    };
    const forget = onCancellation(signal, () => {
      if (received === undefined) fail(cancelled(url, signal, isConnected));
      else received.destroy(cancelled(url, signal, true));
    });

    const onSocket = (socket: Socket): void => {
      if (isSettled) return;
      // A request that waited for a socket gets a connected one too, which has no handshake before it.
      const isSecuring = "secureConnecting" in socket && socket.secureConnecting === true;
      if (request.reusedSocket || (socket.readyState === "open" && !isSecuring)) {
        isConnected = true;
        return;
      }
      // A stream may be silent for hours. With keep-alive the operating system detects a server that has disappeared.
      socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
      timer = setTimeout(() => fail(connectTimedOut(url, connectTimeoutMs)), connectTimeoutMs);
      socket.once(route.isSecure ? "secureConnect" : "connect", () => {
        isConnected = true;
        clearTimeout(timer);
      });
    };
    const onResponse = (response: IncomingMessage): void => {
      // Readers have listeners of their own. This one prevents an error without a reader from crashing the process.
      response.on("error", ignore);
      if (isSettled) return;
      const refusal = route.refusal?.(response.statusCode ?? 0);
      if (refusal !== undefined) return fail(refusal);
      const encoding = response.headers["content-encoding"];
      if (encoding !== undefined && encoding !== "" && encoding.toLowerCase() !== "identity") {
        return fail(responseCompressed(url, encoding));
      }
      settle();
      pool.readKeepAlive(response);
      received = response;
      // A token lives no longer than its call, so only a signal is left without a listener.
      if (!(signal instanceof CancelToken)) response.on("close", forget);
      resolve(new NodeHttpResponse(url, response));
    };
    const onError = (error: Error): void => {
      if (isSettled) return;
      // An error of the parser has a code that begins so: the response is not valid HTTP.
      const isInvalid = systemErrorCode(error)?.startsWith("HPE_") === true;
      if (!isFirst || !mayRepeat(sent) || !request.reusedSocket || isInvalid) {
        fail(isConnected ? noResponse(url, error) : (route.proxyFailed?.(error) ?? connectFailed(url, error)));
        return;
      }
      // The server closed an idle connection just as we reused it. It may have closed the other idle ones too.
      settle();
      forget();
      pool.drop(route.agent);
      resolve(send(sent, pool, address, connectTimeoutMs, false));
    };

    request
      .on("socket", onSocket)
      .on("response", onResponse)
      // Without this listener Node would close the connection silently.
      .on("upgrade", () => fail(unexpectedUpgrade(url)))
      .on("error", onError)
      .end(sent.body);
    // Resolving the name may abort the signal at once.
    if (isAborted(signal)) fail(cancelled(url, signal, false));
  });
}

function ignore(): void {}

function isAborted(signal: Cancellation | undefined): boolean {
  return signal?.aborted === true;
}

function requestOptions(sent: ClientHttpRequest, { route, hostname, port, path, host }: Address): RequestOptions {
  const options: RequestOptions = {
    agent: route.agent,
    method: sent.method,
    hostname,
    port,
    path,
    headers: (route.viaProxy === undefined ? headerList(sent, host) : undefined) ?? allHeaders(sent),
    maxHeaderSize: MAX_HEADER_BYTES,
    joinDuplicateHeaders: true,
  };
  return route.viaProxy === undefined ? options : route.viaProxy(options, sent.url);
}

const OWN_HEADERS: ReadonlySet<string> = new Set(["accept-encoding", "content-length", "host"]);

/**
 * As a list, of which Node writes the head at once. It keeps no copy and replaces nothing, so undefined if there is no
 * body or a name is not unique.
 */
function headerList({ headers, body }: ClientHttpRequest, host: string): string[] | undefined {
  if (body === undefined) return undefined;
  const list: string[] = [];
  for (const name of Object.keys(headers)) {
    if (name !== name.toLowerCase() || OWN_HEADERS.has(name)) return undefined;
    const value = headers[name];
    // Node says what is wrong with a header without a value.
    if (value === undefined) return undefined;
    list.push(name, value);
  }
  list.push("accept-encoding", "identity", "content-length", String(Buffer.byteLength(body)), "Host", host);
  return list;
}

function allHeaders({ headers, body }: ClientHttpRequest): OutgoingHttpHeaders {
  return {
    ...headers,
    // Without compression, limiting the received bytes is enough; there is no decompressed size to check.
    "accept-encoding": "identity",
    ...(body === undefined ? undefined : { "content-length": Buffer.byteLength(body) }),
  };
}
