// Opens a page in the user's browser, without a shell: a URL, only if it is http or https, since it comes from a remote
// server; or a file of ours, for a URL that must not be in a command line.

import { pathToFileURL } from "node:url";
import type { ConnectionError } from "../../core/errors.ts";
import { refused } from "../../core/errors.ts";

/** The platform and environment that decide which browser is started. Tests pass their own. */
export interface Desktop {
  readonly platform: NodeJS.Platform;
  readonly env: NodeJS.ProcessEnv;
}

type BrowserCommand = readonly [file: string, ...args: string[]];

const MAX_URL_LENGTH = 8_192;

export function checkBrowserUrl(address: URL | string): URL {
  if (!URL.canParse(String(address))) throw notOpened("it is not a valid URL");
  const url = new URL(address);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw notOpened(`it must begin with http: or https:, not ${url.protocol.slice(0, 40)}`);
  }
  // A user name could be mistaken for the host.
  if (url.username !== "" || url.password !== "") throw notOpened("it contains a user name");
  if (url.href.length > MAX_URL_LENGTH) throw notOpened(`it is longer than ${MAX_URL_LENGTH} characters`);
  return url;
}

/** Returns whether a browser was started. If not, the URL must be shown to the user. */
export async function openBrowser(address: URL | string, desktop: Desktop = process): Promise<boolean> {
  return openInBrowser(checkBrowserUrl(address), desktop);
}

/** Opens a file that this program has written. Returns whether a browser was started. */
export async function openFile(path: string, desktop: Desktop = process): Promise<boolean> {
  return openInBrowser(pathToFileURL(path), desktop);
}

async function openInBrowser(url: URL, desktop: Desktop): Promise<boolean> {
  for (const command of browserCommands(escapeUrl(url), desktop)) {
    if (await start(command, desktop.env)) return true;
  }
  return false;
}

/** Whether there is a browser to start. It may still fail to start. */
export function hasBrowser(desktop: Desktop = process): boolean {
  return browserCommands("", desktop).length > 0;
}

function browserCommands(url: string, { platform, env }: Desktop): BrowserCommand[] {
  const lines = (env["BROWSER"] ?? "").split(":").filter((line) => line.trim() !== "");
  // A convention of development tools: BROWSER=none opens nothing.
  if (lines.length === 1 && lines[0]?.trim().toLowerCase() === "none") return [];
  const chosen = lines.map((line) => parseBrowserLine(line, url));
  if (platform === "darwin") return [...chosen, ["open", url]];
  // Without a display the user would see nothing.
  const hasDisplay = (env["DISPLAY"] ?? "") !== "" || (env["WAYLAND_DISPLAY"] ?? "") !== "";
  return hasDisplay ? [...chosen, ["xdg-open", url]] : chosen;
}

/** $BROWSER is a list of commands separated by colons, with `%s` for the URL. Quotes have no meaning in it. */
function parseBrowserLine(line: string, url: string): BrowserCommand {
  const [file = "", ...args] = line.trim().split(/\s+/);
  if (!args.some((arg) => arg.includes("%s"))) return [file, ...args, url];
  return [file, ...args.map((arg) => arg.replaceAll("%s", () => url))];
}

/** The browser outlives this process. */
async function start([file, ...args]: BrowserCommand, { BROWSER: _, ...env }: NodeJS.ProcessEnv): Promise<boolean> {
  const [{ spawn }, { onlyThese }] = await Promise.all([
    import("node:child_process"),
    import("../../process/descriptors.ts"),
  ]);
  return new Promise<boolean>((resolve) => {
    // The environment has no $BROWSER, since xdg-open would interpret it differently.
    const child = spawn(file, args, {
      stdio: onlyThese(["ignore", "ignore", "ignore"]),
      detached: true,
      shell: false,
      env,
    });
    child.once("spawn", () => {
      child.unref();
      resolve(true);
    });
    child.once("error", () => resolve(false));
  }).catch(() => false);
}

/** Escapes quotes, and characters that RFC 3986 does not allow. Some are special in the scripts behind xdg-open. */
function escapeUrl(url: URL): string {
  return url.href.replaceAll(/[^\w\-.~:/?#[\]@!$&()*+,;=%]/gu, (character) =>
    character === "'" ? "%27" : encodeURIComponent(character),
  );
}

function notOpened(why: string): ConnectionError {
  return refused(`The authorization URL was not opened: ${why}`);
}
