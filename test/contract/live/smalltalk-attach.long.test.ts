// Smalltalk sessions that are attached to a running image, against a server with the shape of PharoSmalltalkInteropServer
// (its paths, parameters and answers as its sources have them). No Pharo image was used.

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { smalltalk } from "../../../src/live/index.ts";
import { LiveFixture } from "./live-fixture.ts";

const STACK = "SmallInteger>>/\nAccount>>add:\nUndefinedObject>>DoIt\nOpalCompiler>>evaluate\nSisServer>>handleEval:";
const RECEIVER = { class: "SmallInteger", self: "4", variables: { balance: "3" } };
const METHODS = [{ class: "Account", method: "add:", package: "Bank" }];
const TESTS =
  "4 ran, 2 passed, 1 skipped, 0 expected failures, 1 failures, 0 errors, 0 passed unexpected\nFailures:\nAccountTest>>#testAdd\n";

/** What the image answers to code that it is sent. */
const EVALUATIONS: readonly (readonly [RegExp, unknown])[] = [
  [/^SystemVersion current printString$/, "Pharo13.0.0"],
  [/^\[ 3 \+ 4\n\] value printStringLimitedTo: 1000000$/, "7"],
  [/^#\(#total\) do: /, null],
  [/^\[ total := 3\n\] value /, "3"],
  [/^\(\(Account\) compile: 'hello\n\t\^''hi''' classified: 'x'\) asString$/, "hello"],
  [
    /^\(Object subclass: #Account instanceVariableNames: 'balance' classVariableNames: '' package: 'Bank'\) name$/,
    "Account",
  ],
  [
    /^\{ 'name' -> Account name\. /,
    { name: "Account", superclass: "Object", instanceVariables: [], methods: ["add:"] },
  ],
];

const GETS: Readonly<Record<string, (query: URLSearchParams) => unknown>> = {
  "/get-class-source": (query) => `Class { #name : '${query.get("class_name")}' }`,
  "/get-method-source": (query) => `${query.get("method_name")} (class side: ${query.get("is_class_method")})`,
  "/search-classes-like": (query) =>
    ["Account", "AccountTest"].filter((name) => name.startsWith(query.get("class_name_query") ?? "-")),
  "/search-methods-like": () => ["inject:into:"],
  "/search-implementors": (query) => (query.get("method_name") === "add:" ? METHODS : []),
  "/search-references": (query) => (query.get("program_symbol") === "add:" ? METHODS : []),
  "/search-references-to-class": (query) => (query.get("class_name") === "Account" ? METHODS : []),
  "/run-class-test": () => TESTS,
  "/run-package-test": () => TESTS,
};

function startImage(): Promise<Server> {
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://image");
    const reply = (body: object): void => void response.end(JSON.stringify(body));
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString()));
    request.on("end", () => {
      response.setHeader("content-type", "application/json");
      const read = GETS[pathname];
      if (read !== undefined) return reply({ success: true, result: read(searchParams) });
      const { code } = JSON.parse(text) as { code: string };
      // An endless loop: the image never answers.
      if (code.includes("whileTrue")) return undefined;
      const [, result] = EVALUATIONS.find(([pattern]) => pattern.test(code)) ?? [];
      if (result !== undefined) return reply({ success: true, result });
      const error = { description: "ZeroDivide: division by zero", stack_trace: STACK, receiver: RECEIVER };
      return reply({ success: false, error });
    });
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

describe("a session that is attached to an image", () => {
  let image: Server;
  let fixture: LiveFixture;

  beforeAll(async () => {
    image = await startImage();
    const attach = `http://127.0.0.1:${(image.address() as AddressInfo).port}`;
    fixture = await LiveFixture.open(smalltalk({ attach }), "smalltalk");
  });
  afterAll(async () => {
    await fixture.close();
    image.closeAllConnections();
    image.close();
  });

  it("a session that is attached to an image: evaluates, keeps assigned names, and names the image", async () => {
    expect((await fixture.evaluate("3 + 4")).text).toBe("=> 7");
    expect((await fixture.evaluate("total := 3")).text).toBe("=> 3");
    expect((await fixture.evaluate("!Account methodsFor: 'x'!\nhello\n\t^'hi'! !")).text).toBe("; No values");
    expect(await fixture.call("list-definitions")).toBe("variable total\nmethod Account>>hello");
    expect(await fixture.call("list-sessions")).toMatch(/Pharo13\.0\.0, attached at http:\/\/127\.0\.0\.1:\d+/);
  });

  it("a session that is attached to an image reports errors with the frames of the code and the receiver", async () => {
    const { text } = await fixture.evaluate("Account new add: 0");
    expect(text).toContain(
      "[ERROR] ZeroDivide\ndivision by zero\n\n[Backtrace]\n0: SmallInteger>>/\n     self = 4\n     balance = 3\n1: Account>>add:\n2: UndefinedObject>>DoIt",
    );
    expect(text).not.toContain("SisServer");
    expect(await fixture.call("describe-last-error")).toContain("[ERROR] ZeroDivide");
    expect(await fixture.call("take-restart", { restart: "retry" })).toContain("has no open errors");
    expect(await fixture.call("inspect", { handle: 1 })).toContain("use the debugger and the inspector in the image");
  });

  it.each([
    ["browse-class", { class: "Account" }, "Class { #name : 'Account' }"],
    ["method-source", { class: "Account class", selector: "new" }, "new (class side: true)"],
    [
      "define-class",
      { name: "Account", "instance-variables": "balance", package: "Bank" },
      "Defined Account, a subclass of Object",
    ],
    ["compile-method", { class: "Account", source: "hello\n\t^'hi'", protocol: "x" }, "Compiled Account>>hello"],
    ["search-classes", { pattern: "Acc" }, "Account\nAccountTest"],
    ["implementors", { selector: "add:" }, "Account>>add:"],
    ["senders", { selector: "none" }, "No method sends none"],
    ["class-references", { class: "Account" }, "Account>>add:"],
  ])("a session that is attached to an image: %s", async (tool, args, text) => {
    expect(await fixture.call(tool, args)).toBe(text);
  });

  it("a session that is attached to an image runs tests", async () => {
    const result = await fixture.client.callTool("run-tests", { class: "AccountTest" });
    expect(result).toMatchObject({ isError: true, structuredContent: { passed: 2, failed: 1, skipped: 1 } });
  });

  it("a session that is attached to an image reads resources", async () => {
    const { contents } = await fixture.client.readResource("pharo://class/Account");
    expect(contents[0]).toMatchObject({ text: expect.stringContaining('"methods":["add:"]') as string });
  });

  it("a session that is attached to an image gives up waiting for the image when it is interrupted", async () => {
    const ended = await fixture.evaluate("[true] whileTrue: []", { timeout: 0.3 });
    expect(ended).toMatchObject({ status: "timeout", step: "interrupt", state: "kept" });
    expect((await fixture.evaluate("3 + 4")).text).toBe("=> 7");
  });
});

it("says that nothing answers at the address", async () => {
  const fixture = await LiveFixture.open(smalltalk({ attach: "http://127.0.0.1:1" }), "smalltalk");
  expect(await fixture.call("evaluate-smalltalk", { code: "3" })).toContain(
    "does not answer as PharoSmalltalkInteropServer does",
  );
  await fixture.close();
});

it.each([
  [{ attach: "127.0.0.1" }, "the attach must be an address such as http://127.0.0.1:8086"],
  [{ attach: "http://127.0.0.1:8086", command: "gst" }, "cannot be used with a program"],
])("refuses %j", (options, message) => {
  expect(() => smalltalk(options)).toThrow(message);
});
