// Writes the tables of docs/reference/console-api.md from the routes of the console, so that the page has all of them.

import { ConfigGateway } from "../../src/config/gateway.ts";
import { loadConfigText } from "../../src/config/load.ts";
import { Console } from "../../src/console/console.ts";
import type { Route } from "../../src/console/route.ts";
import { writtenTable } from "./markdown.ts";

async function consoleRoutes(): Promise<readonly Route[]> {
  const config = await loadConfigText('{"mcpServers": {"js": {"live": "js"}}}', "catenary.json");
  const running = await ConfigGateway.create(config, { rememberNames: false });
  const facts = { name: "", version: "", pid: 0, source: "", url: "http://127.0.0.1:3000/mcp", startedAt: "" };
  try {
    const log = { recent: () => [], follow: () => () => undefined, write: () => undefined };
    const host = { running, log, info: () => facts, restart: async () => undefined, reload: undefined };
    return new Console(host).routes;
  } finally {
    await running.gateway.close();
  }
}

/** The page, with its tables of requests written anew. */
export async function withRoutes(page: string): Promise<string> {
  const routes = await consoleRoutes();
  const table = (method: Route["method"], title: string): string => {
    const chosen = routes.filter((route) => route.method === method);
    return writtenTable(
      ["Request", title],
      chosen.map(({ path, about }) => [`\`${method} ${path}\``, about]),
    );
  };
  return page
    .replace(/^\| Request +\| Answer[^]*?\n(?=\n)/m, () => table("GET", "Answer"))
    .replace(/^\| Request +\| Effect[^]*?\n(?=\n)/m, () => table("POST", "Effect"));
}
