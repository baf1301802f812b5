// Every way to write an address, and what is said to those that are none.

import { describe, expect, it } from "vitest";
import { parseAddress } from "./address.ts";
import { UsageError } from "../exit-codes.ts";

describe("an address", () => {
  it.each([
    ["127.0.0.1:8080", "127.0.0.1", 8080],
    ["0.0.0.0:80", "0.0.0.0", 80],
    ["localhost:0", "localhost", 0],
    [":8080", "127.0.0.1", 8080],
    ["8080", "127.0.0.1", 8080],
    ["0", "127.0.0.1", 0],
    ["localhost", "localhost", 3000],
    ["my-host.example", "my-host.example", 3000],
    ["[::1]:8080", "::1", 8080],
    ["[::1]", "::1", 3000],
    ["[::]:65535", "::", 65_535],
  ])("may be written %s", (text, host, port) => {
    expect(parseAddress(text)).toEqual({ host, port });
  });

  it.each([
    ["", "needs an address"],
    [":", "is no address"],
    ["localhost:", "is no address"],
    ["localhost:http", "is no address"],
    ["a b:1", "is no address"],
    ["*:3000", "is no address"],
    ["./server.js", "is no address"],
    ["localhost:65536", "from 0"],
    ["99999", "from 0"],
    ["::1", "[::1]"],
    ["::1:3000", "write ["],
    ["[::1", "is no address"],
    ["[localhost]:3000", "is no address"],
    ["[::1]:x", "is no address"],
    ["http://127.0.0.1:3000", "is a URL"],
  ])("is not %s", (text, words) => {
    expect(() => parseAddress(text)).toThrow(UsageError);
    expect(() => parseAddress(text)).toThrow(words);
  });
});
