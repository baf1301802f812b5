// Which hosts are this machine, and how a host is written. All functions take and return a host as `URL.hostname` has it:
// in lower case, an IPv4 address as four decimal numbers, an IPv6 address in brackets.

export const LOOPBACK_NAMES: readonly string[] = ["localhost", "127.0.0.1", "[::1]"];

/** Whether the host is certainly this machine, so that no other program on the network sees what is sent to it. */
export function isLoopback(host: string): boolean {
  return LOOPBACK_NAMES.includes(host) || /^127(?:\.\d{1,3}){3}$/.test(host);
}

/**
 * Whether the host should be this machine. Unlike `isLoopback`, this includes names such as `app.localhost` (RFC 6761,
 * 6.3), which some resolvers look up in the network, and IPv4 addresses written as IPv6.
 */
export function meansLoopback(host: string): boolean {
  return (
    isLoopback(host) || /(?:^|\.)localhost\.?$/i.test(host) || /^\[::ffff:7f[\da-f]{2}:[\da-f]{1,4}\]$/i.test(host)
  );
}

/** An address that a server listens on, as a client would write it in a URL. */
export function urlHost(address: string): string {
  const bare = withoutBrackets(address).replace(/%.*$/, "");
  if (bare === "") return "";
  const url = `http://${bare.includes(":") ? `[${bare}]` : bare}`;
  return URL.canParse(url) ? new URL(url).hostname : bare.toLowerCase();
}

/** An address as the functions of Node take it. */
export function withoutBrackets(host: string): string {
  return host.replace(/^\[(.*)\]$/, "$1");
}
