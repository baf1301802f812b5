// Plays the Dockerfile without Docker: each stage is a folder, each RUN a command in it, and the command of the image
// serves a config, answers the health check and ends on SIGTERM. Root, users and the base image are not played.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterAll, expect, it } from "vitest";
import { outputOf, succeeds } from "../support/blocking-program.ts";
import { unreachableRegistry } from "../support/install-packages.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const STEP_MS = 300_000;
const SECRETS = [".env", "catenary.json", "node_modules", ".git", "id_rsa", "docs", "test"];

interface Step {
  readonly name: string;
  readonly text: string;
}

const steps = readFileSync(join(ROOT, "Dockerfile"), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"))
  .map((line): Step => ({ name: line.slice(0, line.indexOf(" ")), text: line.slice(line.indexOf(" ") + 1) }));
const ignored = readFileSync(join(ROOT, ".dockerignore"), "utf8").split("\n");

const scratch = realpathSync(mkdtempSync(join(tmpdir(), "catenary-docker-")));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

/** The paths that a COPY from the checkout takes. */
function sources({ text }: Step): string[] {
  return text.startsWith("--from") ? [] : text.split(" ").slice(0, -1);
}

/** The words of an instruction in its exec form. */
function words(name: string): string[] {
  const text = steps.find((step) => step.name === name)?.text.replace(/^CMD /, "") ?? "[]";
  return JSON.parse(text) as string[];
}

/** A path or command of the image, in the scratch folder. */
function played(text: string, port = 0): string {
  return text
    .replace(/(?<![\w.])\/(?=(?:opt|build|home|config)\b)/g, `${scratch}/`)
    .replaceAll("0.0.0.0:3000", `127.0.0.1:${port}`)
    .replaceAll("127.0.0.1:3000", `127.0.0.1:${port}`);
}

const env = {
  ...process.env,
  npm_config_prefix: join(scratch, "usr"),
  npm_config_prefer_offline: "true",
  npm_config_fetch_retries: "1",
  PATH: `${join(scratch, "usr/bin")}:${process.env["PATH"]}`,
  XDG_STATE_HOME: join(scratch, "home/node/.local/state"),
};

/** Plays the steps that make the image. Returns why npm cannot install. */
function build(): string | undefined {
  let folder = scratch;
  for (const step of steps) {
    if (step.name === "WORKDIR") {
      folder = played(step.text);
      mkdirSync(folder, { recursive: true });
    } else if (step.name === "COPY" && step.text.startsWith("--from")) {
      const [, from = "", to = ""] = step.text.split(" ");
      cpSync(played(from), join(played(to), basename(from)));
    } else if (step.name === "COPY") {
      for (const path of sources(step)) cpSync(join(ROOT, path), join(folder, path), { recursive: true });
    } else if (step.name === "RUN") {
      try {
        outputOf("sh", ["-ec", played(step.text)], { cwd: folder, env, timeout: STEP_MS });
      } catch (error) {
        return unreachableRegistry(error);
      }
    }
  }
  return undefined;
}

it("copies only files that exist and that .dockerignore lets through, and no others are let through", () => {
  const copied = steps.filter(({ name }) => name === "COPY").flatMap(sources);
  expect(copied.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  expect(ignored).toContain("*");
  expect(
    ignored
      .filter((line) => line.startsWith("!"))
      .map((line) => line.slice(1))
      .toSorted(),
  ).toEqual(copied.toSorted());
  expect(SECRETS.filter((path) => ignored.includes(`!${path}`))).toEqual([]);
  expect(ignored).toEqual(expect.arrayContaining(["**/node_modules", "**/.env*"]));
});

it("has a Node that the package supports, does not run as root, and knows each instruction", () => {
  const images = steps
    .filter(({ name }) => name === "FROM")
    .map(({ text }) => Number(/^node:(\d+)-slim\b/.exec(text)?.[1]));
  expect(images.filter((major) => !(major >= 22 && major % 2 === 0))).toEqual([]);
  expect(steps.find(({ name }) => name === "USER")?.text).toBe("node");
  const known = "FROM WORKDIR COPY RUN USER EXPOSE STOPSIGNAL HEALTHCHECK ENTRYPOINT CMD".split(" ");
  expect(steps.filter(({ name }) => !known.includes(name))).toEqual([]);
});

it(
  "builds a gateway that serves a mounted config, is healthy, and ends on SIGTERM",
  async ({ skip }) => {
    const reason = build();
    if (reason !== undefined && process.env["CI"] === "true") throw new Error(reason);
    if (reason !== undefined) return skip(reason);
    mkdirSync(join(scratch, "config"));
    const config = { mcpServers: { js: { live: "js" } }, listen: { token: "${TOKEN}" } };
    writeFileSync(join(scratch, "config/catenary.json"), JSON.stringify(config));
    const port = await freePort();
    const command = [...words("ENTRYPOINT"), ...words("CMD"), "--json"].map((word) => played(word, port));
    const cwd = join(scratch, "home/node");
    const gateway = spawn(command[0] ?? "", command.slice(1), {
      cwd,
      env: { ...env, TOKEN: "secret-of-the-test" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    try {
      const exited = once(gateway, "exit");
      const [line] = (await Promise.race([once(createInterface(gateway.stdout), "line"), exited])) as [unknown];
      expect(line).toContain(`127.0.0.1:${port}`);
      const [program = "", ...args] = words("HEALTHCHECK").map((word) => played(word, port));
      outputOf(program, args);
      expect((await fetch(`http://127.0.0.1:${port}/mcp`, { method: "POST", body: "{}" })).status).toBe(401);
      gateway.kill("SIGTERM");
      expect(await exited).toEqual([0, null]);
      expect(succeeds(program, args)).toBe(false);
    } finally {
      gateway.kill("SIGKILL");
    }
  },
  2 * STEP_MS,
);

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
