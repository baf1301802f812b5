// Which HTTP headers carry secrets. Apart from secrets.ts, since every server over HTTP needs it and nothing else of that.

/** The session id is one: anyone who knows it can use the session, if there is no other authentication. */
const SECRET_HEADERS = ["authorization", "proxy-authorization", "cookie", "mcp-session-id"];

/** The headers of a request without its credentials. Their names are in lower case. */
export function withoutCredentials(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  if (!SECRET_HEADERS.some((name) => name in headers)) return headers;
  const visible: Record<string, string> = {};
  for (const name of Object.keys(headers)) {
    const value = headers[name];
    if (value !== undefined && !SECRET_HEADERS.includes(name)) visible[name] = value;
  }
  return visible;
}
