// Valid configs for several tests: files of other clients, and one with every key. Invalid ones are in server-mistakes.ts and setting-mistakes.ts.

export interface GoodSample {
  readonly name: string;
  /** Relative to a temporary folder. */
  readonly path?: string;
  readonly text: string;
  readonly upstreams: readonly string[];
  /** The messages of its warnings; none by default. */
  readonly warnings?: readonly string[];
}

/** The environment for the samples; no message may show any of these values. */
export const ENVIRONMENT: Readonly<Record<string, string>> = {
  API_KEY: "s3cret-of-the-api",
  TOKEN: "s3cret.token",
  PORT: "4000",
  NOT_A_URL: "s3cret-host",
  EMPTY: "",
};

export const GOOD: readonly GoodSample[] = [
  {
    name: "Claude Desktop",
    text: `{
  "globalShortcut": "Ctrl+Space",
  "mcpServers": {
    "filesystem": {
      "command": "npx",
      "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"],
      "env": { "DEBUG": "1" }
    },
    "memory": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"] }
  }
}`,
    upstreams: ["filesystem", "memory"],
  },
  {
    name: "Claude Code",
    path: ".mcp.json",
    text: `{ "mcpServers": {
  "api": { "type": "http", "url": "https://api.example.com/mcp", "headers": { "Authorization": "Bearer \${API_KEY}" } },
  "old": { "type": "sse", "url": "\${BASE:-https://api.example.com}/sse" },
  "mine": { "type": "http", "url": "https://mcp.example.com/mcp", "oauth": { "clientId": "one", "callbackPort": 8080 } }
} }`,
    upstreams: ["api", "old", "mine"],
  },
  {
    name: "Cursor",
    path: ".cursor/mcp.json",
    text: `{
  "mcpServers": {
    "local": { "command": "node", "args": ["\${workspaceFolder}/server.mjs"], "env": { "KEY": "\${env:API_KEY}" } },
    "remote": { "url": "http://localhost:3000/mcp", "headers": { "X-Key": "\${env:API_KEY}" } },
  },
}`,
    upstreams: ["local", "remote"],
  },
  {
    name: "VS Code",
    path: ".vscode/mcp.json",
    text: `{
  // asked for once
  "inputs": [
    { "type": "promptString", "id": "api-key", "description": "The key", "password": true },
    { "type": "pickString", "id": "where", "options": ["eu", { "label": "America", "value": "us" }], "default": "eu" },
    { "type": "command", "id": "unused", "command": "extension.find" }
  ],
  "servers": {
    "files": {
      "type": "stdio", "command": "npx", "args": ["-y", "files", "\${input:where}"],
      "env": { "API_KEY": "\${input:api-key}", "RETRIES": 3 },
      "envFile": "\${workspaceFolder}/.env",
      "dev": { "watch": "src/**" }
    },
    "web": { "type": "http", "url": "https://\${input:where}.example.com/mcp", "gallery": true },
  },
}`,
    upstreams: ["files", "web"],
  },
  {
    name: "Cline",
    text: `{ "mcpServers": {
  "a": { "command": "uvx", "args": ["a"], "disabled": false, "autoApprove": ["x"], "alwaysAllow": [], "timeout": 60 },
  "b": { "command": "uvx", "disabled": true, "env": { "K": "\${NOT_SET_ANYWHERE}" } },
  "c": { "url": "https://example.com/mcp", "type": "streamableHttp", "headers": {}, "icon": "x.png" }
} }`,
    upstreams: ["a", "c"],
    warnings: ["mcpServers.a.timeout: read as 60 seconds"],
  },
  {
    name: "everything",
    text: `\uFEFF{
  "$schema": "./schema.json",
  "name": "office",
  "instructions": "Notes and \${EMPTY:-more}; a literal $\${VAR}.",
  "names": "always",
  "mcpServers": {
    "notes": {
      "command": "./bin/notes", "args": [], "env": {}, "cwd": ".", "transport": "stdio", "inheritEnv": ["AWS_*"],
      "share": "per-caller", "timeoutMs": 1000, "maxTimeoutMs": 2000, "startTimeoutMs": 5000, "idleMs": 0,
      "maxSessions": 4, "remember": false, "restart": { "maxFailures": 3, "windowMs": 60000, "firstMs": 100, "maxMs": 1000 },
      "use": [{ "use": "./mine.mjs", "options": { "key": "\${API_KEY}" }, "name": "own" }]
    },
    "mine": { "module": "./server.mjs", "share": "\${SHARE:-shared}", "names": "when-needed", "prefix": "m" }
  },
  "servers": { "web": { "url": "https://example.com/mcp", "timeoutMs": "\${WAIT:-3000}" } },
  "inputs": [],
  "chain": ["log", { "log": {} }, { "timeout": 3000 }, { "rate-limit": { "calls": 100, "per": "minute" } }],
  "listen": {
    "host": "127.0.0.1", "port": "\${PORT}", "path": "/mcp",
    "allowedHosts": ["notes.example.com"], "allowedOrigins": ["https://app.example.com"], "token": "\${TOKEN}"
  },
  "limits": { "messageBytes": 1000000, "sessions": 10 },
  "compat": "chain",
  "code": {
    "language": "js", "include": ["notes_*"], "confirm": "destructive",
    "maxCalls": 10, "maxParallel": "\${PARALLEL:-2}", "maxResultBytes": 1000,
    "timeoutMs": 5000, "memoryMb": 256, "maxSessions": 3, "idleMs": 1000, "env": {}, "inheritEnv": false, "cwd": "."
  }
}`,
    upstreams: ["notes", "mine", "web"],
  },
  {
    name: "code mode in one line",
    text: '{"mcpServers": {"a": {"command": "x"}}, "code": true}',
    upstreams: ["a"],
  },
  {
    name: "profiles and callers",
    text: `{
  "mcpServers": { "notes": { "command": "x" }, "mail": { "command": "x" }, "old": { "command": "x", "disabled": true } },
  "profiles": {
    "work": { "servers": ["notes", "old"], "tools": { "include": ["search_*"], "exclude": ["notes_delete"] } },
    "all": {}, "texts": { "prompts": { "include": [] }, "resources": { "exclude": ["file:///*"] } }
  },
  "callers": { "ada": { "token": "\${TOKEN}", "profile": "work" }, "bob@example.com": { "token": "bob-key" } }
}`,
    upstreams: ["notes", "mail"],
  },
  {
    name: "live sessions",
    text: `{
  "mcpServers": {
    "js": { "live": "javascript", "permission": true, "use": ["log"] },
    "lisp": {
      "live": "\${TONGUE:-lisp}", "program": "sbcl", "cwd": ".", "env": { "KEY": "\${API_KEY}" }, "timeoutMs": 60000,
      "memoryMb": "\${MEGABYTES:-1024}", "outputChars": 5000, "printLength": 20, "printDepth": 4, "maxSessions": 3,
      "idleMs": 0
    }
  }
}`,
    upstreams: ["js", "lisp"],
  },
  {
    name: "programs",
    text: `{
  "mcpServers": {
    "dev": { "programs": ["git"], "use": ["log"] },
    "more": {
      "programs": ["git", "\${LISTER:-ls}"], "descriptions": { "git": "Runs git" }, "okExitCodes": { "git": [1, 128] }, "include": ["git log*", "ls*"],
      "exclude": ["git log --output*"], "extraOptions": false, "timeoutMs": 60000, "maxOutputBytes": 5000,
      "cwd": ".", "env": { "KEY": "\${API_KEY}" }, "inheritEnv": ["GIT_*"]
    }
  }
}`,
    upstreams: ["dev", "more"],
  },
  {
    name: "APIs",
    text: `{
  "mcpServers": {
    "remote": { "openapi": "https://example.com/openapi.json" },
    "shop": {
      "openapi": "https://example.com/openapi.json", "baseUrl": "https://shop.example.com/v1",
      "include": ["GET *", "tag:store"], "exclude": ["GET /internal/*"], "headers": { "X-Key": "\${API_KEY}" },
      "auth": { "token": "\${TOKEN}" }, "timeoutMs": 5000, "maxResponseBytes": 10000, "outputSchemas": true
    }
  }
}`,
    upstreams: ["remote", "shop"],
  },
];
