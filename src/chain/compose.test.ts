// The public `compose`: middleware around a handler, which is used and closed like any other handler.

import { expect, it } from "vitest";
import { connect } from "../client/connect.ts";
import type { Handler, Middleware } from "../core/handler.ts";
import { evaluatesCode, EVALUATES_CODE } from "../core/handler-marks.ts";
import { createServer } from "../server/server.ts";
import { compose } from "./compose.ts";
import { on } from "./on.ts";

const notes = () => createServer({ name: "notes", version: "1.0.0" }).tool("echo", {}, (args) => JSON.stringify(args));

it("wraps a handler in middleware, the first outermost", async () => {
  const adding = (mark: string): Middleware =>
    on("tools/call", (request, context, next) => {
      const { seen = "" } = request.params.arguments ?? {};
      const args = { seen: `${String(seen)}${mark}` };
      return next({ ...request, params: { ...request.params, arguments: args } }, context);
    });
  const client = await connect(compose([adding("a"), adding("b")], notes()));
  expect((await client.callTool("echo")).content).toEqual([{ type: "text", text: '{"seen":"ab"}' }]);
  await client.close();
});

it("names the middleware that failed", async () => {
  const broken: Middleware = () => Promise.reject(new Error("no"));
  const client = connect(compose([broken], notes()));
  await expect(client).rejects.toThrow("The middleware broken failed: no");
});

it("closes the middleware and then the handler, by close() and by await using", async () => {
  const closed: string[] = [];
  const holding = (name: string): Middleware => {
    const middleware: Middleware = (request, context, next) => next(request, context);
    middleware.close = () => void closed.push(name);
    return middleware;
  };
  const handler: Handler & { close(): void } = async () => ({});
  handler.close = () => void closed.push("handler");
  {
    await using composed = compose([holding("a"), holding("b")], handler);
    expect(composed).toBeTypeOf("function");
  }
  expect(closed).toEqual(["a", "b", "handler"]);
});

it("says that the handler evaluates code", () => {
  const handler: Handler & { [EVALUATES_CODE]?: true } = async () => ({});
  expect(evaluatesCode(compose([], handler))).toBe(false);
  handler[EVALUATES_CODE] = true;
  expect(evaluatesCode(compose([], handler))).toBe(true);
});

it("refuses what is neither middleware nor a handler", () => {
  const through: Middleware = (request, context, next) => next(request, context);
  expect(() => compose(through as never, notes())).toThrow("an array of middleware and a handler, not a function");
  expect(() => compose(["log"] as never, notes())).toThrow("compose()");
  expect(() => compose([through], "notes" as never)).toThrow("must be a handler, not a string");
});

it.each([[null], [{}]])("compose() refuses %j instead of an array of middleware", (middleware) => {
  expect(() => compose(middleware as never, async () => ({}))).toThrow("takes an array of middleware and a handler");
});

it("closing reports the errors of the middleware and of the handler", async () => {
  const fail = (message: string) => async () => {
    throw new Error(message);
  };
  const middleware = Object.assign((request: never, context: never, next: Handler) => next(request, context), {
    close: fail("first"),
  });
  const handler = Object.assign(async () => ({}), { close: fail("second") });
  await expect(compose([middleware as never], handler).close()).rejects.toThrow("Closing failed: first; second");
});
