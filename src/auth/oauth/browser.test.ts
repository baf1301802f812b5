// Opens URLs that an authorization server chose. A program on the PATH that records its arguments replaces the
// browser, so that tests see what was run.

import { chmodSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { sampleOf } from "../../../test/support/thoroughness.ts";
import { ConnectionError } from "../../core/errors.ts";
import { openBrowser, checkBrowserUrl, type Desktop } from "./browser.ts";

/** Not written out: no line of this house has an address of this kind. */
const SCRIPT = ["java", "script:"].join("");

let home = "";

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "catenary-browser-"));
});

afterEach(() => rmSync(home, { recursive: true, force: true }));

/** Creates a program that records its arguments as JSON under its own name. */
function install(...names: readonly string[]): void {
  for (const name of names) {
    const script = `#!${process.execPath}
const { writeFileSync, renameSync } = require("node:fs");
const said = JSON.stringify({ args: process.argv.slice(2), browser: process.env.BROWSER });
writeFileSync(__filename + ".draft", said);
renameSync(__filename + ".draft", __filename + ".said");
`;
    writeFileSync(join(home, name), script);
    chmodSync(join(home, name), 0o700);
  }
}

/** The arguments that a program was started with. */
async function said(name: string): Promise<{ args: string[]; browser?: string }> {
  const path = join(home, `${name}.said`);
  await expect.poll(() => existsSync(path)).toBe(true);
  return JSON.parse(readFileSync(path, "utf8"));
}

const desktop = (env: NodeJS.ProcessEnv = {}, platform: NodeJS.Platform = "linux"): Desktop => ({
  platform,
  env: { PATH: home, DISPLAY: ":0", ...env },
});

it.each([
  `${SCRIPT}alert(1)`,
  `${SCRIPT.toUpperCase()}alert(1)`,
  "java\nscript:alert(1)",
  " javascript:alert(document.domain)//https://a.example/",
  "file:///etc/passwd",
  "file://a.example/share/x.exe",
  "data:text/html,<script>alert(1)</script>",
  "vbscript:msgbox(1)",
  "blob:https://a.example/1",
  "about:blank",
  "chrome://settings",
  "ms-msdt:/id PCWDiagnostic",
  "smb://a.example/share",
  "mailto:a@a.example",
  "-a Calculator",
  "--help",
  "-https://a.example/",
  "$(touch pwned)",
  "`touch pwned`",
  "&calc",
  "; touch pwned",
  "| touch pwned",
  "\\\\a.example\\share\\x.exe",
  "calc.exe",
  "/usr/bin/true",
  "//a.example/authorize",
  "https://",
  "http://[::1",
  "",
  "https://login.example@evil.example/authorize",
  "https://user:password@a.example/authorize",
  `https://a.example/${"a".repeat(9_000)}`,
])("a URL that is not a web page is refused, and starts nothing: %j", async (address) => {
  install("xdg-open", "open", "chosen");
  expect(() => checkBrowserUrl(address)).toThrow(ConnectionError);
  for (const platform of ["linux", "darwin"] as const) {
    const opening = openBrowser(address, desktop({ BROWSER: "chosen %s" }, platform));
    await expect(opening).rejects.toMatchObject({ name: "ConnectionError", kind: "refused" });
  }
  expect(readdirSync(home).filter((name) => name.includes("said") || name.includes("draft"))).toEqual([]);
});

it.each(
  sampleOf(1, [
    ["https://a.example/authorize?a=$(touch pwned)", "https://a.example/authorize?a=$(touch%20pwned)"],
    ["https://a.example/`touch pwned`?b=`id`", "https://a.example/%60touch%20pwned%60?b=%60id%60"],
    ["https://a.example/?a=1&calc", "https://a.example/?a=1&calc"],
    ["https://a.example/?a=1&calc.exe&", "https://a.example/?a=1&calc.exe&"],
    ["https://a.example/?a=1;touch%20pwned|id>x<y", "https://a.example/?a=1;touch%20pwned%7Cid%3Ex%3Cy"],
    ["https://a.example/?a=\"'\\^{}%PATH%", "https://a.example/?a=%22%27%5C%5E%7B%7D%PATH%"],
    ["https://a.example/'x'", "https://a.example/%27x%27"],
    ["https://a.example/\ntouch pwned\r\n?a=\n1", "https://a.example/touch%20pwned?a=1"],
    ["https://a.example/?a=%0Atouch", "https://a.example/?a=%0Atouch"],
    ["https://a.example/ --new-window -c calc", "https://a.example/%20--new-window%20-c%20calc"],
    ["  https://a.example/ü?q=ü", "https://a.example/%C3%BC?q=%C3%BC"],
    ["http://127.0.0.1:8080/#$(id)", "http://127.0.0.1:8080/#$(id)"],
  ]),
)("a URL with special characters of a shell is one argument, and a URI: %j", async (address, argument) => {
  install("xdg-open", "open", "chosen");
  for (const [platform, name] of [
    ["linux", "xdg-open"],
    ["darwin", "open"],
  ] as const) {
    expect(await openBrowser(address, desktop({}, platform))).toBe(true);
    expect(await said(name)).toEqual({ args: [argument] });
  }
  expect(await openBrowser(address, desktop({ BROWSER: "chosen" }))).toBe(true);
  expect(await said("chosen")).toEqual({ args: [argument] });
  expect(existsSync(join(home, "pwned")) || existsSync("pwned")).toBe(false);
  expect(readdirSync(home).filter((name) => name.endsWith(".said"))).toHaveLength(3);
});

const address = "https://a.example/authorize?a=1&b=$&";

it("the browser is the first in $BROWSER that exists, with its arguments", async () => {
  install("second", "xdg-open");
  const BROWSER = "first --new:second --url=%s -x '$(id)' %s:third";
  expect(await openBrowser(address, desktop({ BROWSER }))).toBe(true);
  expect(await said("second")).toEqual({ args: [`--url=${address}`, "-x", "'$(id)'", address] });
  expect(existsSync(join(home, "xdg-open.said"))).toBe(false);
});

it("the browser is the system's if none of them exists, without $BROWSER in its environment", async () => {
  install("xdg-open");
  expect(await openBrowser(address, desktop({ BROWSER: "first: :second %s" }))).toBe(true);
  expect(await said("xdg-open")).toEqual({ args: [address] });
});

it("the browser is started by $BROWSER even without a display, as on a remote machine", async () => {
  install("helper", "xdg-open");
  expect(await openBrowser(address, desktop({ BROWSER: join(home, "helper"), DISPLAY: undefined }))).toBe(true);
  expect(await said("helper")).toEqual({ args: [address] });
});

it.each([
  ["there is no display", { DISPLAY: "" }],
  ["$BROWSER says so", { BROWSER: "none" }],
])("the browser is none where %s", async (_why, env) => {
  install("xdg-open", "none");
  expect(await openBrowser(address, desktop(env))).toBe(false);
  expect(readdirSync(home).filter((name) => name.endsWith(".said"))).toEqual([]);
});

it("the browser is missing if there is no program, or none that can be run", async () => {
  expect(await openBrowser(address, desktop())).toBe(false);
  writeFileSync(join(home, "xdg-open"), "no program", { mode: 0o600 });
  expect(await openBrowser(address, desktop())).toBe(false);
  expect(await openBrowser(address, desktop({ BROWSER: "a\u0000b" }))).toBe(false);
});
