// A real gateway for the tests of the pages: `catenary up` as a process with a config and folders of its own, clients of both
// official SDKs, and the console in a browser that is signed in once.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { expect } from "vitest";
import { openConsolePage, type WatchedPage } from "../support/browser.ts";
import { compiled } from "../support/programs.ts";
import { withEnvironment } from "../support/processes.ts";
import { eventually } from "../support/waiting.ts";
import { catenary, CliProcess } from "../contract/cli/cli-process.ts";

/** A variable that all processes of a gateway inherit. */
const MARK = "CATENARY_BROWSER_TEST";
const EVERYTHING = createRequire(import.meta.url).resolve("@modelcontextprotocol/server-everything/dist/index.js");

/** Entries of a config. */
export const SERVERS = {
  everything: { command: process.execPath, args: [EVERYTHING] },
  /** Its calls end when the test lets them: see steered-server.ts. `FOLDER` stands for the folder of the gateway. */
  steered: { command: process.execPath, args: [compiled("steered-server.ts", import.meta.url)], cwd: "FOLDER" },
  hostile: { command: process.execPath, args: [compiled("hostile-server.ts", import.meta.url)] },
  js: { live: "js" },
  lisp: { live: "lisp" },
} as const;

interface Printed {
  readonly url: string;
  readonly console: string;
  readonly token?: string;
}

export class TestGateway {
  readonly folder: string;
  readonly config: string;
  readonly #env: NodeJS.ProcessEnv;
  #process: CliProcess | undefined;
  #printed: Printed | undefined;
  #cookies: Awaited<ReturnType<WatchedPage["context"]["storageState"]>> | undefined;
  readonly #pages: WatchedPage[] = [];

  private constructor(config: object, files: Readonly<Record<string, string>>) {
    this.folder = mkdtempSync(join(tmpdir(), "catenary-browser-"));
    this.config = join(this.folder, "catenary.json");
    writeFileSync(this.config, JSON.stringify(config, undefined, 2).replaceAll("FOLDER", this.folder));
    for (const [name, text] of Object.entries(files)) writeFileSync(join(this.folder, name), text);
    this.#env = {
      [MARK]: this.folder,
      XDG_STATE_HOME: join(this.folder, "state"),
      XDG_RUNTIME_DIR: join(this.folder, "run"),
      CATENARY_CACHE: join(this.folder, "cache"),
    };
  }

  /** `files` are written into the folder of the gateway. */
  static async start(
    config: object,
    args: readonly string[] = [],
    files: Readonly<Record<string, string>> = {},
  ): Promise<TestGateway> {
    const gateway = new TestGateway(config, files);
    await gateway.up("127.0.0.1:0", args);
    return gateway;
  }

  async up(address: string, args: readonly string[] = []): Promise<void> {
    const run = new CliProcess(["up", this.config, "--http", address, "--json", "--no-open", ...args], {
      env: this.#env,
      cwd: this.folder,
    });
    this.#process = run;
    await eventually(() => expect(run.out.endsWith("\n") || run.process.exitCode !== null).toBe(true));
    if (run.out === "") throw new Error(run.err);
    this.#printed = JSON.parse(run.out) as Printed;
    this.#cookies = undefined;
  }

  /** The endpoint for clients. */
  get url(): string {
    return this.#printed?.url ?? "";
  }

  get origin(): string {
    return new URL(this.url).origin;
  }

  /** The link that `up` has printed. It works once. */
  get link(): string {
    return this.#printed?.console ?? "";
  }

  /** What clients must send as a bearer token. */
  get token(): string | undefined {
    return this.#printed?.token;
  }

  /** What the gateway has written to stderr. */
  get stderr(): string {
    return this.#process?.err ?? "";
  }

  /** Another link, as `catenary console` prints it. */
  async newLink(): Promise<string> {
    const { out, err } = await catenary(["console", "--json"], "", { env: this.#env, cwd: this.folder });
    if (out === "") throw new Error(err);
    return (JSON.parse(out) as { link: string }).link;
  }

  /** Opens a page in a browser context of its own that is signed in. */
  async open(browser: Browser, hash = "#/home", options: BrowserContextOptions = {}): Promise<WatchedPage> {
    let opened: WatchedPage;
    if (this.#cookies === undefined) {
      opened = await openConsolePage(browser, this.link, options);
      await opened.page.getByRole("heading", { name: "Home", level: 1 }).waitFor();
      this.#cookies = await opened.context.storageState();
      await goTo(opened.page, hash);
    } else {
      const withCookie = { ...options, storageState: this.#cookies };
      opened = await openConsolePage(browser, `${this.origin}/${hash}`, withCookie);
    }
    this.#pages.push(opened);
    return opened;
  }

  /** What went wrong on the pages that are open. */
  get faults(): string[] {
    return this.#pages.flatMap(({ faults }) => faults);
  }

  /** Closes the pages that were opened, and returns what went wrong on them. */
  async closePages(): Promise<string[]> {
    const pages = this.#pages.splice(0);
    await Promise.all(pages.map(({ context }) => context.close()));
    return pages.flatMap(({ faults }) => faults);
  }

  /** Ends the process at once, as a crash does. */
  async kill(): Promise<void> {
    const run = this.#process;
    this.#process = undefined;
    run?.process.kill("SIGKILL");
    await run?.exited;
    await eventually(() => expect(withEnvironment(MARK, this.folder)).toEqual([]));
  }

  async stop(): Promise<void> {
    await this.closePages();
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Lets a call of `hold` with this label end. */
  release(label: string): void {
    writeFileSync(join(this.folder, `${label}.release`), "");
  }
}

/** Goes to another page of the console without loading it again. */
export async function goTo(page: Page, hash: string): Promise<void> {
  await page.evaluate((to) => {
    location.hash = to;
  }, hash);
}
