// Answers GET /healthz and GET /readyz beside the endpoint, for what supervises the server.

import type { Authenticator } from "../../core/authentication.ts";
import type { HttpRequest } from "./http-request.ts";
import type { HttpRouterOptions } from "./options.ts";

/**
 * Whether the process answers, and whether it serves requests. Only a caller that may call gets details. `path` is that of
 * the endpoint.
 */
export async function answerHealth(
  request: HttpRequest,
  cors: Readonly<Record<string, string>>,
  health: NonNullable<HttpRouterOptions["health"]>,
  auth: Authenticator | undefined,
  path: string,
  isClosing: boolean,
): Promise<void> {
  const answer = (status: number, body: object): void => {
    const headers = { "content-type": "application/json", "cache-control": "no-store", ...cors };
    request.respond(status, headers, JSON.stringify(body));
  };
  if (request.method !== "GET" && request.method !== "HEAD") {
    request.respond(405, { allow: "GET, HEAD", ...cors });
  } else if (request.path === "/healthz") answer(200, { status: "ok" });
  else if (isClosing) answer(503, { status: "shutting down" });
  else {
    const { principal, mayCall } = await identify(request, auth, path);
    const { isReady, details } = health(principal);
    answer(isReady ? 200 : 503, { status: isReady ? "ready" : "not ready", ...(mayCall && details) });
  }
}

async function identify(
  { headers, origin }: HttpRequest,
  auth: Authenticator | undefined,
  path: string,
): Promise<{ readonly principal?: string | undefined; readonly mayCall: boolean }> {
  if (auth === undefined) return { mayCall: true };
  if (headers["authorization"] === undefined) return { mayCall: false };
  return auth.authenticate({ headers, endpoint: `${origin}${path}` }).then(
    ({ principal }) => ({ principal, mayCall: true }),
    () => ({ mayCall: false }),
  );
}
