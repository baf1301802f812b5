// The URI of a view, which a tool or a result names in `_meta`, is the one under which callers read the view.

import { expect, it } from "vitest";
import { fakeClient } from "../../test/support/handlers/fake-client.ts";
import { createServer } from "../server/server.ts";
import { chain } from "./chain.ts";
import { rename } from "./middleware/index.ts";

const VIEW = "ui://view";

const server = (name: string) =>
  createServer({ name, version: "1" })
    .tool(`show_${name}`, { _meta: { ui: { resourceUri: VIEW, visibility: ["app"] } } }, () => ({
      content: [],
      _meta: { "openai/outputTemplate": VIEW },
    }))
    .resource(VIEW, { name: "view" }, () => `the view of ${name}`);

it.each([
  ["a view that two upstreams have", chain(), ["a.ui://view", "b.ui://view"]],
  [
    "a view that is renamed",
    chain(rename({ resources: { "a.ui://view": "ui://mine" } })),
    ["ui://mine", "b.ui://view"],
  ],
])("%s", async (_what, middleware, uris) => {
  const gateway = middleware.to({ a: server("a"), b: server("b") });
  const { call } = fakeClient(gateway);
  const { tools } = await call("tools/list");
  expect(tools).toMatchObject(uris.map((resourceUri) => ({ _meta: { ui: { resourceUri, visibility: ["app"] } } })));
  for (const [at, uri] of uris.entries()) {
    const name = ["a", "b"][at] ?? "";
    const { contents } = await call("resources/read", { uri });
    expect(contents).toMatchObject([{ uri, text: `the view of ${name}` }]);
    const { _meta } = await call("tools/call", { name: `show_${name}` });
    expect(_meta).toMatchObject({ "openai/outputTemplate": uri });
  }
  await gateway.close();
});
