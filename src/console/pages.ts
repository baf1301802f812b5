// The console over HTTP: its static files, and its API for browsers that have the operator's cookie. Host and Origin were
// checked before, as for MCP; here a page must also be our own. Everything else at other paths is not ours.

import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { packageFile } from "../core/files.ts";
import { fieldsOf } from "../core/values.ts";
import type { HttpRequest } from "../http/server/http-request.ts";
import { cookieValues, type ConsoleAccess } from "./access.ts";
import { ANSWER_HEADERS, sendJson, untilClosed, type Api } from "./api.ts";

export interface PagesOptions {
  /** Where the console is: `/`, or `/console/` if the endpoint itself is at `/`. */
  readonly base: string;
  /** The port of the gateway, so that gateways on one host have different cookies. */
  readonly port: number;
  readonly access: ConsoleAccess;
  readonly api: Api;
  /** Aborts when the console ends. */
  readonly closed?: AbortSignal | undefined;
}

/** Scripts and styles are files of ours, and nothing is loaded from elsewhere. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data: blob:",
  "media-src data: blob:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join("; ");

const PAGE_HEADERS: Readonly<Record<string, string>> = {
  ...ANSWER_HEADERS,
  "content-security-policy": POLICY,
  "cross-origin-opener-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
  "x-frame-options": "DENY",
};

const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".svg": "image/svg+xml",
};

/** `catenary console` prints a new link. */
const NO_ACCESS = {
  error: "This browser has not opened the console's link",
  hint: "run catenary console, which prints a new link",
};

/** Where the console is on a port with an endpoint at this path: at the root, unless paths there may be endpoints. */
export function consolePath(endpoint: string): string {
  return /^\/(?:$|(?:api|assets|console)(?:\/|$))/.test(endpoint) ? "/console/" : "/";
}

/** Answers requests for the console. Returns false for a path that is not the console's. */
export function createPages({ base, port, access, api, closed }: PagesOptions): (request: HttpRequest) => boolean {
  const cookie = `catenary-${port}`;
  const apiBase = `${base}api/`;
  const loadFiles = fileLoader();

  const login = async (request: HttpRequest): Promise<void> => {
    const received = readToken(request);
    const token = closed === undefined ? await received : await untilClosed(closed, received).catch(() => "");
    const value = access.exchange(token);
    if (value === undefined) {
      const error = "This link was used before, or is not one of this gateway";
      return sendJson(request, 403, { error, hint: NO_ACCESS.hint });
    }
    // A proxy in front of us may speak TLS.
    const secure = request.headers["origin"]?.startsWith("https:") === true ? "; Secure" : "";
    sendJson(request, 200, {}, { "set-cookie": `${cookie}=${value}; Path=/; HttpOnly; SameSite=Strict${secure}` });
  };

  const answerApi = (request: HttpRequest, path: string): void => {
    if (!isFromOurPage(request)) {
      sendJson(request, 403, { error: "The console answers only its own pages" });
    } else if (path === "login" && request.method === "POST") void login(request);
    else if (!access.isKnown(cookieValues(request.headers["cookie"], cookie))) sendJson(request, 401, NO_ACCESS);
    else if (path === "logout" && request.method === "POST") {
      access.forget(cookieValues(request.headers["cookie"], cookie));
      sendJson(request, 200, {}, { "set-cookie": `${cookie}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0` });
    } else api(request, path);
  };

  const sendFile = async (request: HttpRequest, path: string): Promise<void> => {
    const files = await loadFiles();
    const file = files.get(path);
    const { method, headers } = request;
    if (file === undefined) {
      const isBuilt = files.size > 0;
      const text = isBuilt ? "Not found\n" : "The pages of the console are missing in dist: run npm run build\n";
      request.respond(404, { ...PAGE_HEADERS, "content-type": "text/plain; charset=utf-8" }, text);
    } else if (method !== "GET" && method !== "HEAD") {
      request.respond(405, { ...PAGE_HEADERS, allow: "GET, HEAD" });
    } else {
      // The names of assets change with their content.
      const caching = path.startsWith("assets/") ? "max-age=31536000, immutable" : "no-cache";
      const all = { ...PAGE_HEADERS, "cache-control": caching, etag: file.etag };
      if (headers["if-none-match"] === file.etag) request.respond(304, all);
      else request.respond(200, { ...all, "content-type": file.type }, file.text);
    }
  };

  return (request) => {
    const { path } = request;
    if (path === base.slice(0, -1) && path !== "") {
      // Relative, for a proxy that serves us under a prefix.
      request.respond(308, { ...PAGE_HEADERS, location: `.${base}` });
      return true;
    }
    if (!path.startsWith(base)) return false;
    if (path.startsWith(apiBase)) answerApi(request, path.slice(apiBase.length));
    else {
      const file = path.slice(base.length);
      const isOurs = file === "" || file === "icon.svg" || file.startsWith("assets/");
      if (!isOurs) return false;
      void sendFile(request, file === "" ? "index.html" : file);
    }
    return true;
  };
}

/** Whether a request comes from our page, or from no page at all. */
function isFromOurPage({ headers }: HttpRequest): boolean {
  const { origin, host, "sec-fetch-site": site } = headers;
  if (origin !== undefined && URL.canParse(origin)) {
    if (new URL(origin).host !== host?.toLowerCase()) return false;
  } else if (origin !== undefined) return false;
  return site === undefined || site === "same-origin" || site === "none";
}

async function readToken(request: HttpRequest): Promise<string> {
  const text = await new Promise<string>((resolve) =>
    request.readBody({ messageBytes: 1_024, bodyMs: 10_000 }, { onBody: resolve, onError: () => resolve("") }),
  );
  try {
    const { token } = fieldsOf(JSON.parse(text));
    return typeof token === "string" ? token : "";
  } catch {
    return "";
  }
}

interface StaticFile {
  readonly type: string;
  readonly text: string;
  readonly etag: string;
}

/** Reads the built pages when they are first asked for. Empty if they are not built. */
function fileLoader(): () => Promise<ReadonlyMap<string, StaticFile>> {
  let loading: Promise<ReadonlyMap<string, StaticFile>> | undefined;
  const load = async (): Promise<ReadonlyMap<string, StaticFile>> => {
    const folder = packageFile("dist/console/web");
    const names = await readdir(folder, { recursive: true }).catch(() => []);
    const files = await Promise.all(
      names.flatMap((name) => {
        const type = TYPES[extname(name)];
        return type === undefined ? [] : [readStatic(folder, name, type)];
      }),
    );
    return new Map(files);
  };
  return () => (loading ??= load());
}

async function readStatic(folder: string, name: string, type: string): Promise<[string, StaticFile]> {
  const text = await readFile(join(folder, name), "utf8");
  const etag = `"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"`;
  return [name.replaceAll("\\", "/"), { type, text, etag }];
}
