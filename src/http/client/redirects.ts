// Follows the redirects of a server, if they lead to the same server. Errors name the target by its origin at most.

import { ConnectionError } from "../../core/errors.ts";
import type { ClientHttpRequest, HttpResponse, Requester } from "./requester.ts";
import { hostOf } from "./requester-errors.ts";

const MAX_REDIRECTS = 5;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** These keep the method; the others turn a POST into a GET. */
const METHOD_PRESERVING: ReadonlySet<number> = new Set([307, 308]);

/**
 * Follows a redirect only within one origin, so that neither the request nor its credentials reach another server, and
 * only if the method stays the same. Any other redirect is an error that names the target.
 */
export function followSameOrigin(requester: Requester): Requester {
  const follow = async (request: ClientHttpRequest): Promise<HttpResponse> => {
    const response = await requester(request);
    return isRedirect(response) ? followRedirect(requester, request, response) : response;
  };
  follow.close = (): void => requester.close();
  return follow;
}

export function isRedirect({ status, headers }: HttpResponse): boolean {
  return REDIRECTS.has(status) && headers["location"] !== undefined;
}

/** As `followSameOrigin`, for a response that is a redirect. */
export async function followRedirect(
  requester: Requester,
  request: ClientHttpRequest,
  first: HttpResponse,
): Promise<HttpResponse> {
  let { url } = request;
  let response = first;
  for (let count = 0; isRedirect(response); count += 1) {
    response.discard();
    url = redirectTarget(request, url, response.status, response.headers["location"] ?? "");
    const problem = `The server at ${hostOf(url)} redirects more than ${MAX_REDIRECTS} times`;
    if (count >= MAX_REDIRECTS) throw redirectError(`${problem}; check its address`);
    response = await requester({ ...request, url });
  }
  return response;
}

function redirectTarget(request: ClientHttpRequest, from: URL, status: number, location: string): URL {
  const server = `The server at ${hostOf(from)}`;
  if (!URL.canParse(location, from.href)) {
    throw redirectError(`${server} redirects to an invalid address; check its address`);
  }
  const to = new URL(location, from);
  if (to.origin !== from.origin || to.origin === "null") {
    const origin = to.origin === "null" ? `${to.protocol} (which is not http)` : to.origin;
    throw redirectError(`${server} redirects to ${origin}; connect to that address if you trust it`);
  }
  if (request.method !== "GET" && request.method !== "HEAD" && !METHOD_PRESERVING.has(status)) {
    const problem = `${server} redirects a ${request.method} with ${status}, which would turn it into a GET`;
    throw redirectError(`${problem}; connect to the address that it redirects to`);
  }
  to.username = "";
  to.password = "";
  return to;
}

/** A server that redirects has not run the request. */
export function redirectError(message: string): ConnectionError {
  return new ConnectionError("http", message, { mayHaveRun: false });
}
