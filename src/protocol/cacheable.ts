// Requests whose results say how long they may be used again, and by whom. A fact of the newest revision that
// fronts, backs and caches share.

export const CACHEABLE: ReadonlySet<string> = new Set([
  "server/discover",
  "tools/list",
  "prompts/list",
  "resources/list",
  "resources/templates/list",
  "resources/read",
]);
