// Installs GNU Smalltalk and Debian's Squeak with apt-get, if the tests run as root on Debian. GNU Smalltalk was last in
// Debian 11, so the machine's own list of sources is copied with that release's name. On x86-64 the i386 build is
// unpacked into a folder of its own, because the amd64 build multiplies wrongly. Where something cannot be installed,
// the tests that need it are skipped with a message.

import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { outputOf, succeeds } from "../blocking-program.ts";
import { aptGet, mayInstallDebianPackages } from "../debian.ts";

/** The last release of Debian that has GNU Smalltalk. */
const GST_RELEASE = "bullseye";

/** Where the i386 build is unpacked on x86-64. */
const I386 = fileURLToPath(new URL("../../../node_modules/.cache/catenary-gst-i386", import.meta.url));
const I386_PROGRAM = join(I386, "gst");
/** The program with the libraries that it needs; the kernel sources come from gnu-smalltalk-common. */
const I386_PACKAGES = [
  ...["gnu-smalltalk", "libgst7", "libffi7", "libsigsegv2", "libltdl7", "libreadline8", "libtinfo6"],
  ...["libgmp10", "libgcc-s1", "libcrypt1", "libc6"],
];

const SQUEAK_FOLDER = "/usr/lib/squeak";
/** The image of Etoys, a Squeak of 2012. */
export const ETOYS_IMAGE = "/usr/share/etoys/etoys.image";

function runs(program: string): boolean {
  return succeeds(program, ["--version"]);
}

let foundGst: string | undefined;

/** The program of GNU Smalltalk that the tests use; undefined if there is none. */
export function gstProgram(): string | undefined {
  foundGst ??= [I386_PROGRAM, "gst"].find(runs);
  return foundGst;
}

/** Debian's Squeak VM; undefined if it or the image is missing. */
export function squeakProgram(): string | undefined {
  if (!existsSync(SQUEAK_FOLDER) || !existsSync(ETOYS_IMAGE)) return undefined;
  return readdirSync(SQUEAK_FOLDER)
    .map((version) => join(SQUEAK_FOLDER, version, "squeakvm"))
    .find((file) => existsSync(file));
}

/** Returns whether GNU Smalltalk is installed afterwards. */
export async function installGst(): Promise<boolean> {
  if (gstProgram() === "gst" && process.arch === "x64" && mayInstall())
    await withSources(GST_RELEASE, "main", unpackI386);
  if (gstProgram() !== undefined) return true;
  if (mayInstall()) {
    // Its packages are found in the old release, and what they need in the machine's own.
    await withSources(GST_RELEASE, "main", async (apt) => {
      await apt("update");
      await apt("install", "--no-install-recommends", "gnu-smalltalk", "gnu-smalltalk-common");
    });
    if (process.arch === "x64") await withSources(GST_RELEASE, "main", unpackI386);
  }
  foundGst = undefined;
  return gstProgram() !== undefined;
}

/** Returns whether Debian's Squeak and Etoys are installed afterwards. Etoys is in Debian's section non-free. */
export async function installSqueak(): Promise<boolean> {
  if (squeakProgram() === undefined && mayInstall()) {
    await withSources(undefined, "main non-free", async (apt) => {
      await apt("update");
      await apt("install", "--no-install-recommends", "squeak-vm", "etoys");
    });
  }
  return squeakProgram() !== undefined;
}

function osRelease(field: string): string {
  const text = existsSync("/etc/os-release") ? readFileSync("/etc/os-release", "utf8") : "";
  return new RegExp(`^${field}="?([^"\n]*)`, "m").exec(text)?.[1] ?? "";
}

function mayInstall(): boolean {
  return mayInstallDebianPackages() && osRelease("ID") === "debian";
}

type Apt = (...args: readonly string[]) => Promise<void>;

/** Calls `work` with an apt-get that also knows the given release and sections. Errors end the work silently. */
async function withSources(
  release: string | undefined,
  sections: string,
  work: (apt: Apt, folder: string) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "catenary-apt-"));
  // apt-get downloads as another user, who must be able to read this folder.
  chmodSync(folder, 0o755);
  try {
    mkdirSync(join(folder, "lists/partial"), { recursive: true });
    mkdirSync(join(folder, "parts"));
    const own = osRelease("VERSION_CODENAME");
    for (const path of sourceLists()) {
      const text = readFileSync(path, "utf8");
      const name = path.replaceAll("/", "_");
      writeFileSync(join(folder, "parts", name), release === undefined ? withSections(text, own, sections) : text);
      if (release !== undefined) writeFileSync(join(folder, "parts", `old${name}`), ofRelease(text, own, release));
    }
    const lists = [`Dir::Etc::sourceparts=${folder}/parts`, `Dir::State::Lists=${folder}/lists`];
    const options = ["Dir::Etc::sourcelist=/dev/null", ...lists].flatMap((option) => ["-o", option]);
    await work((...args) => aptGet([...options, ...args], folder), folder);
  } catch {
    // The caller finds out that the program is missing.
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function sourceLists(): readonly string[] {
  const folder = "/etc/apt/sources.list.d";
  const parts = existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
  return ["/etc/apt/sources.list", ...parts].filter((path) => /\.(?:list|sources)$/.test(path) && existsSync(path));
}

/** The entries of the main archive, both for files of lines and for files of stanzas. */
function mainEntries(text: string, own: string): readonly string[] {
  const entries = text.includes("Suites:") ? text.split(/\n\s*\n/) : text.split("\n");
  return entries.filter((entry) => new RegExp(`\\b${own}(?![-\\w])`).test(entry.replace(/^#.*$/gm, "")));
}

/** The same archive with the name of another release. Its updates are left out: an old release has none to offer. */
function ofRelease(text: string, own: string, release: string): string {
  const other = (entry: string): string =>
    entry.replace(new RegExp(` ${own}-\\S+`, "g"), "").replaceAll(new RegExp(`\\b${own}\\b`, "g"), release);
  return `${mainEntries(text, own).map(other).join("\n\n")}\n`;
}

function withSections(text: string, own: string, sections: string): string {
  const other = (entry: string): string =>
    entry.replace(/^Components:.*/m, `Components: ${sections}`).replace(/( \S+) main\b.*/, `$1 ${sections}`);
  return `${mainEntries(text, own).map(other).join("\n\n")}\n`;
}

/** Unpacks the i386 build, and writes a script that runs it. */
async function unpackI386(apt: Apt, folder: string): Promise<void> {
  const i386 = ["-o", "APT::Architecture=i386", "-o", "APT::Architectures=i386", "-o", "Dir::State::status=/dev/null"];
  for (const name of readdirSync(join(folder, "parts")))
    if (!name.startsWith("old")) rmSync(join(folder, "parts", name));
  await apt(...i386, "update");
  await apt(...i386, "download", ...I386_PACKAGES);
  const root = join(I386, "root");
  rmSync(root, { recursive: true, force: true });
  mkdirSync(root, { recursive: true });
  for (const name of readdirSync(folder).filter((file) => file.endsWith(".deb")))
    outputOf("dpkg", ["-x", join(folder, name), root]);
  const libraries = ["lib/i386-linux-gnu", "usr/lib/i386-linux-gnu", "usr/lib"].map((name) => join(root, name));
  const script = [
    "#!/bin/sh",
    // The program accepts only one image, and a session may start from its own.
    `case " $* " in *" --image "*) ;; *) set -- --image "${root}/usr/lib/gnu-smalltalk/gst.im" "$@" ;; esac`,
    `exec "${libraries[0]}/ld-linux.so.2" --library-path "${libraries.join(":")}" "${root}/usr/bin/gst" \\`,
    '  --kernel-directory /usr/share/gnu-smalltalk/kernel "$@"',
    "",
  ];
  writeFileSync(I386_PROGRAM, script.join("\n"), { mode: 0o755 });
}
