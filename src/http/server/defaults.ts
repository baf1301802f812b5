// The defaults of the options in fields.ts. Separate, so that a small server does not load the descriptions of options.

export const LISTEN_DEFAULTS = { host: "127.0.0.1", port: 3000, path: "/mcp" } as const;

export const LIMIT_DEFAULTS = {
  headerBytes: 16_384,
  headerMs: 10_000,
  bodyMs: 30_000,
  sessions: 10_000,
  sessionIdleMs: 1_800_000,
  sessionDisconnectedMs: 60_000,
  requests: 1_024,
  listens: 10_000,
  keepAliveMs: 15_000,
  replayBytes: 67_108_864,
} as const;
