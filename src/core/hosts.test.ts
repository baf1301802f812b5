// Which hosts count as this machine, in each spelling, and how a host is written in a URL.

import { expect, it } from "vitest";
import { isLoopback, meansLoopback, urlHost } from "./hosts.ts";

it("hosts of this machine: isLoopback() accepts what certainly is this machine", () => {
  for (const host of ["localhost", "127.0.0.1", "127.8.9.10", "[::1]"]) expect(isLoopback(host), host).toBe(true);
  for (const host of [
    "app.localhost",
    "localhost.",
    "[::ffff:7f00:1]",
    "127.0.0.1.example.com",
    "10.0.0.1",
    "0.0.0.0",
  ]) {
    expect(isLoopback(host), host).toBe(false);
  }
});

it("hosts of this machine: meansLoopback() accepts what should be this machine, in every spelling that a URL keeps", () => {
  for (const url of [
    "http://LOCALHOST",
    "http://app.localhost.",
    "http://127.1",
    "http://[::ffff:127.0.0.1]",
    "http://[0::1]",
  ]) {
    expect(meansLoopback(new URL(url).hostname), url).toBe(true);
  }
  for (const url of [
    "http://notlocalhost",
    "http://localhost.example.com",
    "http://[::ffff:8.8.8.8]",
    "http://[::2]",
    "http://0",
  ]) {
    expect(meansLoopback(new URL(url).hostname), url).toBe(false);
  }
});

it("hosts of this machine: urlHost() writes an address as a URL does", () => {
  expect(["::1", "[::1]", "fe80::1%eth0", "LocalHost", "127.1", ""].map(urlHost)).toEqual([
    "[::1]",
    "[::1]",
    "[fe80::1]",
    "localhost",
    "127.0.0.1",
    "",
  ]);
});
