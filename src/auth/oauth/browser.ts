// Opens a URL in the user's browser. The URL comes from a remote server and is not trusted: it must be http or https,
// and it is passed without a shell, as part of one argument. The browser outlives this process. This is a
// module of its own because it loads node:child_process.

import { spawn } from "node:child_process";
import { join } from "node:path";
import { ConnectionError } from "../../core/errors.ts";

/** The platform and environment that decide which browser is started. Tests pass their own. */
export interface Desktop {
  readonly platform: NodeJS.Platform;
  readonly env: NodeJS.ProcessEnv;
}

interface BrowserCommand {
  readonly file: string;
  readonly args: readonly string[];
}

const MAX_URL_LENGTH = 8_192;
const URL_PLACEHOLDER = "%s";

/** Returns the URL if it may be opened in a browser, and throws if not. */
export function checkBrowserUrl(address: URL | string): URL {
  if (!URL.canParse(String(address))) throw refused("it is not a valid URL");
  const url = new URL(address);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw refused(`it must begin with http: or https:, not ${url.protocol.slice(0, 40)}`);
  }
  // A user name could be mistaken for the host.
  if (url.username !== "" || url.password !== "") throw refused("it contains a user name");
  if (url.href.length > MAX_URL_LENGTH) throw refused(`it is longer than ${MAX_URL_LENGTH} characters`);
  return url;
}

/** Returns whether a browser was started. If not, the URL must be shown to the user. */
export async function openBrowser(address: URL | string, desktop: Desktop = process): Promise<boolean> {
  const url = checkBrowserUrl(address);
  for (const command of browserCommands(escapeUrl(url), desktop)) {
    if (await start(command, desktop.env)) return true;
  }
  return false;
}

function browserCommands(url: string, { platform, env }: Desktop): BrowserCommand[] {
  if (platform === "win32") {
    const directory = env["SystemRoot"];
    const file = directory === undefined ? "rundll32.exe" : join(directory, "System32", "rundll32.exe");
    return [{ file, args: ["url.dll,FileProtocolHandler", url] }];
  }
  const lines = (env["BROWSER"] ?? "").split(":").filter((line) => line.trim() !== "");
  // A convention of development tools: BROWSER=none opens nothing.
  if (lines.length === 1 && lines[0]?.trim().toLowerCase() === "none") return [];
  const chosen = lines.map((line) => parseBrowserLine(line, url));
  if (platform === "darwin") return [...chosen, { file: "open", args: [url] }];
  // Without a display the user would see nothing.
  const hasDisplay = (env["DISPLAY"] ?? "") !== "" || (env["WAYLAND_DISPLAY"] ?? "") !== "";
  return hasDisplay ? [...chosen, { file: "xdg-open", args: [url] }] : chosen;
}

/** $BROWSER is a list of commands separated by colons, with `%s` for the URL. Quotes have no meaning in it. */
function parseBrowserLine(line: string, url: string): BrowserCommand {
  const [file = "", ...args] = line.trim().split(/\s+/);
  if (!args.some((arg) => arg.includes(URL_PLACEHOLDER))) return { file, args: [...args, url] };
  return { file, args: args.map((arg) => arg.replaceAll(URL_PLACEHOLDER, () => url)) };
}

function start({ file, args }: BrowserCommand, { BROWSER: _, ...env }: NodeJS.ProcessEnv): Promise<boolean> {
  return new Promise((resolve) => {
    try {
      // The environment has no $BROWSER, since xdg-open would interpret it differently.
      const child = spawn(file, args, { stdio: "ignore", detached: true, shell: false, env });
      child.once("spawn", () => {
        child.unref();
        resolve(true);
      });
      child.once("error", () => resolve(false));
    } catch {
      resolve(false);
    }
  });
}

/** Escapes quotes, and characters that RFC 3986 does not allow. Some are special in the scripts behind xdg-open. */
function escapeUrl(url: URL): string {
  return url.href.replaceAll(/[^\w\-.~:/?#[\]@!$&()*+,;=%]/gu, (one) =>
    one === "'" ? "%27" : encodeURIComponent(one),
  );
}

function refused(why: string): ConnectionError {
  return new ConnectionError("refused", `The authorization URL was not opened: ${why}`, { mayHaveRun: false });
}
