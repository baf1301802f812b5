// The everything server and client as plain JavaScript, compiled once before the tests: the suite and the gateways
// under test start dozens of them, and compiling at every start would take too long.

import { execFile, type ChildProcess, spawn } from "node:child_process";
import { readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { once } from "node:events";
import { createInterface } from "node:readline";

const execute = promisify(execFile);

const HERE = fileURLToPath(new URL(".", import.meta.url));
const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** The outDir of tsconfig.json. */
const COMPILED = join(ROOT, "node_modules/.cache/catenary-everything");

export const EVERYTHING_SERVER: string = join(COMPILED, "test/conformance/everything-server.js");
export const EVERYTHING_CLIENT: string = join(COMPILED, "test/conformance/everything-client.js");

export async function compileEverything(): Promise<void> {
  await execute(process.execPath, [join(ROOT, "node_modules/typescript/bin/tsc"), "-p", HERE]);
  // Imports of "catenary" lead to the build, as they do in the package itself.
  const { name, type, exports } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as Record<
    string,
    unknown
  >;
  await writeFile(join(COMPILED, "package.json"), JSON.stringify({ name, type, exports }));
  await rm(join(COMPILED, "dist"), { force: true });
  await symlink(join(ROOT, "dist"), join(COMPILED, "dist"));
}

// The everything server in a process of its own, as the suite and others' clients meet it: started on a port that
// the machine chooses, and ended by a signal. What it writes on stderr after its address is kept.


/** After this a server that was told to end is killed. */
const END_MS = 5_000;

export interface EverythingProcess {
  readonly url: string;
  /** Lines of stderr, but for the one with the address. */
  readonly noise: readonly string[];
  /** Tells it to end, and how it did: its exit code, or the signal that killed it. */
  end(): Promise<number | NodeJS.Signals | null>;
}

export async function startEverything(...args: string[]): Promise<EverythingProcess> {
  const child = spawn(process.execPath, [EVERYTHING_SERVER, "--port", "0", ...args], {
    stdio: ["ignore", "inherit", "pipe"],
  });
  const noise: string[] = [];
  try {
    const url = await addressOf(child, noise);
    return { url, noise, end: () => ended(child) };
  } catch (error) {
    child.kill("SIGKILL");
    throw error;
  }
}

/** What came before the address, or instead of it, is noise. */
function addressOf(child: ChildProcess, noise: string[]): Promise<string> {
  const { stderr } = child;
  if (stderr === null) throw new Error("The server has no stderr");
  return new Promise((resolve, reject) => {
    createInterface(stderr).on("line", (line) => {
      const [address] = /http:\S+/.exec(line) ?? [];
      if (address === undefined) noise.push(line);
      else resolve(address);
    });
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`The server ended with ${code}:\n${noise.join("\n")}`)));
  });
}

async function ended(child: ChildProcess): Promise<number | NodeJS.Signals | null> {
  if (child.exitCode === null && child.signalCode === null) {
    const exit = once(child, "exit");
    child.kill("SIGTERM");
    const last = setTimeout(() => child.kill("SIGKILL"), END_MS);
    await exit;
    clearTimeout(last);
  }
  return child.exitCode ?? child.signalCode;
}
