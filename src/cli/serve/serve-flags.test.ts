// Valid and invalid addresses for --http.

import { expect, it } from "vitest";
import { UsageError } from "../command.ts";
import { parseAddress } from "./start.ts";

it.each([
  ["127.0.0.1:8080", "127.0.0.1", 8080],
  ["0.0.0.0:80", "0.0.0.0", 80],
  ["localhost:0", "localhost", 0],
  [":8080", undefined, 8080],
  ["8080", undefined, 8080],
  ["0", undefined, 0],
  ["localhost", "localhost", 3000],
  ["my-host.example", "my-host.example", 3000],
  ["[::1]:8080", "::1", 8080],
  ["[::1]", "::1", 3000],
  ["[::]:65535", "::", 65_535],
])("an address may be written %s", (text, host, port) => {
  expect(parseAddress(text)).toEqual({ host, port });
});

it.each([
  ["", "needs an address"],
  [":", "is not a valid address"],
  ["localhost:", "is not a valid address"],
  ["localhost:http", "is not a valid address"],
  ["a b:1", "is not a valid address"],
  ["*:3000", "is not a valid address"],
  ["./server.js", "is not a valid address"],
  ["localhost:65536", "from 0"],
  ["99999", "from 0"],
  ["::1", "[::1]"],
  ["::1:3000", "write an IPv6 address as ["],
  ["[::1", "is not a valid address"],
  ["[localhost]:3000", "is not a valid address"],
  ["[::1]:x", "is not a valid address"],
  ["http://127.0.0.1:3000", "is a URL"],
])("an address must not be written %s", (text, message) => {
  expect(() => parseAddress(text)).toThrow(UsageError);
  expect(() => parseAddress(text)).toThrow(message);
});
