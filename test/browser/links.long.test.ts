// How a browser gets into the console and stays there: links that work once, a page without a cookie, a gateway that stops and
// comes back, and a proxy that serves it below a prefix.

import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { hasChromium, launchBrowser, openConsolePage, type WatchedPage } from "../support/browser.ts";
import { SERVERS, TestGateway } from "./gateway.ts";

/** A proxy that serves the gateway below a prefix, as nginx does with `proxy_pass http://gateway/`. */
async function startProxy(target: string, prefix: string): Promise<{ url: string; server: Server }> {
  const { hostname, port } = new URL(target);
  const server = createServer((incoming, outgoing) => {
    const { url = "/", method, headers } = incoming;
    if (!url.startsWith(prefix)) return void outgoing.writeHead(404).end();
    const path = url.slice(prefix.length - 1);
    const passed = request({ hostname, port, path, method, headers }, (response) => {
      outgoing.writeHead(response.statusCode ?? 502, response.headers);
      outgoing.flushHeaders();
      response.pipe(outgoing);
    });
    passed.on("error", () => outgoing.destroy());
    outgoing.on("close", () => passed.destroy());
    incoming.pipe(passed);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}${prefix}`, server };
}

describe.skipIf(!hasChromium())("links to the console", () => {
  let browser: Browser;
  let gateway: TestGateway;
  const pages: WatchedPage[] = [];

  beforeAll(async () => {
    const config = { mcpServers: { steered: SERVERS.steered } };
    [browser, gateway] = await Promise.all([launchBrowser(), TestGateway.start(config)]);
  });
  afterEach(async () => {
    await Promise.all(pages.splice(0).map(({ context }) => context.close()));
  });
  afterAll(async () => {
    await browser?.close();
    await gateway?.stop();
  });

  const open = async (link: string): Promise<WatchedPage> => {
    const opened = await openConsolePage(browser, link);
    pages.push(opened);
    return opened;
  };
  const isIn = ({ page }: WatchedPage): Promise<void> =>
    page.getByRole("list", { name: "Servers" }).getByText("steered").waitFor();
  const isOut = async ({ page }: WatchedPage): Promise<void> => {
    await page.getByRole("heading", { name: "This page needs a new link" }).waitFor();
    await page.getByText(/^(?:catenary|node \S+main\.js) console$/).waitFor();
  };

  it("works once, and the token does not stay in the address", async () => {
    const first = await open(gateway.link);
    await isIn(first);
    expect(first.page.url()).toBe(`${gateway.origin}/#/home`);
    expect(first.faults).toEqual([]);
    // The cookie stays.
    await first.page.reload();
    await isIn(first);
    const second = await open(gateway.link);
    await isOut(second);
    expect(second.faults).toEqual([]);
    const third = await open(await gateway.newLink());
    await isIn(third);
  });

  it("a page without a cookie says how to get a link, and opens when there is one", async () => {
    const opened = await open(`${gateway.origin}/#/traffic`);
    await isOut(opened);
    const link = await gateway.newLink();
    const sameBrowser = await opened.context.newPage();
    await sameBrowser.goto(link);
    await sameBrowser.getByRole("list", { name: "Servers" }).waitFor();
    await opened.page.getByRole("button", { name: "Try again" }).click();
    await opened.page.getByRole("table", { name: "Calls" }).waitFor();
    expect(opened.faults).toEqual([]);
  });

  it("works behind a proxy with a prefix", async () => {
    const { url, server } = await startProxy(gateway.origin, "/tools/catenary/");
    const { hash } = new URL(await gateway.newLink());
    const opened = await open(`${url}${hash}`);
    await isIn(opened);
    expect(opened.page.url()).toBe(`${url}#/home`);
    const { page } = opened;
    for (const [name, heading] of ["Traffic", "Tools", "Live", "Chain"].map((one) => [one, one] as const)) {
      await page.getByRole("link", { name, exact: true }).click();
      await page.getByRole("heading", { name: heading, level: 1 }).waitFor();
    }
    await page.goto(`${url}#/tools/steered/greet`);
    await page.getByLabel("name", { exact: true }).fill("Prefix");
    await page.getByRole("button", { name: "Call", exact: true }).click();
    await page.getByRole("region", { name: "Result" }).getByText("Hello Prefix").waitFor();
    await page.getByRole("link", { name: "Traffic", exact: true }).click();
    await page.getByRole("table", { name: "Calls" }).getByText("greet").first().waitFor();
    expect(opened.faults).toEqual([]);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it("says that the connection is lost, tries again, and asks for a new link after a restart", async () => {
    const opened = await open(await gateway.newLink());
    await isIn(opened);
    const { page } = opened;
    const { host } = new URL(gateway.url);
    await gateway.kill();
    await page.getByRole("alert").getByText("Connection lost").waitFor();
    // What was known is still shown.
    await isIn(opened);
    await gateway.up(host);
    await isOut(opened);
    // The tab has the page already, which takes the token from the address.
    await page.goto(gateway.link);
    await isIn(opened);
    await expect.poll(() => page.getByText("Connection lost").count()).toBe(0);
  });
});
