// The client in a browser: a page, bundled with esbuild, that calls a server over HTTP. In Debian's chromium.

import { once } from "node:events";
import { existsSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { NEWEST, NEWEST_SESSION } from "../../../src/protocol/revisions/index.ts";
import { serve } from "../../../src/serve.ts";
import { createServer } from "../../../src/server/index.ts";
import { installDebianPackages } from "../../support/debian.ts";
import { importPackage, missingRuntimes, Workspace } from "./runtimes.ts";

const CHROMIUM = "/usr/bin/chromium";
const reason = (await missingRuntimes()) ?? (await missingBrowser());
if (reason !== undefined) console.warn(`Skipped: the client in a browser, because ${reason}`);

async function missingBrowser(): Promise<string | undefined> {
  if (existsSync(CHROMIUM) || (await installDebianPackages("chromium"))) return undefined;
  return "chromium is missing and could not be installed (apt-get install chromium)";
}

const PAGE = `
import { connect } from "catenary/client";

globalThis.run = async (url, revision) => {
  const client = await connect(url, { revision, elicit: () => ({ action: "accept", content: { name: "Änn" } }) });
  const steps = [];
  const { content } = await client.callTool("ask", {}, { onProgress: ({ progress }) => steps.push(progress) });
  const { content: long } = await client.callTool("long");
  await client.close();
  return { text: content[0].text, steps, length: long[0].text.length };
};
`;

/** Only what this test uses. */
interface Puppeteer {
  launch(options: object): Promise<{ newPage(): Promise<Page>; close(): Promise<void> }>;
}
interface Page {
  goto(url: string): Promise<unknown>;
  evaluate(expression: string): Promise<unknown>;
}

it.skipIf(reason !== undefined)("in a browser, a client calls a server, in both styles", async () => {
  const workspace = new Workspace({ "page.js": PAGE });
  const [script] = await workspace.bundle("page.js", { minify: true });
  workspace.remove();
  const site = createHttpServer((request, response) => {
    const isScript = request.url === "/page.js";
    response.setHeader("content-type", isScript ? "text/javascript" : "text/html");
    response.end(isScript ? script?.text : '<script type="module" src="/page.js"></script>');
  }).listen(0, "127.0.0.1");
  await once(site, "listening");
  const origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
  const requestedSchema = { type: "object", properties: { name: { type: "string" } } } as const;
  const server = createServer({ name: "notes", version: "1.0.0" })
    .tool("ask", {}, async (_args, { ask, progress }) => {
      progress(1);
      const { content } = await ask.elicit({ message: "Who?", requestedSchema });
      return `hi ${String(content?.["name"])}`;
    })
    .tool("long", {}, () => 'a"ü€😀'.repeat(100_000));
  const front = await serve(server, { http: { port: 0, allowedOrigins: [origin] } });
  const { default: puppeteer } = await importPackage<{ default: Puppeteer }>(
    "puppeteer-core",
    "lib/esm/puppeteer/puppeteer-core.js",
  );
  const args = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
  const browser = await puppeteer.launch({ executablePath: CHROMIUM, headless: true, args });
  try {
    const page = await browser.newPage();
    await page.goto(origin);
    for (const revision of [NEWEST.name, NEWEST_SESSION.name]) {
      const result = await page.evaluate(`run(${JSON.stringify(front.url)}, ${JSON.stringify(revision)})`);
      expect(result).toEqual({ text: "hi Änn", steps: [1], length: 600_000 });
    }
  } finally {
    await browser.close();
    await front.close();
    site.close();
  }
});
