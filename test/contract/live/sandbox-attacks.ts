// What code in a sandbox must not reach: listeners, files and a process of the host that the attacks go for, how each
// language starts a program, and the attacks themselves. An attack that succeeds prints REACHED.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo, type Server } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** Connects to a socket of the host, and prints REACHED if it answers. */
const CONNECT = `import { connect } from "node:net";
const [kind, where, port] = process.argv.slice(2);
const target = kind === "tcp" ? { host: where, port: Number(port) } : { path: kind === "abstract" ? "\\0" + where : where };
const socket = connect(target);
socket.on("data", (data) => { console.log("REACHED " + data); process.exit(0); });
socket.setTimeout(5000, () => { console.log("refused by silence"); process.exit(0); });
socket.on("error", (error) => { console.log("refused " + error.code); process.exit(0); });
`;

/** Things of the host, which a test may find changed. */
export class Targets {
  /** A folder of the host that no session sees, with a secret file and a socket. */
  readonly folder: string;
  /** The program that connects, in a folder of its own. */
  readonly program: string;
  readonly secret = `secret-${process.pid}-${Math.random().toString(36).slice(2)}`;
  /** How many connections from anywhere the listeners have got. */
  reached = 0;
  victim = 0;
  readonly #servers: Server[] = [];
  #endVictim: () => Promise<unknown> = async () => undefined;
  #commands: Readonly<Record<string, string>> = {};

  private constructor(folder: string, programs: string) {
    this.folder = folder;
    this.program = join(programs, "connect.mjs");
  }

  static async create(): Promise<Targets> {
    const create = (name: string): Promise<string> => mkdtemp(join(tmpdir(), `sandbox-${name}-`));
    const targets = new Targets(await create("targets"), await create("programs"));
    await targets.#open();
    return targets;
  }

  /** The arguments of the program that connects to a listener. */
  get listeners(): Readonly<Record<string, string>> {
    return this.#commands;
  }

  get secretFile(): string {
    return join(this.folder, "secret.txt");
  }

  /** A shell command that connects to a listener. */
  connect(name: string): string {
    return `'${process.execPath}' '${this.program}' ${this.#commands[name]}`;
  }

  isVictimAlive(): boolean {
    try {
      return process.kill(this.victim, 0);
    } catch {
      return false;
    }
  }

  async close(): Promise<void> {
    await this.#endVictim();
    await Promise.all(this.#servers.map((server) => new Promise((done) => server.close(done))));
    for (const folder of [this.folder, dirname(this.program)]) await rm(folder, { recursive: true, force: true });
  }

  async #open(): Promise<void> {
    await writeFile(this.program, CONNECT);
    await writeFile(this.secretFile, this.secret);
    const path = join(this.folder, "listener.sock");
    const abstract = `catenary-${this.secret}`;
    const four = await this.#listen({ host: "127.0.0.1", port: 0 });
    const six = await this.#listen({ host: "::1", port: 0 }).catch(() => undefined);
    await this.#listen({ path });
    await chmod(path, 0o777);
    await this.#listen({ path: `\0${abstract}` });
    const port = (server: Server): number => (server.address() as AddressInfo).port;
    this.#commands = {
      IPv4: `tcp 127.0.0.1 ${port(four)}`,
      // Some machines have no IPv6 at all.
      ...(six && { IPv6: `tcp ::1 ${port(six)}` }),
      "a unix socket in a folder": `unix ${path}`,
      "an abstract unix socket": `abstract ${abstract}`,
    };
    const code = "process.stdout.write('on'); setInterval(() => undefined, 1e6)";
    const child = spawn(process.execPath, ["-e", code, this.secret], { env: { SECRET: this.secret } });
    await once(child.stdout, "data");
    this.victim = child.pid ?? 0;
    this.#endVictim = async () => child.kill("SIGKILL") && (await once(child, "exit"));
  }

  async #listen(where: object): Promise<Server> {
    const server = createServer((socket) => {
      this.reached += 1;
      socket.on("error", () => undefined);
      socket.end("hello");
    });
    server.listen(where);
    await once(server, "listening");
    this.#servers.push(server);
    return server;
  }
}

/** How a language does what the attacks need. All results are strings. */
export interface Snippets {
  /** Runs a command of the shell and returns what it prints. */
  shell(command: string): string;
  /** Reads a file by the language's own means. */
  read(path: string): string;
  /** Writes REACHED to a file by the language's own means. */
  write(path: string): string;
  /** Attacks by the language's own means. Each returns REACHED if it succeeds. */
  own(targets: Targets): Readonly<Record<string, string>>;
}

const jsShell = (command: string): string =>
  `(() => { const done = process.getBuiltinModule("child_process").spawnSync("/bin/sh", ["-c", ${JSON.stringify(command)}], { encoding: "utf8" }); return String(done.stdout) + String(done.stderr) + String(done.error ?? ""); })()`;
const jsRead = (path: string): string => `process.getBuiltinModule("fs").readFileSync(${JSON.stringify(path)}, "utf8")`;
const jsWrite = (path: string): string =>
  `process.getBuiltinModule("fs").writeFileSync(${JSON.stringify(path)}, "REACHED")`;
const jsKill = (pid: number): string =>
  `(() => { try { process.kill(${pid}, 0); return "REACHED"; } catch (error) { return error.code; } })()`;
const jsConnect = (targets: Targets): string => {
  const [, port] = /(\d+)$/.exec(targets.listeners["IPv4"] ?? "") ?? [];
  return `new Promise((done) => process.getBuiltinModule("net").connect(${port}, "127.0.0.1").on("data", () => done("REACHED")).on("error", (error) => done(error.code)))`;
};
/** Amber evaluates JavaScript in a string. */
const inAmber = (code: string): string => `Compiler new eval: '${code.replaceAll("'", "''")}'`;

const lispString = (text: string): string => `"${text.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;
const gstString = (text: string): string => `'${text.replaceAll("'", "''")}'`;

export const SNIPPETS: Readonly<Record<"js" | "lisp" | "amber" | "gst", Snippets>> = {
  js: {
    shell: jsShell,
    read: jsRead,
    write: jsWrite,
    own: (targets) => ({
      "a TCP socket": `await ${jsConnect(targets)}`,
      "a signal": jsKill(targets.victim),
      "the memory of a process": `${jsRead(`/proc/${targets.victim}/mem`)}; "REACHED"`,
    }),
  },
  amber: {
    shell: (command) => inAmber(jsShell(command)),
    read: (path) => inAmber(jsRead(path)),
    write: (path) => inAmber(jsWrite(path)),
    own: (targets) => ({ "a signal": inAmber(jsKill(targets.victim)) }),
  },
  lisp: {
    shell: (command) =>
      `(with-output-to-string (out) (sb-ext:run-program "/bin/sh" (list "-c" ${lispString(command)}) :output out :error out))`,
    read: (path) => `(with-open-file (in ${lispString(path)}) (read-line in))`,
    write: (path) =>
      `(with-open-file (out ${lispString(path)} :direction :output :if-exists :supersede) (write-string "REACHED" out))`,
    own: (targets) => {
      const [, port] = /(\d+)$/.exec(targets.listeners["IPv4"] ?? "") ?? [];
      const call = (name: string, types: string, values: string): string =>
        `(if (minusp (sb-alien:alien-funcall (sb-alien:extern-alien "${name}" (function sb-alien:long ${types})) ${values})) "refused" "REACHED")`;
      return {
        "a TCP socket": `(progn (require :sb-bsd-sockets) (handler-case (progn (funcall (intern "SOCKET-CONNECT" "SB-BSD-SOCKETS") (make-instance (intern "INET-SOCKET" "SB-BSD-SOCKETS") :type :stream :protocol :tcp) (vector 127 0 0 1) ${port}) "REACHED") (error () "refused")))`,
        "a signal": call("kill", "sb-alien:int sb-alien:int", `${targets.victim} 0`),
        // PTRACE_ATTACH
        ptrace: call("ptrace", "sb-alien:long sb-alien:int sb-alien:long sb-alien:long", `16 ${targets.victim} 0 0`),
        "the memory of a process": `(with-open-file (in "/proc/${targets.victim}/mem") "REACHED")`,
      };
    },
  },
  gst: {
    shell: (command) => `(FileStream popen: ${gstString(`( ${command} ) 2>&1`)} dir: #read) contents`,
    read: (path) => `(FileStream open: ${gstString(path)} mode: 'r') contents`,
    write: (path) =>
      `| out | out := FileStream open: ${gstString(path)} mode: 'w'. out nextPutAll: 'REACHED'; close. 'written'`,
    own: () => ({}),
  },
};

/** A command of the shell, and what it must not print, or must. */
export interface Attack {
  readonly name: string;
  command(targets: Targets): string;
  /** Must not be in the output; REACHED by default. */
  readonly not?: (targets: Targets) => RegExp;
  readonly shows?: RegExp;
}

const REACHED = "echo REACHED";

export const ATTACKS: readonly Attack[] = [
  ...["/usr/x", "/etc/x", "/x", "/dev/x", "/proc/sys/kernel/hostname", "/proc/sys/vm/swappiness"].map((path) => ({
    name: `writing to ${path}`,
    command: () => `sh -c 'echo x > ${path}' && ${REACHED}`,
  })),
  {
    name: "writing to a folder of the host",
    command: ({ folder }) => `sh -c 'echo x > ${folder}/written' && ${REACHED}`,
  },
  {
    name: "reading a file of the host",
    command: ({ secretFile }) => `cat ${secretFile}`,
    not: ({ secret }) => new RegExp(secret),
  },
  { name: "reading /etc/shadow", command: () => `cat /etc/shadow /etc/gshadow && ${REACHED}` },
  { name: "the names of other users", command: () => "wc -l < /etc/passwd", shows: /^1$/m },
  {
    name: "the environment of all processes",
    command: () => "cat /proc/*/environ /proc/*/task/*/environ; env",
    not: ({ secret }) => new RegExp(secret),
  },
  {
    name: "the command lines of all processes",
    command: () => "cat /proc/*/cmdline",
    not: ({ secret }) => new RegExp(secret),
  },
  { name: "the processes of the host in /proc", command: ({ victim }) => `ls /proc/${victim}/root && ${REACHED}` },
  {
    name: "the files of the host through process 1",
    command: ({ folder }) => `ls /proc/1/root${folder} /proc/1/cwd${folder} && ${REACHED}`,
  },
  { name: "a signal to a process of the host", command: ({ victim }) => `kill -9 ${victim} && ${REACHED}` },
  { name: "the program su", command: () => `su root -c '${REACHED}' < /dev/null` },
  {
    name: "capabilities and new privileges",
    command: () => "grep -E '^(Cap|NoNewPrivs)' /proc/self/status | sort -u",
    not: () => /Cap\w+:\s+0*[1-9a-f]/,
    shows: /NoNewPrivs:\s+1/,
  },
  { name: "a namespace in which it is root", command: () => `unshare --user --map-root-user true && ${REACHED}` },
  { name: "mounting", command: () => `mount -t tmpfs none /mnt && ${REACHED}; mount -o remount,rw / && ${REACHED}` },
  {
    name: "devices",
    command: () => "find /dev -type b | sed s/^/REACHED/; ls /dev/kvm /dev/mem /dev/fuse /dev/vda && echo REACHED",
  },
  { name: "sockets of the system", command: () => "ls /run /var/run /tmp/.X11-unix && echo REACHED" },
  { name: "the name of the host", command: () => "uname -n", shows: /^sandbox$/m },
  { name: "network interfaces", command: () => "tail -n +3 /proc/net/dev | grep -v ' lo:' | sed s/^/REACHED/" },
];

export async function isFile(path: string): Promise<boolean> {
  return readFile(path).then(
    () => true,
    () => false,
  );
}
