// The table of clients: where their files are on each system, which client a path belongs to, and what is written.

import { expect, it } from "vitest";
import { CLIENTS, clientFilePath, findClientFile, type ClientFile } from "./clients.ts";

function client(name: string): (typeof CLIENTS)[number] {
  const found = CLIENTS.find((one) => one.name === name);
  if (found === undefined) throw new Error(`No client ${name}`);
  return found;
}

const userFile = (name: string): ClientFile => client(name).files[0];

const linux = { platform: "linux", home: "/home/me", env: {} } as const;
const mac = { platform: "darwin", home: "/Users/me", env: { XDG_CONFIG_HOME: "/nowhere" } } as const;
const windows = {
  platform: "win32",
  home: "C:\\Users\\me",
  env: { APPDATA: "C:\\Users\\me\\AppData\\Roaming" },
} as const;

it("the file of a client is where the system keeps such files", () => {
  const file = userFile("claude-desktop");
  expect(clientFilePath(file, linux)).toBe("/home/me/.config/Claude/claude_desktop_config.json");
  expect(clientFilePath(file, { ...linux, env: { XDG_CONFIG_HOME: "/xdg" } })).toBe(
    "/xdg/Claude/claude_desktop_config.json",
  );
  expect(clientFilePath(file, mac)).toBe("/Users/me/Library/Application Support/Claude/claude_desktop_config.json");
  expect(clientFilePath(file, windows)).toBe("C:\\Users\\me\\AppData\\Roaming\\Claude\\claude_desktop_config.json");
  expect(clientFilePath(userFile("codex"), windows)).toBe("C:\\Users\\me\\.codex\\config.toml");
  expect(clientFilePath(userFile("zed"), mac)).toBe("/Users/me/.config/zed/settings.json");
  expect(clientFilePath(userFile("zed"), { ...linux, platform: "freebsd" })).toBe("/home/me/.config/zed/settings.json");
});

it("the file of a client of a project is relative to the project", () => {
  const file = client("vscode").files.find(({ scope }) => scope === "project");
  expect(file && clientFilePath(file, { ...linux, project: "/home/ada/app" })).toBe("/home/ada/app/.vscode/mcp.json");
});

it.each(CLIENTS.flatMap((one) => one.files.map((file) => [one.name, file] as const)))(
  "the file of a client of %s is recognized by its path",
  (name, file) => {
    for (const place of [linux, mac, windows]) {
      const found = findClientFile(clientFilePath(file, { ...place, project: place.home }));
      expect(found?.client.name).toBe(name);
      expect(found?.file.servers).toEqual(file.servers);
    }
  },
);

it.each(["catenary.json", "/home/me/mcp.json", "/home/me/settings.json", "/home/me/config.toml", "/home/x.mcp.json"])(
  "the file of a client is not %s",
  (path) => {
    expect(findClientFile(path)).toBeUndefined();
  },
);

const local = { command: "npx", args: ["-y", "notes"], env: { KEY: "1" } };
const remote = { url: "https://example.com/mcp", headers: { "X-Key": "1" } };

it("an entry is written as the client expects it", () => {
  expect(client("cursor").entry(local)).toEqual(local);
  expect(client("vscode").entry(local)).toEqual({ type: "stdio", ...local });
  expect(client("claude-code").entry(remote)).toEqual({ type: "http", ...remote });
  expect(client("gemini").entry(remote)).toEqual({ httpUrl: remote.url, headers: remote.headers });
  expect(client("windsurf").entry(remote)).toEqual({ serverUrl: remote.url, headers: remote.headers });
  expect(client("codex").entry(remote)).toEqual({ url: remote.url, http_headers: remote.headers });
  expect(client("opencode").entry(local)).toEqual({
    type: "local",
    command: ["npx", "-y", "notes"],
    environment: { KEY: "1" },
    enabled: true,
  });
  expect(client("copilot").entry(local)).toEqual({ type: "local", ...local, tools: ["*"] });
});
