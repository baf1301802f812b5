// Who gets into the console over HTTP: only a browser with the operator's cookie, only from our own page, and only at our
// own name. Each refusal is checked with the exact bytes that an attacker would send.

import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "vitest";
import { ConsoleAccess } from "../../../src/console/access.ts";
import { createApi } from "../../../src/console/api.ts";
import { PAGES } from "../../../src/core/handler-marks.ts";
import type { HttpRequest } from "../../../src/http/server/http-request.ts";
import { consolePath, createPages } from "../../../src/console/pages.ts";
import { EventStream, type Route } from "../../../src/console/route.ts";
import { createServer } from "../../../src/server/server.ts";
import { serve, type Serving } from "../../../src/serve.ts";
import { RawHttp, type RawAnswer } from "../../support/http/raw-http.ts";

const open: Serving[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((serving) => serving.close()));
});

interface Console {
  readonly port: number;
  readonly access: ConsoleAccess;
  /** The requests that got to a route. */
  readonly ran: string[];
}

async function start(
  path = "/mcp",
  options: { readonly allowedOrigins?: readonly string[] } = {},
  closed?: AbortSignal,
): Promise<Console> {
  const access = new ConsoleAccess();
  const ran: string[] = [];
  const routes: Route[] = [
    {
      method: "GET",
      path: "info",
      about: "",
      run: () => {
        ran.push("info");
        return { name: "test" };
      },
    },
    {
      method: "POST",
      path: "call",
      about: "",
      run: ({ body }) => {
        ran.push("call");
        return { body };
      },
    },
    {
      method: "GET",
      path: "events",
      about: "",
      run: () => {
        ran.push("events");
        return new EventStream((sink) => {
          sink.send("info", { text: "line\nline" });
          sink.end();
        });
      },
    },
  ];
  const later: { answer?: ReturnType<typeof createPages> } = {};
  const pages = (request: HttpRequest): boolean => later.answer?.(request) ?? false;
  const handler = Object.assign(createServer({ name: "test", version: "1" }), { [PAGES]: pages });
  const serving = await serve(handler, { http: { port: 0, path, ...options } });
  open.push(serving);
  const port = Number(new URL(serving.url ?? "").port);
  const api = createApi(routes, closed);
  later.answer = createPages({ base: consolePath(path), port, access, api, closed });
  return { port, access, ran };
}

async function ask(port: number, head: readonly string[], body?: string): Promise<RawAnswer> {
  const connection = await RawHttp.open(port);
  const hasHost = head.some((line) => /^host:/i.test(line));
  const length = body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(body)}`];
  const [line = "", ...others] = head;
  const lines = [line, ...(hasHost ? [] : [`Host: 127.0.0.1:${port}`]), ...others, ...length];
  const answer = await connection.send(lines, body).answer();
  connection.socket.destroy();
  return answer;
}

const JSON_BODY = "Content-Type: application/json";

async function logIn({ port, access }: Console, base = "/"): Promise<string> {
  const body = JSON.stringify({ token: access.createToken() });
  const answer = await ask(port, [`POST ${base}api/login HTTP/1.1`, JSON_BODY], body);
  expect(answer.status).toBe(200);
  return (answer.headers["set-cookie"] ?? "").split(";")[0] ?? "";
}

describe("the console over HTTP", () => {
  it("exchanges a token once for a cookie that scripts and other sites do not get", async () => {
    const console = await start();
    const token = console.access.createToken();
    const body = JSON.stringify({ token });
    const first = await ask(console.port, ["POST /api/login HTTP/1.1", JSON_BODY], body);
    expect(first.status).toBe(200);
    const cookie = first.headers["set-cookie"] ?? "";
    expect(cookie).toMatch(new RegExp(`^catenary-${console.port}=[\\w-]{43}; Path=/; HttpOnly; SameSite=Strict$`));
    expect(cookie).not.toContain(token);
    const second = await ask(console.port, ["POST /api/login HTTP/1.1", JSON_BODY], body);
    expect(second.status).toBe(403);
    expect(second.headers["set-cookie"]).toBeUndefined();
    const info = await ask(console.port, ["GET /api/info HTTP/1.1", `Cookie: ${cookie.split(";")[0]}`]);
    expect([info.status, JSON.parse(info.body)]).toEqual([200, { name: "test" }]);
  });

  it("sends the cookie over TLS only, if the page came over TLS", async () => {
    const { port, access } = await start();
    const body = JSON.stringify({ token: access.createToken() });
    const answer = await ask(port, ["POST /api/login HTTP/1.1", JSON_BODY], body);
    expect(answer.headers["set-cookie"]).not.toContain("Secure");
    const overTls = ["POST /api/login HTTP/1.1", JSON_BODY, "Host: localhost", "Origin: https://localhost"];
    const secure = await ask(port, overTls, JSON.stringify({ token: access.createToken() }));
    expect(secure.headers["set-cookie"]).toMatch(/; Secure$/);
  });

  it.each([
    ["no cookie", []],
    ["an invented cookie", ["Cookie: catenary-PORT=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"]],
    ["the token as a cookie", ["Cookie: catenary-PORT=TOKEN"]],
    ["the cookie of another gateway", ["Cookie: catenary-1=VALUE"]],
  ])("refuses a request with %s", async (_what, headers) => {
    const console = await start();
    const token = console.access.createToken();
    const value = (await logIn(console)).split("=")[1] ?? "";
    const filled = headers.map((line) =>
      line.replace("PORT", String(console.port)).replace("TOKEN", token).replace("VALUE", value),
    );
    for (const line of ["GET /api/info HTTP/1.1", "GET /api/events HTTP/1.1", "GET /api/none HTTP/1.1"]) {
      const answer = await ask(console.port, [line, ...filled]);
      expect(answer.status).toBe(401);
      expect(JSON.parse(answer.body)).toMatchObject({ hint: expect.stringContaining("catenary console") });
    }
    const post = await ask(console.port, ["POST /api/call HTTP/1.1", JSON_BODY, ...filled], "{}");
    expect(post.status).toBe(401);
    expect(console.ran).toEqual([]);
  });

  it.each([
    ["another origin", ["Origin: https://evil.example"]],
    ["another port of this machine", ["Origin: http://127.0.0.1:1"]],
    ["an opaque origin", ["Origin: null"]],
    ["another site without an origin", ["Sec-Fetch-Site: cross-site"]],
    ["a page of the same site, but of another origin", ["Sec-Fetch-Site: same-site"]],
    ["another host, as after DNS rebinding", ["Host: evil.example"]],
    ["another host with its own origin", ["Host: evil.example", "Origin: http://evil.example"]],
    ["two hosts", ["Host: 127.0.0.1", "Host: evil.example"]],
  ])("refuses %s, with the right cookie", async (_what, headers) => {
    const console = await start("/mcp", { allowedOrigins: ["https://app.example"] });
    const cookie = `Cookie: ${await logIn(console)}`;
    const reading = await ask(console.port, ["GET /api/info HTTP/1.1", cookie, ...headers]);
    const acting = await ask(console.port, ["POST /api/call HTTP/1.1", cookie, JSON_BODY, ...headers], "{}");
    for (const answer of [reading, acting]) {
      expect([400, 403]).toContain(answer.status);
      expect(answer.headers["set-cookie"]).toBeUndefined();
    }
    expect(console.ran).toEqual([]);
  });

  it("refuses an origin that may call MCP, and gives it no CORS headers", async () => {
    const console = await start("/mcp", { allowedOrigins: ["https://app.example"] });
    const cookie = `Cookie: ${await logIn(console)}`;
    const answer = await ask(console.port, ["GET /api/info HTTP/1.1", cookie, "Origin: https://app.example"]);
    expect(answer.status).toBe(403);
    expect(Object.keys(answer.headers).filter((name) => name.startsWith("access-control-"))).toEqual([]);
    expect(console.ran).toEqual([]);
  });

  it("takes actions only as JSON, which a form of another page cannot send", async () => {
    const console = await start();
    const cookie = `Cookie: ${await logIn(console)}`;
    for (const type of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
      const answer = await ask(console.port, ["POST /api/call HTTP/1.1", cookie, `Content-Type: ${type}`], "{}");
      expect(answer.status).toBe(400);
    }
    expect(console.ran).toEqual([]);
    const answer = await ask(console.port, ["POST /api/call HTTP/1.1", cookie, JSON_BODY], '{"name": "x"}');
    expect(JSON.parse(answer.body)).toEqual({ body: { name: "x" } });
  });

  it.each(["", "[]", "1", "{", "null"])("refuses the body %j with one clear error", async (body) => {
    const console = await start();
    const cookie = `Cookie: ${await logIn(console)}`;
    const answer = await ask(console.port, ["POST /api/call HTTP/1.1", cookie, JSON_BODY], body);
    expect(answer.status).toBe(400);
    expect((JSON.parse(answer.body) as { error: string }).error).toContain("JSON");
  });

  it("reads with GET and acts with POST, and nothing else", async () => {
    const console = await start();
    const cookie = `Cookie: ${await logIn(console)}`;
    const acting = await ask(console.port, ["GET /api/call HTTP/1.1", cookie]);
    expect([acting.status, acting.headers["allow"]]).toEqual([405, "POST"]);
    const reading = await ask(console.port, ["POST /api/info HTTP/1.1", cookie, JSON_BODY], "{}");
    expect([reading.status, reading.headers["allow"]]).toEqual([405, "GET"]);
    for (const method of ["PUT", "DELETE", "PATCH"]) {
      expect((await ask(console.port, [`${method} /api/info HTTP/1.1`, cookie])).status).toBe(405);
    }
    expect(console.ran).toEqual([]);
  });

  it("streams events", async () => {
    const console = await start();
    const answer = await ask(console.port, ["GET /api/events HTTP/1.1", `Cookie: ${await logIn(console)}`]);
    expect(answer.headers["content-type"]).toBe("text/event-stream");
    expect(answer.body).toContain('event: info\ndata: {"text":"line\\nline"}\n\n');
  });

  it("finds its cookie behind one that another port of this host has set", async () => {
    const console = await start();
    const planted = `Cookie: catenary-${console.port}=planted; ${await logIn(console)}`;
    expect((await ask(console.port, ["GET /api/info HTTP/1.1", planted])).status).toBe(200);
  });

  it("forgets a browser that logs out", async () => {
    const console = await start();
    const cookie = `Cookie: ${await logIn(console)}`;
    expect((await ask(console.port, ["POST /api/logout HTTP/1.1", cookie, JSON_BODY], "{}")).status).toBe(200);
    expect((await ask(console.port, ["GET /api/info HTTP/1.1", cookie])).status).toBe(401);
  });

  it("keeps two gateways on one host apart", async () => {
    const [first, second] = await Promise.all([start(), start()]);
    const cookies = await Promise.all([logIn(first), logIn(second)]);
    expect(cookies[0]?.split("=")[0]).not.toBe(cookies[1]?.split("=")[0]);
    // A browser sends both to both.
    const both = `Cookie: ${cookies.join("; ")}`;
    for (const { port } of [first, second]) {
      expect((await ask(port, ["GET /api/info HTTP/1.1", both])).status).toBe(200);
    }
    const swapped = cookies[0]?.replace(/^[^=]+/, `catenary-${second.port}`);
    expect((await ask(second.port, ["GET /api/info HTTP/1.1", `Cookie: ${swapped}`])).status).toBe(401);
  });

  it("leaves the paths below an endpoint to its parts", async () => {
    const { port } = await start("/api/mcp");
    expect((await ask(port, ["GET /api/info HTTP/1.1"])).status).toBe(404);
    expect((await ask(port, ["GET /console/api/info HTTP/1.1"])).status).toBe(401);
  });

  it("is below /console/ if the endpoint is at the root, and then leaves the rest alone", async () => {
    const console = await start("/");
    const cookie = await logIn(console, "/console/");
    expect((await ask(console.port, ["GET /console/api/info HTTP/1.1", `Cookie: ${cookie}`])).status).toBe(200);
    const redirect = await ask(console.port, ["GET /console HTTP/1.1"]);
    expect([redirect.status, redirect.headers["location"]]).toEqual([308, "./console/"]);
    expect((await ask(console.port, ["GET /console/ HTTP/1.1"])).headers["content-type"]).toMatch(/^text\/html/);
    expect((await ask(console.port, ["GET /api/info HTTP/1.1"])).status).toBe(404);
  });

  it("serves only its own files, each with a policy that lets nothing else run", async () => {
    const { port } = await start();
    const page = await ask(port, ["GET / HTTP/1.1"]);
    expect(page.status).toBe(200);
    expect(page.headers["content-security-policy"]).toMatch(
      /^default-src 'none'; script-src 'self'; style-src 'self';/,
    );
    expect(page.headers["content-security-policy"]).not.toContain("unsafe");
    // Nothing inline, and every address is relative, so that it works below a prefix.
    expect(page.body).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\son\w+=|style=/i);
    for (const [, address] of page.body.matchAll(/\b(?:src|href)="([^"]*)"/g)) expect(address).toMatch(/^\.\//);
    const files = readdirSync(fileURLToPath(new URL("../../../dist/console/web/assets", import.meta.url)));
    for (const file of files.filter((name) => !name.endsWith(".map"))) {
      const asset = await ask(port, [`GET /assets/${file} HTTP/1.1`]);
      expect([file, asset.status]).toEqual([file, 200]);
      expect(asset.headers["x-content-type-options"]).toBe("nosniff");
      expect(asset.headers["content-type"]).toMatch(/^text\/(?:javascript|css)|^image\/svg/);
    }
    for (const path of ["/assets/../../../package.json", "/assets/%2e%2e/package.json", "/assets/none.js"]) {
      expect((await ask(port, [`GET ${path} HTTP/1.1`])).status).toBe(404);
    }
    const unchanged = await ask(port, ["GET / HTTP/1.1", `If-None-Match: ${page.headers["etag"]}`]);
    expect(unchanged.status).toBe(304);
  });

  it("refuses a body that is nested too deeply", async () => {
    const console = await start();
    const cookie = await logIn(console);
    const lines = ["POST /api/call HTTP/1.1", JSON_BODY, `Cookie: ${cookie}`];
    const nested = (depth: number): string => `{"a":${"[".repeat(depth)}${"]".repeat(depth)}}`;
    expect((await ask(console.port, lines, nested(100_000))).status).toBe(400);
    expect((await ask(console.port, lines, nested(100))).status).toBe(200);
    expect(console.ran).toEqual(["call"]);
  });

  it("does not wait for bodies when the console ends", async () => {
    const closed = new AbortController();
    const console = await start("/mcp", {}, closed.signal);
    const cookie = await logIn(console);
    const begun = ["login", "call"].map(async (path) => {
      const connection = await RawHttp.open(console.port);
      const head = [`POST /api/${path} HTTP/1.1`, `Host: 127.0.0.1:${console.port}`, JSON_BODY, `Cookie: ${cookie}`];
      connection.send([...head, "Content-Length: 100"], "{");
      const answer = await connection.answer();
      connection.socket.destroy();
      return answer.status;
    });
    await new Promise((resolve) => setTimeout(resolve, 100));
    closed.abort();
    expect(await Promise.all(begun)).toEqual([403, 503]);
    expect(console.ran).toEqual([]);
  });

  it("remembers a limited number of links and browsers, the last ones", () => {
    const access = new ConsoleAccess();
    const tokens = Array.from({ length: 40 }, () => access.createToken());
    expect(access.exchange(tokens[0] ?? "")).toBeUndefined();
    expect(access.exchange(tokens.at(-1) ?? "")).toBeDefined();
    const first = access.exchange(access.createToken());
    for (let count = 0; count < 70; count += 1) access.exchange(access.createToken());
    expect(access.isKnown([first ?? ""])).toBe(false);
  });
});
