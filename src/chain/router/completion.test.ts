// Prompts and completions through the router: each goes to the upstream it is for.

import { expect, it } from "vitest";
import { fakeClient } from "../../../test/support/handlers/fake-client.ts";
import { scriptedServer } from "../../../test/support/handlers/scripted-server.ts";
import { createRouter } from "./router.ts";

const make = (who: string): ReturnType<typeof scriptedServer> =>
  scriptedServer({
    "prompts/list": { prompts: [{ name: "p" }, { name: `${who}-own` }] },
    "prompts/get": ({ name }) => ({ messages: [], said: `${who}: ${String(name)}` }),
    "resources/list": { resources: [{ uri: `${who}:///x`, name: "x" }] },
    "resources/templates/list": { resourceTemplates: [{ uriTemplate: "file:///{+path}", name: "t" }] },
    "completion/complete": ({ ref }) => ({ completion: { values: [who, JSON.stringify(ref)] } }),
  });
const argument = { name: "n", value: "" };

it("prompts and completions go to their upstreams by the upstreams' own names", async () => {
  const caller = fakeClient(createRouter({ a: make("a"), b: make("b") }));
  expect(await caller.call("prompts/get", { name: "b_p" })).toEqual({ messages: [], said: "b: p" });
  expect(await caller.call("prompts/get", { name: "a-own" })).toEqual({ messages: [], said: "a: a-own" });
  expect((await caller.callError("prompts/get", { name: "p" })).message).toContain("a_p, b_p");
  const asked: [object, string[]][] = [
    [{ type: "ref/prompt", name: "a_p", title: "P" }, ["a", '{"type":"ref/prompt","name":"p","title":"P"}']],
    [{ type: "ref/resource", uri: "b.file:///{+path}" }, ["b", '{"type":"ref/resource","uri":"file:///{+path}"}']],
    [{ type: "ref/resource", uri: "b:///x" }, ["b", '{"type":"ref/resource","uri":"b:///x"}']],
  ];
  for (const [ref, values] of asked) {
    expect(await caller.call("completion/complete", { ref, argument })).toEqual({ completion: { values } });
  }
  const refused = await caller.callError("completion/complete", {
    ref: { type: "ref/resource", uri: "file:///{+path}" },
    argument,
  });
  expect(refused.data).toMatchObject({ candidates: ["a.file:///{+path}", "b.file:///{+path}"] });
  const unknown = await caller.callError("completion/complete", {
    ref: { type: "ref/resource", uri: "x:y" },
    argument,
  });
  expect(unknown.message).toBe("There is no resource or template x:y to complete");
});
