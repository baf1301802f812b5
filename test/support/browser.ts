// A real browser for the tests of the console's pages: Debian's chromium, driven by playwright-core. Where it is missing and
// may not be installed, the tests that need it say so by name and are left out.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { readFile } from "node:fs/promises";
import type { Browser, BrowserContext, BrowserContextOptions, ConsoleMessage, Page } from "playwright-core";
import { installDebianPackages } from "./debian.ts";

const CHROMIUM = "/usr/bin/chromium";

/** Returns whether chromium is installed afterwards. */
export async function installChromium(): Promise<boolean> {
  return existsSync(CHROMIUM) || ((await installDebianPackages("chromium")) && existsSync(CHROMIUM));
}

export function hasChromium(): boolean {
  return existsSync(CHROMIUM);
}

export async function launchBrowser(): Promise<Browser> {
  const { chromium } = await import("playwright-core");
  // Root has no sandbox, and a container may have a small /dev/shm.
  return chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}

/** A page, and what went wrong on it. */
export interface WatchedPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Errors of scripts, refusals of the policy, and requests to other places. */
  readonly faults: string[];
}

/** Opens the console by its link in a browser of its own. */
export async function openConsolePage(
  browser: Browser,
  link: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    reducedMotion: "reduce",
    ...options,
  });
  context.setDefaultTimeout(30_000);
  const page = await context.newPage();
  const faults: string[] = [];
  const { origin } = new URL(link);
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("console", (message: ConsoleMessage) => {
    // The browser reports a refused request itself; what the page makes of it is tested.
    const isStatus = message.text().startsWith("Failed to load resource: the server responded with a status of");
    if (message.type() === "error" && !isStatus) faults.push(`console: ${message.text()}`);
  });
  page.on("request", (request) => {
    const url = new URL(request.url());
    const isOurs = url.origin === origin || url.protocol === "data:" || url.protocol === "blob:";
    if (!isOurs) faults.push(`request: ${request.url()}`);
  });
  await page.goto(link);
  return { page, context, faults };
}

let axe: Promise<string> | undefined;

/** What axe finds on the page, each as one line. */
export async function axeFaults(page: Page): Promise<string[]> {
  axe ??= readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
  // Evaluated by the debugger, which the policy of the page does not concern.
  await page.evaluate(await axe);
  return page.evaluate(async () => {
    interface Violation {
      readonly id: string;
      readonly help: string;
      readonly nodes: readonly { readonly target: readonly string[]; readonly failureSummary?: string }[];
    }
    const { axe } = globalThis as unknown as { axe: { run(): Promise<{ violations: readonly Violation[] }> } };
    const { violations } = await axe.run();
    return violations.map(
      ({ id, help, nodes }) =>
        `${id}: ${help}: ${nodes.map(({ target, failureSummary }) => `${target.join(" ")} (${failureSummary})`).join("; ")}`,
    );
  });
}
