// Loads what requests may need before the first one arrives. Code is loaded on first use elsewhere, so that small programs
// stay small. A server that runs for weeks cannot rely on that: once it has no descriptor left to open a file with, Node
// remembers the failure, and never loads that module again.

import { unref } from "../../core/async.ts";

/** On stdio a client waits for the first answer, so the rest is loaded this much later. */
const STDIO_DELAY_MS = 1_000;

/** Over HTTP, loads before the first request is accepted. On stdio, where there is one client, loads a little later. */
export async function loadAhead(isStdio: boolean, load: () => Promise<void>): Promise<void> {
  if (!isStdio) return load();
  unref(setTimeout(() => void load().catch(() => undefined), STDIO_DELAY_MS));
}

/** What any served handler may load while it answers. */
export async function loadForServer(): Promise<void> {
  await Promise.all([
    import("../../core/seal.ts"),
    import("../../dialogue/calls/client-requests.ts"),
    import("../../dialogue/calls/input-required.ts"),
    import("../../dialogue/calls/url-elicitation.ts"),
    import("../../dialogue/session/client-tasks.ts"),
    import("../../dialogue/stateless/parked-call.ts"),
    import("../../http/server/authenticate.ts"),
    import("../../http/server/health.ts"),
    import("../../http/server/legacy-sse.ts"),
    import("../../http/server/without-state.ts"),
    import("../../protocol/client-results.ts"),
    import("../../protocol/compat-documents.ts"),
    import("../../tools/header-params.ts"),
    import("../../tools/interpreted-schema.ts"),
    import("../../tools/json-schema.ts"),
    import("../../protocol/revisions/index.ts"),
    import("../../tools/facts.ts"),
    import("../../server/completion.ts"),
    import("../../server/sealed-states.ts"),
    import("../../server/tasks.ts"),
    import("../../tasks/completion.ts"),
  ]);
}

/** The languages of code mode. Those of live servers are loaded with the config, like all kinds of upstreams. */
const LANGUAGES: Readonly<Record<string, () => Promise<unknown>>> = {
  js: () => import("../../live/js/index.ts"),
  lisp: () => import("../../live/lisp/index.ts"),
  smalltalk: () => import("../../live/smalltalk/index.ts"),
};

/** What a gateway and its upstreams may load; `language` is that of code mode, if it is on. */
export async function loadForGateway(language?: string): Promise<void> {
  await Promise.all([
    LANGUAGES[language ?? ""]?.(),
    import("minisearch"),
    import("../../auth/bearer/jwt.ts"),
    import("../../auth/oauth/authorizers.ts"),
    import("../../auth/oauth/keys.ts"),
    import("../../auth/oauth/loopback-redirect.ts"),
    import("../../auth/oauth/oauth-authorizer.ts"),
    import("../../core/private-files.ts"),
    import("../../auth/oauth/stored-tokens.ts"),
    import("../../auth/oauth/token-request.ts"),
    import("../../auth/oauth/token-stores.ts"),
    import("../../chain/router/router.ts"),
    import("../../chain/upstream/create-pool.ts"),
    import("../../client/connect.ts"),
    import("../../client/tasks.ts"),
    import("../../config/built-in.ts"),
    import("../../config/self-calls.ts"),
    import("../../console/stored-sign-in.ts"),
    import("../../core/file-lock.ts"),
    import("../../core/files.ts"),
    import("../../dialogue/session/server-tasks.ts"),
    import("../../http/client/connect.ts"),
    import("../../http/client/network-guard.ts"),
    import("../../http/client/node-requester.ts"),
    import("../../http/client/proxy.ts"),
    import("../../http/client/fetch-requester.ts"),
    import("../../process/descriptors.ts"),
    import("../../server/schema.ts"),
    import("../../transport/child-process.ts"),
    import("./upstream-sign-in.ts"),
  ]);
}
