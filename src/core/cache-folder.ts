// Where what can be had again is kept: `$CATENARY_CACHE`, else the XDG cache folder, else `~/.cache/catenary`.

import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";

export function cacheFolder(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const { CATENARY_CACHE: own, XDG_CACHE_HOME: xdg } = env;
  if (own !== undefined && own !== "") return own;
  // The XDG page: a path that is not absolute is to be passed over.
  const base = xdg !== undefined && isAbsolute(xdg) ? xdg : join(homedir(), ".cache");
  return join(base, "catenary");
}
