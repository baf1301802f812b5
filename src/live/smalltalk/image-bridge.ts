// The guest process of a session in an image: the virtual machines of Pharo, Squeak and Cuis cannot use a file descriptor
// as a channel, so this program starts one on a copy of the image, accepts its connection on the loopback interface, and
// passes frames on between it and fd 3. The image proves with a secret that it is the one that was started. Arguments:
// the flavour, the virtual machine, the image.

import { spawn } from "node:child_process";
import { randomBytes, timingSafeEqual } from "node:crypto";
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer, Socket, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { packageFile } from "../../core/files.ts";

type Flavour = "pharo" | "squeak" | "cuis";

const SOURCES = ["guest-json.st", "image-guest.st", "image-evaluate.st", "image-tools.st"];
const PREFIX = "catenary-image-";

const [flavour, program, image] = process.argv.slice(2) as [Flavour, string, string];

/** The folders of bridges that were killed are left over; the number in the name is that of their process. */
function removeAbandoned(): void {
  for (const name of readdirSync(tmpdir())) {
    const [, pid] = new RegExp(`^${PREFIX}(\\d+)-`).exec(name) ?? [];
    if (pid !== undefined && !isRunning(Number(pid))) rmSync(join(tmpdir(), name), { recursive: true, force: true });
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Copies the image and its changes into a private folder. The sources are only read, so they are linked. */
function copyImage(): { readonly folder: string; readonly copy: string } {
  const folder = mkdtempSync(join(tmpdir(), `${PREFIX}${process.pid}-`));
  const copy = join(folder, "session.image");
  copyFileSync(image, copy);
  const changes = image.replace(/\.image$/, ".changes");
  if (existsSync(changes)) copyFileSync(changes, join(folder, "session.changes"));
  const from = dirname(resolve(image));
  for (const name of readdirSync(from).filter((file) => /\.(?:sources|stc)$|^pharo\.version$/.test(file)))
    symlinkSync(join(from, name), join(folder, name));
  return { folder, copy };
}

/** The script that the image reads at its start. It has the secret, so only this user can read it. */
function writeScript(folder: string, port: number, secret: string): string {
  const sources = SOURCES.map((name) => readFileSync(packageFile(`src/live/smalltalk/${name}`), "utf8"));
  const text = `${sources.join("\n")}\nCatenaryGuest port: ${port} token: '${secret}'!\n`;
  const file = join(folder, "guest.st");
  writeFileSync(file, flavour === "cuis" ? text : text.replaceAll("\n", "\r"), { mode: 0o600 });
  return file;
}

function commandLine(copy: string, script: string): readonly string[] {
  if (flavour === "pharo") return ["--headless", copy, "--no-default-preferences", "st", script];
  const headless = ["-vm-display-null", "-vm-sound-null"];
  return flavour === "cuis" ? [...headless, copy, "-s", script] : [...headless, copy, script];
}

const host = new Socket({ fd: 3 });
const secret = randomBytes(24).toString("hex");
removeAbandoned();
const { folder, copy } = copyImage();
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

const server = createServer((socket) => {
  socket.setNoDelay(true);
  let start = Buffer.alloc(0);
  // The first frame is the secret; what follows goes to the host as it is.
  const check = (chunk: Buffer): void => {
    start = Buffer.concat([start, chunk]);
    const expected = Buffer.from(JSON.stringify({ token: secret }));
    const frame = Buffer.concat([Buffer.from(`${expected.length}\n`), expected]);
    if (start.length < frame.length) return;
    socket.off("data", check);
    if (!timingSafeEqual(start.subarray(0, frame.length), frame)) {
      socket.destroy();
      return;
    }
    server.close();
    // The virtual machine has read them by now.
    rmSync(copy, { force: true });
    rmSync(script, { force: true });
    host.write(start.subarray(frame.length));
    socket.pipe(host);
    host.pipe(socket);
    socket.on("close", () => process.exit(1));
  };
  socket.on("data", check);
  socket.on("error", () => undefined);
});
await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
const script = writeScript(folder, (server.address() as AddressInfo).port, secret);

const env = { ...process.env };
if (flavour === "squeak") {
  // The image of Etoys, a Squeak of 2012, writes its keys and its log here.
  for (const name of ["SQUEAK_SECUREDIR", "SQUEAK_USERDIR"]) mkdirSync((env[name] = join(folder, name.toLowerCase())));
}
const vm = spawn(program, commandLine(copy, script), { stdio: ["ignore", "inherit", "inherit"], env });
vm.on("error", (error) => {
  process.stderr.write(`${program} could not be started: ${error.message}\n`);
  process.exit(1);
});
vm.on("exit", (code) => process.exit(code ?? 1));
const end = (): void => {
  vm.kill("SIGKILL");
  process.exit(0);
};
host.on("end", end);
host.on("error", end);
process.on("SIGTERM", end);
