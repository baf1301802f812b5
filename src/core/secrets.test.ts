// Which forms of a secret are hidden, and what counts as one.

import { expect, it } from "vitest";
import { hidePaths, hiderOf, isSecretField, withoutPath, withoutQuery, withWords } from "./secrets.ts";
import { withoutCredentials } from "./secret-headers.ts";

it.each([
  ["s3cret word", "s3cret word and s3cret%20word, s3cret+word", "... and ..., ..."],
  ['a "quoted"\n', String.raw`{"key":"a \"quoted\"\n"} a "quoted"`, '{"key":"..."} ...'],
  ["/tools", "tools at /tools", "tools at ..."],
  ["?key=abc", "/path?key=abc&more", "/path...&more"],
  ["abc", "abc is too short", "abc is too short"],
  ["", "nothing", "nothing"],
  ["half \ud800", "half%20%EF%BF%BD", "..."],
])("hiderOf(%j) of %j gives %j", (secret, text, shown) => {
  expect(hiderOf([secret])(text)).toBe(shown);
});

it("hiderOf hides the longest of several secrets first, and shows their references", () => {
  const secrets = [
    { value: "s3cret", reference: "${KEY}" },
    { value: "s3cret more", reference: "$&" },
    { value: "", reference: "${EMPTY}" },
  ];
  expect(hiderOf([...secrets, "other"])("s3cret more than s3crets, other")).toBe("$& than ${KEY}s, ...");
  expect(hiderOf([{ value: "ab", reference: "${AB}" }], 1)("abc")).toBe("${AB}c");
});

it("withWords has the words of a credential", () => {
  expect(hiderOf(withWords("Bearer t0ken"))('got "t0ken", not "Bearer t0ken"')).toBe('got "...", not "..."');
});

it("isSecretField knows the names of secrets", () => {
  const names = ["password", "apiKey", "API_KEY", "access_token", "tokens", "Cookie", "signing_key"];
  expect(names.filter((name) => !isSecretField(name, "x"))).toEqual([]);
  expect(["name", "progressToken", "keyboard"].filter((name) => isSecretField(name, "x"))).toEqual([]);
  expect([isSecretField("max_tokens", 5), isSecretField("pin_token", 5)]).toEqual([false, true]);
});

it("withoutCredentials leaves the other headers", () => {
  const headers = { accept: "*/*", authorization: "Bearer x", cookie: "a=b", "mcp-session-id": "1" };
  expect(withoutCredentials(headers)).toEqual({ accept: "*/*" });
  const harmless = { accept: "*/*" };
  expect(withoutCredentials(harmless)).toBe(harmless);
});

it("withoutPath and withoutQuery leave the public part of a URL", () => {
  expect(withoutPath("https://me:pw@h/key?token=x")).toBe("https://...@h/...");
  expect(withoutPath("h:1/x")).toBe("h:1/x");
  expect(withoutQuery("https://me:pw@h/path?token=x#y")).toBe("https://h/path");
});

it.each([
  ["https://h/s3cr3t/mcp refused it", "https://h refused it"],
  ["a https://h/s3cr3t/mcp?key=x: no; b https://h/k, c", "a https://h: no; b https://h, c"],
  [
    "https://h/.well-known/oauth-protected-resource/s3cr3t/mcp: 404",
    "https://h/.well-known/oauth-protected-resource: 404",
  ],
  ['"https://h/s3cr3t" (https://h/s3cr3t)', '"https://h" (https://h)'],
  ["https://other/path and https://h.other/path", "https://other/path and https://h.other/path"],
])("hidePaths(%j) is %j", (text, shown) => {
  expect(hidePaths(text, new URL("https://h/s3cr3t/mcp"))).toBe(shown);
});

it("hides a path of many dots in linear time", () => {
  const dots = ".".repeat(500_000);
  expect(hidePaths(`https://h/${dots}a`, new URL("https://h/"))).toBe("https://h");
});
