// The figures for Prometheus: which series there are, what counts, and how many there can be.

import { expect, it } from "vitest";
import { callRequest, fakeContext, textResult } from "../../../test/support/handlers/fake-client.ts";
import { ConnectionError } from "../../core/errors.ts";
import type { Handler, Middleware } from "../../core/handler.ts";
import { McpError } from "../../protocol/errors.ts";
import { chain } from "../chain.ts";
import type { Gateway } from "../gateway.ts";
import { metrics } from "./metrics.ts";

/** Answers by the name of the tool. */
const upstream: Handler = async ({ method, params }) => {
  if (method === "server/discover") return { capabilities: { tools: {} } };
  if (method === "tools/list") return { tools: [{ name: "listed" }, { name: 'odd"\\\n' }] };
  const { name } = params;
  if (name === "lost") throw new ConnectionError("closed", "gone");
  if (name === "strange") throw new Error("strange");
  if (name === "missing") throw McpError.of("tool_not_found", "no such tool");
  if (String(name).startsWith("fails") || name === "listed") return { ...textResult("no"), isError: true };
  return textResult("done");
};

const call = (gateway: Gateway, name: string): Promise<unknown> =>
  gateway(callRequest(name), fakeContext().context).catch(() => undefined);

/** The lines with the number of requests, without the name of the metric. */
function counts(gateway: Gateway): string[] {
  const lines = gateway.metrics()?.split("\n") ?? [];
  return lines.filter((line) => line.includes("_seconds_count")).map((line) => line.replace(/^\w+/, ""));
}

it("has a series for each tool that was listed or has worked, by server and outcome", async () => {
  const gateway = chain(metrics()).to({ notes: upstream }, { names: "always" });
  await gateway({ method: "tools/list", params: {} }, fakeContext().context);
  for (const name of ["notes_works", "notes_works", "notes_listed", "notes_fails", "notes_lost", "notes_missing"]) {
    await call(gateway, name);
  }
  await call(gateway, "notes_strange");
  expect(counts(gateway)).toEqual([
    '{mcp_method_name="tools/list"} 1',
    '{mcp_method_name="tools/call",gen_ai_tool_name="notes_works",server="notes"} 2',
    '{mcp_method_name="tools/call",gen_ai_tool_name="notes_listed",server="notes",error_type="tool_error"} 1',
    '{mcp_method_name="tools/call",gen_ai_tool_name="_other",server="notes",error_type="tool_error"} 1',
    '{mcp_method_name="tools/call",gen_ai_tool_name="_other",server="notes",error_type="closed"} 1',
    '{mcp_method_name="tools/call",gen_ai_tool_name="_other",server="notes",error_type="-32602"} 1',
    '{mcp_method_name="tools/call",gen_ai_tool_name="_other",server="notes",error_type="-32603"} 1',
  ]);
  await gateway.close();
});

it("writes histograms, requests in flight and restarts as Prometheus reads them", async () => {
  let release: (() => void) | undefined;
  // A middleware, since a gateway shows tools only with names that models accept.
  const answer: Middleware = async (request, context) => {
    if (request.params["name"] === "slow") await new Promise<void>((resolve) => (release = resolve));
    return upstream(request, context);
  };
  const slow = chain(metrics(), answer).to(upstream);
  await slow({ method: "tools/list", params: {} }, fakeContext().context);
  await call(slow, 'odd"\\\n');
  const running = call(slow, "slow");
  await expect.poll(() => release).toBeDefined();
  const text = slow.metrics() ?? "";
  const named = 'mcp_method_name="tools/call",gen_ai_tool_name="odd\\"\\\\\\n"';
  expect(text).toContain("# TYPE mcp_server_operation_duration_seconds histogram\n");
  const buckets = [...text.matchAll(/_bucket\{([^}]*),le="([^"]+)"\} (\d+)/g)].filter(([, labels]) => labels === named);
  expect(buckets.map(([, , limit]) => limit)).toEqual(
    [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, "+Inf"].map(String),
  );
  expect(buckets.at(-1)?.[3]).toBe("1");
  expect(text).toContain(`mcp_server_operation_duration_seconds_count{${named}} 1\n`);
  expect(text).toContain('catenary_requests_in_flight{mcp_method_name="tools/call"} 1\n');
  expect(text).toContain('catenary_upstream_restarts_total{server="upstream"} 0\n');
  release?.();
  await running;
  expect(slow.metrics()).toContain('catenary_requests_in_flight{mcp_method_name="tools/call"} 0\n');
  for (const line of text.trimEnd().split("\n")) {
    expect(line).toMatch(/^(?:# (?:HELP|TYPE) \w+ .+|\w+(?:\{(?:\w+="(?:[^"\\\n]|\\["\\n])*",?)+\})? [\d.e+-]+)$/);
  }
  await slow.close();
});

it("has a limited number of series, whatever callers send", async () => {
  const gateway = chain(metrics({ maxSeries: 3 })).to(upstream);
  for (let count = 0; count < 50; count += 1) {
    await call(gateway, `works-${count}`);
    await gateway({ method: `vendor/${count}`, params: {} }, fakeContext().context);
  }
  expect(counts(gateway)).toEqual([
    '{mcp_method_name="tools/call",gen_ai_tool_name="works-0"} 1',
    '{mcp_method_name="_other"} 50',
    '{mcp_method_name="tools/call",gen_ai_tool_name="works-1"} 1',
    '{mcp_method_name="tools/call",gen_ai_tool_name="_other"} 48',
  ]);
  await gateway.close();
});

it("does not measure how long subscriptions are open", async () => {
  const gateway = chain(metrics()).to(async () => ({ resultType: "complete" }));
  await gateway({ method: "subscriptions/listen", params: { notifications: {} } }, fakeContext().context);
  expect(counts(gateway)).toEqual([]);
  expect(gateway.metrics()).toContain('catenary_requests_in_flight{mcp_method_name="subscriptions/listen"} 0\n');
  await gateway.close();
});

it("is undefined without the middleware, and the first one counts if there are two", async () => {
  expect(chain().to(upstream).metrics()).toBeUndefined();
  const gateway = chain(metrics(), metrics()).to(upstream);
  await call(gateway, "works");
  expect(gateway.metrics()?.match(/# TYPE mcp_server/g)).toHaveLength(1);
  await gateway.close();
});
