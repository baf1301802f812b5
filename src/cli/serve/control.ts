// The control socket of a running gateway: HTTP and JSON on a Unix socket that only its user can open. `catenary status`,
// `logs` and `restart` find the sockets of all running gateways in their folders.

import { once } from "node:events";
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from "node:http";
import { chmod, readdir, rm } from "node:fs/promises";
import { rmSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { isAbsolute, join } from "node:path";
import { text as readText } from "node:stream/consumers";
import type { UpstreamStatus } from "../../chain/upstream/options.ts";
import { unref } from "../../core/async.ts";
import { makePrivateDirectory, stateDirectory } from "../../core/private-files.ts";
import { defined, errorMessage } from "../../core/values.ts";
import { NotFoundError, UnreachableError } from "../command.ts";
import type { EventLog, LogEntry } from "./event-log.ts";

/** What a running gateway tells about itself. */
export interface GatewayInfo {
  readonly pid: number;
  /** The absolute path of the config; absent if it is served without one. */
  readonly config?: string;
  /** What is served, for people. */
  readonly source: string;
  readonly url: string;
  readonly startedAt: string;
  readonly upstreams: Readonly<Record<string, UpstreamStatus>>;
}

export interface ControlledGateway {
  info(): GatewayInfo;
  /** The generated token that callers must send, so that other commands of this user can call. */
  readonly token?: string | undefined;
  readonly log: EventLog;
  /** Rejects with the reason if the upstream cannot be restarted. */
  restart(upstream: string): Promise<void>;
}

/** The longest path of a Unix socket on all systems. */
const MAX_SOCKET_PATH = 100;

/**
 * Where the sockets are: in the first folder that can be used. The last is one for temporary files, for a home that
 * cannot be written, and for long paths.
 */
function socketFolders(): readonly string[] {
  const runtime = process.env["XDG_RUNTIME_DIR"];
  const folder =
    runtime !== undefined && isAbsolute(runtime) ? join(runtime, "catenary") : join(stateDirectory(), "run");
  const temporary = join(tmpdir(), `catenary-${userInfo().uid}`);
  return folder.length + "/12345678.sock".length <= MAX_SOCKET_PATH ? [folder, temporary] : [temporary];
}

/** Opens the socket. Rejects if each folder could be used by others, or it cannot be opened there. */
export async function openControl(gateway: ControlledGateway): Promise<void> {
  const server = createServer((request, response) => {
    answer(gateway, request, response).catch((error: unknown) => send(response, 500, { error: errorMessage(error) }));
  });
  const [first = "", second = first] = socketFolders();
  const path = await openIn(server, first).catch((error: unknown) =>
    openIn(server, second).catch(() => Promise.reject(error)),
  );
  process.once("exit", () => rmSync(path, { force: true }));
  server.on("error", () => undefined);
  server.unref();
}

async function openIn(server: Server, folder: string): Promise<string> {
  const path = join(folder, `${process.pid}.sock`);
  await makePrivateDirectory(folder);
  await rm(path, { force: true });
  server.listen(path);
  await once(server, "listening");
  await chmod(path, 0o600);
  return path;
}

async function answer(gateway: ControlledGateway, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
  const upstream = searchParams.get("upstream") ?? undefined;
  if (upstream !== undefined && !Object.hasOwn(gateway.info().upstreams, upstream)) {
    const names = Object.keys(gateway.info().upstreams).join(", ");
    return send(response, 404, { error: `There is no server ${upstream}; there are ${names}` });
  }
  if (pathname === "/status") return send(response, 200, gateway.info());
  if (pathname === "/token") return send(response, 200, defined({ token: gateway.token }));
  if (pathname === "/logs") return sendLog(gateway.log, response, upstream, searchParams.has("follow"));
  if (pathname !== "/restart" || request.method !== "POST" || upstream === undefined) {
    return send(response, 404, { error: `There is no ${pathname}` });
  }
  try {
    await gateway.restart(upstream);
  } catch (error) {
    return send(response, 409, { error: errorMessage(error) });
  }
  return send(response, 200, gateway.info());
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** A caller that does not read loses entries. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

function sendLog(log: EventLog, response: ServerResponse, upstream: string | undefined, isFollowed: boolean): void {
  const write = (entry: LogEntry): void => {
    const isAsked = upstream === undefined || entry.upstream === upstream;
    if (isAsked && response.writableLength < MAX_UNREAD_BYTES) response.write(`${JSON.stringify(entry)}\n`);
  };
  response.writeHead(200, { "content-type": "application/x-ndjson" });
  for (const entry of log.recent(upstream)) write(entry);
  if (isFollowed) response.once("close", log.follow(write));
  else response.end();
}

/** A running gateway, as its socket shows it. */
export interface RunningGateway extends GatewayInfo {
  readonly socket: string;
}

/**
 * All running gateways of this user, oldest first. Sockets without a listener are removed. Rejects if the first folder
 * could be used by others, since their sockets would be taken for gateways. Such a folder for temporary files is not
 * looked at, since everyone can make one.
 */
export async function findGateways(): Promise<readonly RunningGateway[]> {
  const [first = "", ...others] = socketFolders();
  const gateways = await Promise.all([findIn(first), ...others.map((folder) => findIn(folder).catch(() => []))]);
  return gateways.flat().toSorted((one, other) => one.startedAt.localeCompare(other.startedAt));
}

async function findIn(folder: string): Promise<readonly RunningGateway[]> {
  const names = await readdir(folder).catch(() => undefined);
  if (names === undefined) return [];
  await makePrivateDirectory(folder);
  const sockets = names.filter((name) => /^\d+\.sock$/.test(name)).map((name) => join(folder, name));
  const gateways = await Promise.all(
    sockets.map(async (socket): Promise<RunningGateway[]> => {
      try {
        const info = (await askGateway(socket, "GET", "/status")) as GatewayInfo;
        // A gateway of an earlier version has only its config.
        return [{ ...info, source: info.source ?? info.config ?? "", socket }];
      } catch (error) {
        const { code } = (error as { cause?: NodeJS.ErrnoException }).cause ?? {};
        if (code === "ECONNREFUSED") await rm(socket, { force: true });
        return [];
      }
    }),
  );
  return gateways.flat();
}

/** The generated token of the gateway that runs at this URL, if it is one of this user's. */
export async function tokenOf(url: string): Promise<string | undefined> {
  const gateway = (await findGateways().catch(() => [])).find((candidate) => candidate.url === url);
  if (gateway === undefined) return undefined;
  const answer = await askGateway(gateway.socket, "GET", "/token").catch(() => ({}));
  return (answer as { readonly token?: string }).token;
}

/** A gateway that does not answer within this time is not shown. A restart may take as long as the server's start. */
const ANSWER_MS = 5_000;

/** Resolves to the JSON document of the answer. */
export async function askGateway(socket: string, method: string, path: string): Promise<unknown> {
  const response = await open(socket, method, path, method === "GET" ? ANSWER_MS : undefined);
  return JSON.parse(await readText(response));
}

/** Calls back with each entry of the log; with `isFollowed`, until the gateway ends. */
export async function readLog(
  socket: string,
  upstream: string | undefined,
  isFollowed: boolean,
  onEntry: (entry: LogEntry) => void,
): Promise<void> {
  const query = new URLSearchParams(defined({ upstream, follow: isFollowed ? "1" : undefined }));
  const response = await open(socket, "GET", `/logs?${query.toString()}`);
  let rest = "";
  try {
    for await (const chunk of response.setEncoding("utf8")) {
      const lines = `${rest}${chunk as string}`.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) onEntry(JSON.parse(line) as LogEntry);
    }
  } catch (error) {
    if (!isFollowed) throw error;
    // The gateway has ended.
  }
}

/** Rejects with the error that the gateway sends. */
async function open(socket: string, method: string, path: string, timeoutMs?: number): Promise<IncomingMessage> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const fail = (cause: unknown): void =>
      reject(new UnreachableError(`The gateway does not answer: ${errorMessage(cause)}`, { cause }));
    const request = httpRequest({ socketPath: socket, method, path, agent: false }, resolve);
    request.once("error", fail);
    if (timeoutMs !== undefined) {
      const timer = unref(setTimeout(() => request.destroy(new Error(`no answer in ${timeoutMs} ms`)), timeoutMs));
      request.once("close", () => clearTimeout(timer));
    }
    request.end();
  });
  if (response.statusCode === 200) return response;
  const { error } = JSON.parse(await readText(response)) as { error: string };
  throw response.statusCode === 404 ? new NotFoundError(error) : new UnreachableError(error);
}
