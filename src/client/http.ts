// An end that is an address: what it is reached by, and what is wrong with an address that is none. How the two sides
// speak over HTTP is the dialogue's; who we are is for the authorizer that the program brings.

import type { Authorizer } from "../core/authentication.ts";
import { ConnectionError } from "../core/errors.ts";
import { openHttp, type HttpTarget } from "../http/client/connect.ts";
import type { Opened, OpenOptions } from "../dialogue/connect.ts";
import { sameOrigin, type Requester } from "../http/client/requester.ts";

export interface HttpOptions {
  /** Proves to an end over HTTP who we are: `oauth(...)`, `bearerToken(...)`, or your own. */
  readonly auth?: Authorizer;
  /** Sent with every request over HTTP. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Sends our requests, where node:http shall not: behind a proxy, in another runtime. */
  readonly fetch?: typeof fetch;
}

export async function openAddress(
  target: string | URL,
  { auth, headers, fetch, limits }: HttpOptions & { readonly limits?: HttpTarget["limits"] },
  how: OpenOptions,
): Promise<Opened> {
  const url = addressOf(target);
  const requester = sameOrigin(await requesterBy(fetch));
  return openHttp({ url, requester, auth, headers, limits }, how);
}

async function requesterBy(given: typeof fetch | undefined): Promise<Requester> {
  if (given !== undefined) return (await import("../http/client/fetch-requester.ts")).fetchRequester(given);
  return (await import("../http/client/node-requester.ts")).nodeRequester();
}

const UNSENT = { mayHaveRun: false };

function addressOf(target: string | URL): URL {
  const text = String(target);
  const advice = "connect to http://..., https://..., or a command: { command, args }";
  const wrong = `Cannot connect to ${shown(text)}`;
  if (!URL.canParse(text)) throw new ConnectionError("refused", `${wrong}: it is no URL; ${advice}`, UNSENT);
  const url = new URL(text);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new ConnectionError("refused", `${wrong}: it is neither http nor https; ${advice}`, UNSENT);
  }
  if (url.username !== "" || url.password !== "") {
    const why = "a name and a password do not belong into an address";
    throw new ConnectionError(
      "refused",
      `Cannot connect to ${url.host}: ${why}; send them by \`headers\` or \`auth\``,
      UNSENT,
    );
  }
  url.hash = "";
  return url;
}

/** Without what an address may hold that nobody else should read: names, passwords, the query. */
function shown(text: string): string {
  return text.replace(/[?#].*$/s, "").replace(/^([^/]*\/\/)?.*@/s, "$1...@");
}
