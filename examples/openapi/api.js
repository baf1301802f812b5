// The HTTP API that shop.yaml describes, with two products. It knows nothing of MCP.

import { once } from "node:events";
import { createServer } from "node:http";

const products = [
  { id: 1, name: "Cap", color: "red" },
  { id: 2, name: "Scarf", color: "green" },
];
let orders = 0;

/** Starts the API and returns its address. */
export async function startShop(port = 0) {
  const http = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://shop");
    const answer = (/** @type {number} */ status, /** @type {unknown} */ body) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    const id = Number(pathname.split("/")[3]);
    if (request.headers["x-shop-key"] !== "demo") answer(401, { message: "the key is wrong" });
    else if (pathname === "/v1/products") {
      const color = searchParams.get("color");
      answer(200, { products: products.filter((one) => color === null || one.color === color) });
    } else if (pathname.startsWith("/v1/products/")) {
      const product = products.find((one) => one.id === id);
      answer(product === undefined ? 404 : 200, product ?? { message: `there is no product ${id}` });
    } else if (pathname === "/v1/orders") {
      let text = "";
      request.on("data", (chunk) => (text += chunk));
      request.on("end", () => answer(201, { id: ++orders, ...JSON.parse(text) }));
    } else answer(404, { message: "not found" });
  });
  http.listen(port, "127.0.0.1");
  await once(http, "listening");
  const address = http.address();
  const found = typeof address === "string" ? "" : address?.port;
  return { url: `http://127.0.0.1:${found}/v1`, close: () => http.close() };
}
