// Opens an address in the person's browser. The address comes from an authorization server that an end named, so it
// is taken for hostile: only plain http and https, never a shell, always as one argument of a program. The program is
// started and left alone: how it fares is not known here, and nothing it says is seen. Says only whether there was one.

import { spawn } from "node:child_process";
import { join } from "node:path";
import { ConnectionError } from "../../core/errors.ts";

/** What of the machine decides on the browser; given by tests, the process's own otherwise. */
export interface Desktop {
  readonly platform: NodeJS.Platform;
  readonly env: NodeJS.ProcessEnv;
}

interface Opener {
  readonly file: string;
  readonly args: readonly string[];
}

const LONGEST_ADDRESS = 8_192;
const PLACE_OF_URL = "%s";

/** The address itself, where it is one that may be shown to a person's browser; refuses all others. */
export function webAddress(address: URL | string): URL {
  if (!URL.canParse(String(address))) throw refusal("it is no address");
  const url = new URL(address);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw refusal(`it begins with ${url.protocol.slice(0, 40)} and only http: and https: are opened`);
  }
  // What stands before the @ is shown as if it were the host.
  if (url.username !== "" || url.password !== "") throw refusal("there is a user name in it");
  if (url.href.length > LONGEST_ADDRESS) throw refusal(`it is longer than ${LONGEST_ADDRESS} characters`);
  return url;
}

/** Whether a browser was started; where not, the person must be told the address. */
export async function openBrowser(address: URL | string, desktop: Desktop = process): Promise<boolean> {
  const url = webAddress(address);
  for (const opener of openers(plainUri(url), desktop)) {
    if (await starts(opener, desktop.env)) return true;
  }
  return false;
}

function openers(url: string, { platform, env }: Desktop): Opener[] {
  if (platform === "win32") {
    const directory = env["SystemRoot"];
    const file = directory === undefined ? "rundll32.exe" : join(directory, "System32", "rundll32.exe");
    return [{ file, args: ["url.dll,FileProtocolHandler", url] }];
  }
  const chosen = (env["BROWSER"] ?? "").split(":").filter((line) => line.trim() !== "");
  // A convention of tools that start browsers for developers.
  if (chosen.length === 1 && chosen[0]?.trim().toLowerCase() === "none") return [];
  const own = chosen.map((line) => openerOf(line, url));
  if (platform === "darwin") return [...own, { file: "open", args: [url] }];
  // Without a display there is nothing that a person could see.
  const display = (env["DISPLAY"] ?? "") !== "" || (env["WAYLAND_DISPLAY"] ?? "") !== "";
  return display ? [...own, { file: "xdg-open", args: [url] }] : own;
}

/** $BROWSER by its convention: programs with arguments, between colons, `%s` for the address. No quotes, no shell. */
function openerOf(line: string, url: string): Opener {
  const [file = "", ...args] = line.trim().split(/\s+/);
  if (!args.some((arg) => arg.includes(PLACE_OF_URL))) return { file, args: [...args, url] };
  return { file, args: args.map((arg) => arg.replaceAll(PLACE_OF_URL, () => url)) };
}

function starts({ file, args }: Opener, { BROWSER: _, ...env }: NodeJS.ProcessEnv): Promise<boolean> {
  return new Promise((resolve) => {
    try {
      // Without $BROWSER: xdg-open would read it in its own way.
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

/** A URL may have characters that no URI has (RFC 3986), and some mean something to the scripts behind xdg-open. */
function plainUri(url: URL): string {
  return url.href.replaceAll(/[^\w\-.~:/?#[\]@!$&()*+,;=%]/gu, (one) =>
    one === "'" ? "%27" : encodeURIComponent(one),
  );
}

function refusal(why: string): ConnectionError {
  return new ConnectionError("refused", `The authorization address is not opened: ${why}`, { mayHaveRun: false });
}
