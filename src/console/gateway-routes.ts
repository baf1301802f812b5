// The routes about the gateway itself: what it is, its log, and starting a server anew. They answer on the control socket
// also where there is no console.

import { onAbort } from "../core/async.ts";
import { errorMessage } from "../core/values.ts";
import { hidingRoutes } from "./hiding.ts";
import type { ConsoleHost } from "./host.ts";
import { ApiError, EventStream, type ApiRequest, type Route } from "./route.ts";
import type { GatewayDocument, LogLine } from "./types.ts";

/** A reader of the log that does not read loses entries. */
const MAX_UNREAD_BYTES = 4 * 1024 * 1024;

/** `shown`: an entry of the log as it may be shown. `closed`: aborts when the console ends. */
export function gatewayRoutes(host: ConsoleHost, shown: (line: LogLine) => LogLine, closed?: AbortSignal): Route[] {
  const status = (): GatewayDocument => ({ ...host.info(), upstreams: host.running.gateway.status() });
  return [
    {
      method: "GET",
      path: "status",
      about: "The gateway, and the status of each server.",
      run: status,
    },
    {
      method: "GET",
      path: "logs",
      about:
        "The last entries of the log, oldest first; with `server`, of one server. With `follow`, a stream of events `log`, first with these entries.",
      run: ({ query, signal }) => {
        const server = query.get("server") ?? undefined;
        if (server !== undefined) checkServer(host, server);
        const entries = host.log.recent(server).map(shown);
        if (!query.has("follow")) return { entries };
        return followLog(entries, [signal, closed], (onEntry) =>
          host.log.follow((entry) => {
            if (server === undefined || entry.upstream === server) onEntry(shown(entry));
          }),
        );
      },
    },
    {
      method: "POST",
      path: "restart",
      about: "Starts `server` anew; calls in flight may finish on the old process. Returns what `GET status` does.",
      run: async (request) => {
        const server = serverIn(host, request);
        try {
          await host.restart(server);
        } catch (error) {
          throw new ApiError(409, errorMessage(error));
        }
        return status();
      },
    },
    ...hidingRoutes(host),
  ];
}

function followLog(
  entries: readonly LogLine[],
  ends: readonly (AbortSignal | undefined)[],
  follow: (onEntry: (entry: LogLine) => void) => () => void,
): EventStream {
  return new EventStream((sink) => {
    sink.send("log", entries);
    const stop = follow((entry) => {
      if (sink.bufferedBytes < MAX_UNREAD_BYTES) sink.send("log", [entry]);
    });
    const end = (): void => {
      stop();
      for (const forget of forgets) forget();
      sink.end();
    };
    const forgets: (() => void)[] = [];
    forgets.push(...ends.map((signal) => onAbort(signal, end)));
  });
}

/** The server that the body names. Throws an ApiError if there is none. */
export function serverIn(host: ConsoleHost, { body }: Pick<ApiRequest, "body">): string {
  const { server } = body;
  if (typeof server !== "string") throw new ApiError(400, "`server` must be the name of a server");
  checkServer(host, server);
  return server;
}

function checkServer(host: ConsoleHost, server: string): void {
  const names = Object.keys(host.running.gateway.status());
  if (names.includes(server)) return;
  throw new ApiError(404, `There is no server ${server}; there are ${names.join(", ")}`);
}
