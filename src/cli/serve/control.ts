// The control socket of a running gateway: the API of the console over HTTP on a Unix socket that only its user can open,
// and what only that user may know. `catenary status`, `logs`, `watch` and others find the sockets of all running gateways
// in their folders.

import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingMessage, type Server } from "node:http";
import { chmod, readdir, rm } from "node:fs/promises";
import { rmSync } from "node:fs";
import { tmpdir, userInfo } from "node:os";
import { isAbsolute, join } from "node:path";
import { text as readText } from "node:stream/consumers";
import { createApi } from "../../console/api.ts";
import type { Route } from "../../console/route.ts";
import type { GatewayDocument } from "../../console/types.ts";
import { unref } from "../../core/async.ts";
import { makePrivateDirectory, stateDirectory } from "../../core/private-files.ts";
import { defined, errorMessage } from "../../core/values.ts";
import { NodeHttpRequest } from "../../http/server/node-request.ts";
import { NotFoundError, UnreachableError } from "../command.ts";
import type { LogEntry } from "./event-log.ts";

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
export async function openControl(routes: readonly Route[]): Promise<void> {
  const api = createApi(routes);
  const server = createServer((request, response) => {
    const received = new NodeHttpRequest(request, response);
    api(received, received.path.slice(1));
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

/** A running gateway, as its socket shows it. */
export interface RunningGateway extends GatewayDocument {
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
        const info = (await askGateway(socket, "GET", "/status")) as GatewayDocument;
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
export async function askGateway(
  socket: string,
  method: "GET" | "POST",
  path: string,
  body?: object,
): Promise<unknown> {
  const response = await open(socket, method, path, { body, timeoutMs: method === "GET" ? ANSWER_MS : undefined });
  return JSON.parse(await readText(response));
}

/** Calls back with each event of a stream, until it or the gateway ends, or the signal is aborted. */
export async function followGateway(
  socket: string,
  path: string,
  onEvent: (name: string, data: unknown) => void,
  signal?: AbortSignal,
): Promise<void> {
  const response = await open(socket, "GET", path, { signal });
  let rest = "";
  try {
    for await (const chunk of response.setEncoding("utf8")) {
      const events = `${rest}${chunk as string}`.split("\n\n");
      rest = events.pop() ?? "";
      for (const event of events) {
        const [, name, json] = /^event: (.*)\ndata: (.*)$/.exec(event) ?? [];
        if (name !== undefined && json !== undefined) onEvent(name, JSON.parse(json));
      }
    }
  } catch {
    // The gateway has ended, or the signal was aborted.
  }
}

/** Calls back with each entry of the log; with `isFollowed`, until the gateway ends. */
export async function readLog(
  socket: string,
  server: string | undefined,
  isFollowed: boolean,
  onEntry: (entry: LogEntry) => void,
): Promise<void> {
  const path = `/logs?${new URLSearchParams(defined({ server, follow: isFollowed ? "1" : undefined })).toString()}`;
  const onEntries = (entries: unknown): void => (entries as readonly LogEntry[]).forEach(onEntry);
  if (isFollowed) await followGateway(socket, path, (_name, entries) => onEntries(entries));
  else onEntries(((await askGateway(socket, "GET", path)) as { readonly entries: unknown }).entries);
}

interface OpenOptions {
  readonly body?: object | undefined;
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** Rejects with the error that the gateway sends. */
async function open(
  socket: string,
  method: string,
  path: string,
  { body, timeoutMs, signal }: OpenOptions,
): Promise<IncomingMessage> {
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    const fail = (cause: unknown): void =>
      reject(new UnreachableError(`The gateway does not answer: ${errorMessage(cause)}`, { cause }));
    const headers = method === "POST" ? { "content-type": "application/json" } : {};
    const options = { socketPath: socket, method, path, headers, agent: false, ...(signal && { signal }) };
    const request = httpRequest(options, resolve);
    request.once("error", fail);
    if (timeoutMs !== undefined) {
      const timer = unref(setTimeout(() => request.destroy(new Error(`no answer in ${timeoutMs} ms`)), timeoutMs));
      request.once("close", () => clearTimeout(timer));
    }
    request.end(method === "POST" ? JSON.stringify(body ?? {}) : undefined);
  });
  if (response.statusCode === 200) return response;
  const { error, hint } = JSON.parse(await readText(response)) as { error: string; hint?: string };
  const message = hint === undefined ? error : `${error}; ${hint}`;
  throw response.statusCode === 404 ? new NotFoundError(message) : new UnreachableError(message);
}
