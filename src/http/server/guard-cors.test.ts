// The CORS headers of the guard, and its memory of accepted values.

import { expect, it } from "vitest";
import { createGuard } from "./guard.ts";
import type { HttpRequest } from "./http-request.ts";

type RequestHeaders = Readonly<Record<string, string | undefined>>;

function request(headers: RequestHeaders, rest: Partial<HttpRequest> = {}): HttpRequest {
  return { method: "POST", path: "/mcp", query: "", headers, ambiguous: false, ...rest } as HttpRequest;
}

const guard = createGuard({ allowedOrigins: ["https://app.example.com"] });
const from = (
  origin: string | undefined,
  more: RequestHeaders = {},
  method = "POST",
): Readonly<Record<string, string>> => guard.cors(request({ host: "localhost:3000", origin, ...more }, { method }));

it("CORS headers are absent without an Origin or for one that is not allowed", () => {
  expect(from(undefined)).toEqual({});
  for (const origin of ["https://evil.example", "null", "*", "http://localhost@evil.example"]) {
    expect(from(origin)).toEqual({});
    expect(from(origin, { "access-control-request-method": "POST" }, "OPTIONS")).toEqual({});
  }
});

it("CORS headers name the origin and the readable headers", () => {
  expect(from("https://app.example.com")).toEqual({
    "access-control-allow-origin": "https://app.example.com",
    vary: "Origin",
    "access-control-expose-headers": "Mcp-Session-Id, WWW-Authenticate, Retry-After",
  });
  expect(from("http://localhost:6274")["access-control-allow-origin"]).toBe("http://localhost:6274");
});

it("CORS headers list the allowed methods and headers in a preflight", () => {
  const asked = "content-type,mcp-param-region, Mcp-Param-Zone ,x-evil,mcp-param-,mcp-param-a b,mcp-param-\u00e9";
  const headers = from(
    "https://app.example.com",
    { "access-control-request-method": "POST", "access-control-request-headers": asked },
    "OPTIONS",
  );
  expect(headers).toEqual({
    "access-control-allow-origin": "https://app.example.com",
    vary: "Origin",
    "access-control-allow-methods": "GET, POST, DELETE, OPTIONS",
    "access-control-allow-headers":
      "Accept, Authorization, Content-Type, Last-Event-ID, MCP-Protocol-Version, Mcp-Method, Mcp-Name, " +
      "Mcp-Session-Id, mcp-param-region, Mcp-Param-Zone",
    "access-control-max-age": "7200",
  });
  expect(from("https://app.example.com", {}, "OPTIONS")).not.toHaveProperty("access-control-allow-methods");
});

it("CORS headers never allow every origin", () => {
  for (const method of ["OPTIONS", "POST", "GET"]) {
    for (const origin of [undefined, "*", "https://app.example.com"]) {
      const told = from(
        origin,
        { "access-control-request-method": "*", "access-control-request-headers": "*" },
        method,
      );
      expect(Object.values(told)).not.toContain("*");
    }
  }
});

it("remembered values are bounded, and never admit what was refused before", () => {
  const guard = createGuard();
  for (let port = 1; port <= 5_000; port += 1) {
    expect(guard.check(request({ host: `localhost:${port}`, origin: `http://localhost:${port}` }))?.status).toBe(
      port === 80 ? 403 : undefined,
    );
    expect(guard.check(request({ host: `evil.example:${port}` }))?.status).toBe(403);
  }
});
