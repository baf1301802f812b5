// What holds on every page before a real gateway: no error of axe in either theme, no sideways scrolling at 360 px, all of it
// reached by the keyboard, and nothing that fails while the official servers and both SDK clients are at work.

import type { Browser, Page, Request } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { axeFaults, hasChromium, launchBrowser } from "../support/browser.ts";
import { goTo, SERVERS, TestGateway } from "./gateway.ts";
import { connectSdk1, connectSdk2, type SdkClient } from "./sdk-clients.ts";

const CONFIG = {
  mcpServers: {
    steered: SERVERS.steered,
    everything: SERVERS.everything,
    js: SERVERS.js,
    failing: { command: process.execPath, args: ["-e", "process.exit(3)"] },
  },
  chain: [{ redact: { keys: ["*password*"], in: ["arguments", "results"] } }, { log: {} }],
};

interface Place {
  readonly name: string;
  /** Goes there, and waits until it is drawn. */
  readonly visit: (page: Page) => Promise<void>;
}

const heading = (page: Page, name: string): Promise<void> => page.getByRole("heading", { name, level: 1 }).waitFor();

/** The detail of the last call of a tool, with one of its tabs chosen. */
function detail(tab: string): Place {
  return {
    name: `a call, ${tab}`,
    visit: async (page) => {
      await goTo(page, "#/traffic?filter=tool:keep");
      await page.getByRole("table", { name: "Calls" }).getByRole("row").filter({ hasText: "keep" }).first().click();
      const call = page.getByRole("region", { name: "Call" });
      await call.getByRole("tab", { name: tab }).click();
      await call.getByRole("tabpanel").waitFor();
    },
  };
}

const PLACES: readonly Place[] = [
  {
    name: "Home",
    visit: async (page) => {
      await goTo(page, "#/home");
      await page.getByRole("table", { name: "Clients" }).waitFor();
      await page.getByRole("list", { name: "Needs you" }).getByText("failing").waitFor();
    },
  },
  {
    name: "the log of a server",
    visit: async (page) => {
      await goTo(page, "#/home");
      await page.getByRole("button", { name: "Log of steered" }).click();
      await page.getByRole("dialog").getByRole("log").waitFor();
    },
  },
  {
    name: "Traffic",
    visit: async (page) => {
      await goTo(page, "#/traffic");
      await page.getByRole("table", { name: "Calls" }).getByText("keep").first().waitFor();
    },
  },
  ...["Request", "Response", "Steps", "Wire"].map(detail),
  {
    name: "Tools",
    visit: async (page) => {
      await goTo(page, "#/tools");
      await page.getByRole("link", { name: "greet", exact: true }).waitFor();
    },
  },
  {
    name: "a tool with its result",
    visit: async (page) => {
      await goTo(page, "#/tools/steered/media");
      await page.getByRole("button", { name: "Call", exact: true }).click();
      await page.getByRole("region", { name: "Result" }).getByText("text of a note").waitFor();
    },
  },
  {
    name: "a form with mistakes",
    visit: async (page) => {
      await goTo(page, "#/tools/steered/greet");
      await page.getByRole("button", { name: "Call", exact: true }).click();
      await page.locator('[aria-invalid="true"]').first().waitFor();
    },
  },
  {
    name: "a question",
    visit: async (page) => {
      await goTo(page, "#/tools/steered/ask");
      await page.getByRole("button", { name: "Call", exact: true }).click();
      await page.getByRole("dialog", { name: "steered asks" }).waitFor();
    },
  },
  {
    name: "Live",
    visit: async (page) => {
      await goTo(page, "#/live");
      await page.getByRole("log", { name: "Transcript" }).getByText("RangeError").first().waitFor();
    },
  },
  {
    name: "Chain",
    visit: async (page) => {
      await goTo(page, "#/chain");
      await page.getByRole("button", { name: /^Middleware redact/ }).click();
      await page.getByRole("region", { name: "Middleware redact" }).waitFor();
    },
  },
  {
    name: "the palette",
    visit: async (page) => {
      await goTo(page, "#/home");
      await heading(page, "Home");
      await page.keyboard.press("Control+k");
      await page.getByRole("dialog", { name: "Go to anything" }).getByRole("option").first().waitFor();
    },
  },
];

describe.skipIf(!hasChromium())("every page", () => {
  let browser: Browser;
  let gateway: TestGateway;
  let clients: SdkClient[];

  beforeAll(async () => {
    [browser, gateway] = await Promise.all([launchBrowser(), TestGateway.start(CONFIG)]);
    clients = await Promise.all([
      connectSdk1(gateway, { name: "first-agent" }),
      connectSdk2(gateway, { name: "second-agent" }),
    ]);
    for (const client of clients) {
      await client.toolNames();
      await client.call("keep", { password: "hunter2", note: "x".repeat(300) });
      await client.call("fail");
      await client.call("evaluate-js", { code: "throw new RangeError('deep')" });
    }
    // Signs in.
    await gateway.open(browser);
  });
  afterAll(async () => {
    await Promise.all((clients ?? []).map((client) => client.close()));
    await browser?.close();
    await gateway?.stop();
  });

  const leave = async (page: Page): Promise<void> => {
    const dialogs = page.getByRole("dialog");
    for (let left = await dialogs.count(); left > 0; left -= 1) {
      await page.keyboard.press("Escape");
      await expect.poll(() => dialogs.count()).toBe(left - 1);
    }
  };

  it.each(["light", "dark"] as const)("has no error of axe in the %s theme", async (colorScheme) => {
    const { page, context, faults } = await gateway.open(browser, "#/home", { colorScheme });
    const found: Record<string, string[]> = {};
    for (const { name, visit } of PLACES) {
      await visit(page);
      const of = await axeFaults(page);
      if (of.length > 0) found[name] = of;
      await leave(page);
    }
    expect(found).toEqual({});
    expect(faults).toEqual([]);
    await context.close();
  });

  it("is usable at 360 px: nothing scrolls sideways but boxes of their own, and nothing is out of reach", async () => {
    const options = { viewport: { width: 360, height: 740 }, hasTouch: true };
    const { page, context, faults } = await gateway.open(browser, "#/home", options);
    const found: Record<string, unknown> = {};
    for (const { name, visit } of PLACES) {
      await visit(page);
      const wide = await page.evaluate(() => {
        const { scrollWidth, clientWidth } = document.documentElement;
        const unreachable = [...document.querySelectorAll("a[href], button, input, select, textarea, [role=tab]")]
          .filter((element) => {
            if (!element.checkVisibility() || element.closest(".skip, [inert]") !== null) return false;
            const dialog = document.querySelector("dialog[open]");
            if (dialog !== null && !dialog.contains(element)) return false;
            // Scrolling brings it into sight.
            element.scrollIntoView({ block: "center", inline: "nearest" });
            const { left, right, width } = element.getBoundingClientRect();
            return width > 0 && (left < -1 || right > clientWidth + 1);
          })
          .map((element) => element.outerHTML.slice(0, 120));
        scrollTo(0, 0);
        return { over: scrollWidth - clientWidth, unreachable };
      });
      if (wide.over > 0 || wide.unreachable.length > 0) found[name] = wide;
      await leave(page);
    }
    // By its links, as a person would.
    await goTo(page, "#/home");
    for (const name of ["Traffic", "Tools", "Live", "Chain", "Home"]) {
      await page.getByRole("link", { name, exact: true }).click();
      await heading(page, name);
    }
    expect(found).toEqual({});
    expect(faults).toEqual([]);
    await context.close();
  });

  it("goes from the address bar to a call in Tools by the keyboard alone", async () => {
    const { page, context, faults } = await gateway.open(browser, "#/home");
    await heading(page, "Home");
    const focused = (): Promise<string> =>
      page.evaluate(() => {
        const { activeElement } = document;
        return `${activeElement?.getAttribute("aria-label") ?? ""} ${activeElement?.textContent ?? ""}`.trim();
      });
    const tabTo = async (wanted: RegExp): Promise<void> => {
      for (let count = 0; count < 60; count += 1) {
        await page.keyboard.press("Tab");
        if (wanted.test(await focused())) return;
      }
      throw new Error(`Tab does not reach ${wanted}; it is at ${await focused()}`);
    };
    await tabTo(/^Skip to the page/);
    await tabTo(/^Tools/);
    await page.keyboard.press("Enter");
    await heading(page, "Tools");
    await tabTo(/^Search tools/);
    await page.keyboard.type("greet");
    await page.getByRole("link", { name: "greet", exact: true }).waitFor();
    await tabTo(/^Tools, list/);
    await page.keyboard.press("ArrowDown");
    await page.getByRole("heading", { name: "greet", exact: true }).waitFor();
    for (let count = 0; count < 30; count += 1) {
      await page.keyboard.press("Tab");
      const isThere = await page
        .getByLabel("name", { exact: true })
        .evaluate((element) => element === document.activeElement);
      if (isThere) break;
    }
    await page.keyboard.type("Keys");
    await tabTo(/^Call$/);
    await page.keyboard.press("Enter");
    await page.getByRole("region", { name: "Result" }).getByText("Hello Keys").waitFor();
    // The palette, by name.
    await page.keyboard.press("Control+k");
    await page.keyboard.type("everything echo");
    await page.keyboard.press("Escape");
    await page.keyboard.press("Control+k");
    await page.keyboard.type("chain");
    await page.getByRole("option", { selected: true }).getByText("Chain").waitFor();
    await page.keyboard.press("Enter");
    await heading(page, "Chain");
    expect(faults).toEqual([]);
    await context.close();
  });

  it("asks for nothing while nothing happens", async () => {
    const { page, context, faults } = await gateway.open(browser, "#/home");
    const asked: Record<string, string[]> = {};
    for (const { name, visit } of PLACES) {
      if (!["Home", "Traffic", "Tools", "Live", "Chain"].includes(name)) continue;
      await visit(page);
      // What a place reads when it opens, which may be a new stream of events too.
      await page.waitForTimeout(1000);
      const requests: string[] = [];
      const onRequest = (request: Request): void => void requests.push(`${request.method()} ${request.url()}`);
      page.on("request", onRequest);
      await page.waitForTimeout(2000);
      page.off("request", onRequest);
      asked[name] = requests;
      await leave(page);
    }
    expect(asked).toEqual({ Home: [], Traffic: [], Tools: [], Live: [], Chain: [] });
    expect(faults).toEqual([]);
    await context.close();
  });

  it("is up to date while both SDK clients call three servers", async () => {
    const { page, context, faults } = await gateway.open(browser, "#/traffic");
    const rounds = 20;
    await Promise.all(
      clients.map(async (client, number) => {
        for (let round = 0; round < rounds; round += 1) {
          await client.call("echo", { message: `busy ${number} ${round}` });
          await client.call("greet", { name: `busy ${number} ${round}` });
          await client.call("evaluate-js", { code: `"busy ${number} ${round}"`, session: `busy-${number}` });
        }
      }),
    );
    const filter = page.getByRole("searchbox", { name: "Filter" });
    const table = page.getByRole("table", { name: "Calls" });
    const shown = async (text: string): Promise<number> => {
      await filter.fill(text);
      return Number(await table.getAttribute("aria-rowcount")) - 1;
    };
    await expect.poll(() => shown("tool:echo client:first-agent")).toBe(rounds);
    await expect.poll(() => shown("tool:greet client:second-agent status:ok")).toBe(rounds);
    await expect.poll(() => shown("server:js tool:evaluate-js")).toBe(2 * rounds + 2);
    await expect.poll(() => shown('text:"busy 1 7"')).toBe(3);
    expect(faults).toEqual([]);
    await context.close();
  });
});
