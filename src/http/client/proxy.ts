// HTTP proxies from the environment: which one a URL needs, and the tunnel to an https server through it. Node has this
// only in later versions. Names are as for curl: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, in either case. A
// connection to this machine never goes through a proxy.

import ipaddr from "ipaddr.js";
import { type ClientRequest, type IncomingMessage, request as plainRequest } from "node:http";
import { Agent, type AgentOptions, request as secureRequest } from "node:https";
import { isIP, type LookupFunction, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { ConnectionError, refused } from "../../core/errors.ts";
import { meansLoopback, withoutBrackets } from "../../core/hosts.ts";
import { asError, systemErrorCode } from "../../core/values.ts";
import { hostOf } from "./requester-errors.ts";

export interface Proxy {
  readonly url: URL;
  readonly variable: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** Throws a ConnectionError if the proxy is of a kind that is not supported. */
export function proxyFor(url: URL, env: Environment = process.env): Proxy | undefined {
  if (meansLoopback(url.hostname)) return undefined;
  const variable = variablesFor(url, env).find((name) => (env[name] ?? "").trim() !== "");
  if (variable === undefined || isExcluded(url, env["no_proxy"] ?? env["NO_PROXY"] ?? "")) return undefined;
  const value = (env[variable] ?? "").trim();
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `http://${value}`;
  // The error does not quote the value, which may contain a password.
  if (!URL.canParse(text)) throw refused(`${variable} is not a valid URL; write http://HOST:PORT`);
  const proxy = new URL(text);
  if (proxy.protocol === "http:" || proxy.protocol === "https:") return { url: proxy, variable };
  const advice = `write an http:// or https:// proxy there, or add ${url.hostname} to NO_PROXY`;
  throw refused(`${variable} names a proxy of the kind ${proxy.protocol}, which is not supported; ${advice}`);
}

function variablesFor({ protocol }: URL, env: Environment): string[] {
  const names = protocol === "https:" ? ["https_proxy", "HTTPS_PROXY"] : ["http_proxy", "HTTP_PROXY"];
  // In a CGI program, a client sets HTTP_PROXY with a header.
  const safe = env["REQUEST_METHOD"] === undefined ? names : names.filter((name) => name !== "HTTP_PROXY");
  return [...safe, "all_proxy", "ALL_PROXY"];
}

/** Whether NO_PROXY lists the host: by name, as a domain, with a port, or as a range of addresses. `*` lists all. */
function isExcluded(url: URL, list: string): boolean {
  const hostname = withoutBrackets(url.hostname).replace(/\.$/, "").toLowerCase();
  const port = hostOf(url).slice(hostOf(url).lastIndexOf(":") + 1);
  return list
    .toLowerCase()
    .split(/[\s,]+/)
    .some((entry) => {
      if (entry === "*" || entry === hostname) return true;
      if (entry.includes("/")) return isInRange(hostname, entry);
      // `name`, `name:port`, `[address]` or `[address]:port`.
      const [, address, name, onlyPort] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(entry) ?? [];
      if (onlyPort !== undefined && onlyPort !== port) return false;
      if (address !== undefined) return address === hostname;
      const domain = (name ?? "").replace(/^\*?\./, "").replace(/\.$/, "");
      return domain !== "" && (hostname === domain || (isIP(hostname) === 0 && hostname.endsWith(`.${domain}`)));
    });
}

function isInRange(hostname: string, range: string): boolean {
  if (isIP(hostname) === 0 || !ipaddr.isValidCIDR(range)) return false;
  const [address, [base, bits]] = [ipaddr.process(hostname), ipaddr.parseCIDR(range)];
  return address.kind() === base.kind() && address.match(base, bits);
}

/** The header that identifies us to the proxy. */
export function proxyHeaders({ url: { username, password } }: Proxy): Record<string, string> {
  if (username === "" && password === "") return {};
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { "proxy-authorization": `Basic ${Buffer.from(credentials).toString("base64")}` };
}

/** Where a request for an http server goes: the proxy. */
export function proxyAddress({ url }: Proxy): { readonly hostname: string; readonly port: number } {
  const { hostname, protocol, port } = url;
  return {
    hostname: withoutBrackets(hostname),
    port: port === "" ? (protocol === "https:" ? 443 : 80) : Number(port),
  };
}

/** Creates an agent for https servers behind a proxy. Each connection is a tunnel, so the proxy sees no request. */
export function tunnelAgent(options: AgentOptions, proxy: Proxy, timeoutMs: number): Agent {
  const agent = new Agent(options);
  // Node's documentation allows to override this method. The types say less of its arguments than there is.
  agent.createConnection = (options, callback) => {
    const target = options as ConnectionOptions & { readonly host: string; readonly port: number };
    const done = callback as (error: Error | null, socket?: Socket) => void;
    openTunnel(proxy, target, timeoutMs).then(
      (socket) => done(null, connectTls({ ...target, socket })),
      (error: unknown) => done(asError(error)),
    );
    return undefined;
  };
  return agent;
}

/** Rejects with a ConnectionError that names the proxy. */
function openTunnel(proxy: Proxy, { host, port }: { host: string; port: number }, timeoutMs: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
    const request: ClientRequest = (proxy.url.protocol === "https:" ? secureRequest : plainRequest)({
      ...proxyAddress(proxy),
      ...{ method: "CONNECT", path: authority, agent: false },
      headers: { host: authority, ...proxyHeaders(proxy) },
    });
    const timer = setTimeout(() => {
      const message = `${name(proxy)} did not open a connection to ${authority} within ${timeoutMs} ms`;
      request.destroy(new ConnectionError("timeout", message, { mayHaveRun: false }));
    }, timeoutMs);
    request
      .once("connect", ({ statusCode = 0 }: IncomingMessage, socket: Socket, head: Buffer) => {
        clearTimeout(timer);
        if (statusCode >= 200 && statusCode < 300) {
          if (head.length > 0) socket.unshift(head);
          resolve(socket);
          return;
        }
        socket.destroy();
        reject(refusedByProxy(proxy, authority, statusCode));
      })
      .once("error", (error) => {
        clearTimeout(timer);
        reject(proxyFailed(proxy, error));
      })
      .end();
  });
}

/** The proxy answered, but not with what the server said. */
export function refusedByProxy(proxy: Proxy, authority: string, status: number): ConnectionError {
  const message =
    status === 407
      ? `${name(proxy)} requires a user name and password (407); write http://NAME:PASSWORD@HOST:PORT in ${proxy.variable}`
      : `${name(proxy)} refused to connect to ${authority} (${status}); add the host to NO_PROXY if it needs no proxy`;
  return new ConnectionError("refused", message, { status, mayHaveRun: false });
}

/** The proxy cannot be reached. */
export function proxyFailed(proxy: Proxy, error: unknown): ConnectionError {
  if (error instanceof ConnectionError) return error;
  const code = systemErrorCode(error) ?? "no connection";
  return refused(`${name(proxy)} cannot be reached (${code}); check ${proxy.variable}`, error);
}

function name({ url, variable }: Proxy): string {
  return `The proxy at ${hostOf(url)} (${variable})`;
}

/**
 * Refuses a name that `lookup` refuses. The proxy resolves the name itself, so this is all that can be checked here; if
 * the name cannot be resolved here, as is usual behind a proxy, the proxy decides.
 */
export function checkName(hostname: string, lookup: LookupFunction): Promise<void> {
  return new Promise((resolve, reject) => {
    lookup(withoutBrackets(hostname), { all: true }, (error) => {
      if (error instanceof ConnectionError) reject(error);
      else resolve();
    });
  });
}
