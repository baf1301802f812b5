// A token that the program has, as an authorizer: it goes with every request to one end, and nothing is done to get
// another. Where the end does not take it, the error says whose token it was, never what it is.

import type { Authorizer, Challenge, OutgoingRequest } from "../../core/authentication.ts";
import { type Told, toldBy } from "./challenges.ts";
import { plain, unauthorized } from "./failures.ts";

/** RFC 6750, 2.1, as far as a header can hold it. */
const TOKEN = /^[\x21-\x7e]+$/;

/** For one end: the first that it is used with. A function is asked before each request. */
export function bearerToken(token: string | (() => string | Promise<string>)): Authorizer {
  if (typeof token !== "function" && !isToken(token)) {
    throw new TypeError("bearerToken: this is no token: it is empty, or has what cannot stand in a header");
  }
  const source =
    typeof token === "function" ? "that the function given to bearerToken returned" : "given to bearerToken";
  const current = async (): Promise<string> => {
    const value = typeof token === "function" ? await token() : token;
    if (!isToken(value)) throw unauthorized("The function given to bearerToken returned no token");
    return `Bearer ${value}`;
  };
  let origin: string | undefined;
  const held = ({ url }: OutgoingRequest): void => {
    origin ??= url.origin;
    if (url.origin === origin) return;
    throw unauthorized(`The token given to bearerToken is for ${origin}, not for ${url.origin}: give each end its own`);
  };
  return {
    authorize: async (sending) => {
      held(sending);
      return { authorization: await current() };
    },
    refused: async (challenge) => {
      held(challenge);
      const told = toldBy(challenge.headers["www-authenticate"]);
      if (challenge.status === 403 && told.error !== "insufficient_scope") return false;
      // The function may know a newer one by now.
      const isNewer = typeof token === "function" && (await current()) !== challenge.sent["authorization"];
      if (isNewer && challenge.attempt === 1) return true;
      throw notTaken(challenge, told, source);
    },
  };
}

function isToken(value: unknown): boolean {
  return typeof value === "string" && TOKEN.test(value);
}

function notTaken({ url, status, sent }: Challenge, { error, description, scopes }: Told, source: string): Error {
  // The end may repeat the token that it was shown.
  const secrets = sent["authorization"]?.split(" ").slice(1);
  const words = [error, description].filter((word) => word !== undefined).map((word) => plain(word, secrets));
  const why = words.length === 0 ? `HTTP ${status}` : words.join(", ");
  const lacks = scopes === undefined ? "" : `; it wants the scope "${plain(scopes.join(" "))}"`;
  return unauthorized(`${url.origin}${url.pathname} refused the token ${source} (${why})${lacks}`);
}
