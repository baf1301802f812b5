// Redirects, followed where that gives nothing away: within one origin, so that neither what the request says nor who
// we are is shown to another end, and never in a way that would make another request of it. Everything else is an
// error that names where the end wanted us to go, and leaves it to a person to go there.

import { ConnectionError } from "../../core/errors.ts";
import { hostOf } from "../server/request-faults.ts";
import type { HttpAnswer, HttpRequest, Requester } from "./requester.ts";

export interface RedirectOptions {
  /** Redirects of one request. */
  readonly most?: number;
}

const MOST_REDIRECTS = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** The others turn what is not a GET into one. */
const AS_IT_IS: ReadonlySet<number> = new Set([307, 308]);

/** The same requester, but an answer that it gives is no redirect that could be followed. */
export function sameOrigin(requester: Requester, options: RedirectOptions = {}): Requester {
  const { most = MOST_REDIRECTS } = options;
  const following = async (request: HttpRequest): Promise<HttpAnswer> => {
    let { url } = request;
    for (let count = 0; ; count += 1) {
      const answer = await requester(url === request.url ? request : { ...request, url });
      const { location } = answer.headers;
      if (location === undefined || !REDIRECTS.has(answer.status)) return answer;
      answer.discard();
      url = target(request, url, answer.status, location);
      if (count >= most)
        throw refusal(`The end at ${hostOf(url)} redirects more than ${most} times; check its address`);
    }
  };
  following.close = (): void => requester.close();
  return following;
}

function target(request: HttpRequest, from: URL, status: number, location: string): URL {
  const end = `The end at ${hostOf(from)}`;
  if (!URL.canParse(location, from.href))
    throw refusal(`${end} redirects to something that is no address; check its address`);
  const to = new URL(location, from);
  if (to.origin !== from.origin || to.origin === "null") {
    const origin = to.origin === "null" ? `${to.protocol} (which is not http)` : to.origin;
    throw refusal(`${end} redirects to ${origin}; connect to that address if you trust it`);
  }
  if (request.method !== "GET" && !AS_IT_IS.has(status)) {
    const what = `${end} redirects a ${request.method} with ${status}, which would make a GET of it`;
    throw refusal(`${what}; connect to ${to.origin}${to.pathname} itself`);
  }
  to.username = "";
  to.password = "";
  return to;
}

/** An end that sends us elsewhere has not done what it was asked for. */
function refusal(message: string): ConnectionError {
  return new ConnectionError("http", message, { mayHaveRun: false });
}
