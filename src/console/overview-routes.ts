// The routes of Home and Chain: the overview, what `pin` holds, sign-ins, and the picture of the chain.

import { errorMessage } from "../core/values.ts";
import type { ChainCounters } from "./chain-picture.ts";
import { serverIn } from "./gateway-routes.ts";
import type { HeldItems } from "./held-items.ts";
import type { ConsoleHost } from "./host.ts";
import type { OverviewSource } from "./overview.ts";
import { ApiError, type ApiRequest, type Route } from "./route.ts";
import type { SignInPage } from "./types.ts";

export interface OverviewRouteParts {
  readonly host: ConsoleHost;
  readonly overview: OverviewSource;
  readonly held: HeldItems;
  readonly chain: ChainCounters;
}

export function overviewRoutes({ host, overview, held, chain }: OverviewRouteParts): Route[] {
  return [
    {
      method: "GET",
      path: "overview",
      about: "What needs a person, the servers, the clients, and the calls of the last hour.",
      run: () => overview.read(),
    },
    {
      method: "GET",
      path: "pins/:server",
      about: "The definitions of a server that `pin` holds back, and what has changed in them.",
      run: ({ params }) => held.review(params["server"] ?? ""),
    },
    {
      method: "POST",
      path: "approve",
      about:
        "Approves what `pin` holds of `server`, or only `items`, an array of names. With `digests`, only definitions that have them. Returns what is still held.",
      run: ({ body }) => {
        const { server } = body;
        if (typeof server !== "string") throw new ApiError(400, "`server` must be the name of a server");
        return held.approve(server, stringsIn(body, "items"), stringsIn(body, "digests"));
      },
    },
    {
      method: "POST",
      path: "sign-in",
      about:
        "Begins a sign-in to `server`. Returns the URL of the page where the person signs in; afterwards the server is started anew.",
      run: (request) => signIn(host, serverIn(host, request)),
    },
    {
      method: "GET",
      path: "chain",
      about: "The picture of the chain. With `node`, the id of one, what its last calls changed is compared.",
      run: ({ query }) => chain.read(query.get("node") ?? undefined),
    },
  ];
}

function stringsIn(body: ApiRequest["body"], name: string): readonly string[] | undefined {
  const { [name]: value } = body;
  if (value === undefined) return undefined;
  if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value;
  throw new ApiError(400, `\`${name}\` must be an array of strings`);
}

/** The sign-ins whose end is awaited, so that the server is started anew once. */
const awaited = new WeakSet<Promise<void>>();

async function signIn(host: ConsoleHost, server: string): Promise<SignInPage> {
  const { page, done } = await host.running.signIn(server).catch((error: unknown) => {
    throw new ApiError(409, errorMessage(error), `\`catenary doctor ${server}\` checks it step by step`);
  });
  if (!awaited.has(done)) {
    awaited.add(done);
    void finish(host, server, done);
  }
  return page === undefined ? {} : { url: page.href };
}

async function finish(host: ConsoleHost, server: string, done: Promise<void>): Promise<void> {
  try {
    await done;
    host.log.write({ level: "info", upstream: server, message: "signed in" });
    await host.restart(server);
  } catch (error) {
    host.log.write({ level: "warning", upstream: server, message: `the sign-in has failed: ${errorMessage(error)}` });
  }
}
