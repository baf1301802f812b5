// An HTTP API as tools: each operation of shop.yaml that is not excluded is one tool.

import { fileURLToPath } from "node:url";
import { connect } from "catenary";
import { openapi } from "catenary/openapi";
import { startShop } from "./api.js";

const shop = await startShop();
const server = openapi({
  document: fileURLToPath(new URL("shop.yaml", import.meta.url)),
  baseUrl: shop.url,
  auth: { key: "demo" }, // better: process.env.SHOP_KEY
  exclude: ["DELETE *"],
});
const client = await connect(server);

try {
  for await (const { name, description, inputSchema } of client.tools()) {
    console.log(`Tool ${name}: ${description} (${Object.keys(inputSchema.properties ?? {}).join(", ")})`);
  }
  await call("listProducts", { color: "red" });
  await call("getProduct", { id: 2 });
  await call("placeOrder", { product: 2, count: 3 });
  await call("placeOrder", { product: 2, count: 0 });
  await call("getProduct", { id: 7 });
} finally {
  await client.close();
  await server.close();
  shop.close();
}

/**
 * @param {string} tool
 * @param {Record<string, unknown>} args
 */
async function call(tool, args) {
  const { content, isError } = await client.callTool(tool, args);
  console.log(`\n${tool} ${JSON.stringify(args)}${isError ? " failed" : ""}`);
  for (const block of content) if (block.type === "text") console.log(block.text);
}
