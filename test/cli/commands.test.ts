// Each command as a process, toward a command and toward a URL: what it prints where, and what its exit code says.

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { REVISIONS } from "../../src/protocol/revisions/index.ts";
import { atDesk, catenary, DESK_COMMAND, deskOverHttp } from "./stage.ts";

let folder = "";
let desk: Awaited<ReturnType<typeof deskOverHttp>>;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "catenary-cli-"));
  desk = await deskOverHttp();
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await desk.close();
});

/** The same line toward both kinds of targets. */
const TARGETS = [
  ["a command", (name: string, ...rest: string[]) => atDesk([name, ...rest])],
  ["a URL", (name: string, ...rest: string[]) => catenary([name, desk.url, ...rest])],
] as const;

describe.each(TARGETS)("toward %s", (_kind, run) => {
  it("tools are listed, shown in full, and given as JSON", async () => {
    const listed = await run("tools");
    expect(listed).toMatchObject({ code: 0, err: "" });
    expect(listed.out.split("\n").slice(0, 3)).toEqual([
      "echo         Give the text back",
      "             text=string [times=integer]",
      "arguments    Give the arguments back",
    ]);
    expect(listed.out).not.toContain("\u001b");
    const one = await run("tools", "echo");
    expect(one.out).toContain("  text   string   required; What to say\n  times  integer\n");
    const json = await run("tools", "--json");
    const { tools } = JSON.parse(json.out) as { tools: { name: string }[] };
    expect(tools[0]).toMatchObject({ name: "echo", inputSchema: { type: "object" } });
    expect(json.out.trim()).not.toContain("\n");
    expect(JSON.parse((await run("tools", "echo", "--json")).out)).toEqual(tools[0]);
  });

  it("resources and prompts are listed", async () => {
    const resources = await run("resources");
    expect(resources).toMatchObject({ code: 0, err: "" });
    expect(resources.out).toBe(
      [
        "desk://note   A note",
        "              note, text/plain",
        "desk://raw    raw",
        "desk://bytes  bytes, image/png, 70 bytes",
        "",
        "Templates:",
        "desk://day/{day}  A day",
        "                  day",
        "",
      ].join("\n"),
    );
    const json = JSON.parse((await run("resources", "--json")).out) as Record<string, { name: string }[]>;
    expect(json["resources"]?.map(({ name }) => name)).toEqual(["note", "raw", "bytes"]);
    expect(json["resourceTemplates"]?.map(({ name }) => name)).toEqual(["day"]);
    const prompts = await run("prompts");
    expect(prompts.out).toBe("greet  Greet somebody\n       name=string [tone=string]\ntalk   A talk\n");
    expect((await run("prompts", "greet")).out).toContain("  name  string  required; Whom\n");
    expect(JSON.parse((await run("prompts", "greet", "--json")).out)).toMatchObject({ name: "greet" });
  });

  it("a tool is called, a resource read, a prompt got", async () => {
    expect(await run("call", "echo", "text=hi", "times=2")).toMatchObject({ code: 0, out: "hi\nhi\n", err: "" });
    expect(await run("read", "desk://note")).toMatchObject({ code: 0, out: "no newline at its end", err: "" });
    expect(await run("read", "desk://day/7")).toMatchObject({ code: 0, out: "day 7" });
    expect(await run("prompt", "greet", "name=Ann", "tone=kind")).toMatchObject({
      code: 0,
      out: "Greet Ann in a kind tone.\n",
      err: "",
    });
    expect((await run("prompt", "talk")).out).toBe("user:\nHello\n\nassistant:\nGood day\n");
    const result = JSON.parse((await run("call", "echo", "text=hi", "--json")).out) as object;
    expect(result).toMatchObject({ content: [{ type: "text", text: "hi" }], isError: false });
    const contents = [{ uri: "desk://note", mimeType: "text/plain", text: "no newline at its end" }];
    expect(JSON.parse((await run("read", "desk://note", "--json")).out)).toMatchObject({ contents });
    const messages = [{ role: "user", content: { type: "text", text: "Greet Ann." } }];
    expect(JSON.parse((await run("prompt", "greet", "name=Ann", "--json")).out)).toMatchObject({ messages });
  });

  it.each([
    [["call", "nothing"], 2, "not_found", "There is no tool nothing; there are echo, arguments"],
    [["call", "ecko", "text=x"], 2, "not_found", "There is no tool ecko; did you mean echo?"],
    [["tools", "ech"], 2, "not_found", "There is no tool ech; did you mean echo?"],
    [["prompts", "greeet"], 2, "not_found", "There is no prompt greeet; did you mean greet?"],
    [["prompt", "grete"], 2, "not_found", "There is no prompt grete; did you mean greet?"],
    [["read", "desk://none"], 2, "not_found", "There is no resource desk://none: Resource not found"],
    [["call", "echo"], 1, "usage", "echo needs text\nArguments of echo:\n  text   string   required; What to say\n"],
    [["call", "echo", "text=x", "times=abc"], 1, "usage", "times must be an integer: abc"],
    [["prompt", "greet"], 1, "usage", "greet needs name\nArguments of greet:\n  name  string  required; Whom\n"],
    [["call", "refuse"], 5, "failed", "not today"],
    [["call", "denied"], 3, "auth", "not you"],
  ] as const)("%j ends with %i", async ([name, ...rest], code, kind, words) => {
    const said = await run(name, ...rest, "--json");
    expect(said.code).toBe(code);
    expect(said.err).toContain(`catenary: ${words}`);
    expect(JSON.parse(said.out)).toMatchObject({ error: { kind, message: expect.stringContaining(words.trim()) } });
  });

  it("a tool that fails is shown, and the exit code is 5", async () => {
    const said = await run("call", "fail");
    expect(said).toMatchObject({ code: 5, out: "out of order\n", err: "fail says that it failed\n" });
    const json = await run("call", "fail", "--json", "--quiet");
    expect(json).toMatchObject({ code: 5, err: "" });
    expect(JSON.parse(json.out)).toMatchObject({ isError: true, content: [{ text: "out of order" }] });
  });
});

describe("arguments", () => {
  it("become what the schema says", async () => {
    const words = ["text=007", "count=7", "ratio=.5", "flag=true", "tags=a", "tags=b", "numbers=[1,2]", "mode=3"];
    const more = ['filter={"a":1}', "maybe=null", "named=1e3", "other=x"];
    const { out, err, code } = await atDesk(["call", "arguments", ...words, ...more]);
    expect(JSON.parse(out)).toEqual({
      ...{ text: "007", count: 7, ratio: 0.5, flag: true, tags: ["a", "b"], numbers: [1, 2], mode: 3 },
      ...{ filter: { a: 1 }, maybe: null, named: 1000, other: "x" },
    });
    expect({ code, err }).toEqual({ code: 0, err: "arguments declares no argument other; sent all the same\n" });
  });

  it("may come from files and from stdin", async () => {
    const file = join(folder, "filter.json");
    writeFileSync(file, '{"from":"file"}');
    const given = await atDesk(["call", "arguments", "text=@-", `filter:=@${file}`], "from stdin\n");
    expect(JSON.parse(given.out)).toEqual({ text: "from stdin\n", filter: { from: "file" } });
    const whole = await atDesk(["call", "arguments", "--args", "-", "count=2"], '{"text":"a","count":1}');
    expect(JSON.parse(whole.out)).toEqual({ text: "a", count: 2 });
    const greeted = await atDesk(["prompt", "greet", "--args", '{"name":"Ann"}']);
    expect(greeted.out).toBe("Greet Ann.\n");
  });

  it.each([
    [["call", "echo", "text=@/nowhere/at/all"], 2, "There is no file /nowhere/at/all"],
    [["call", "echo", "text"], 1, "text is no argument"],
    [["call", "echo", "--args", "x"], 1, "--args is not JSON"],
    [["call", "echo", "text=@-", "--args", "-"], 1, "stdin was read already by --args -"],
    [["call"], 1, "call needs the name of a TOOL"],
    [["read"], 1, "read needs a URI"],
    [["read", "a", "b"], 1, "read does not know what to do with b"],
    [["prompt"], 1, "prompt needs the NAME of a prompt"],
    [["tools", "a", "b"], 1, "tools does not know what to do with b"],
    [["resources", "a"], 1, "resources does not know what to do with a"],
    ...["tools", "prompts", "resources", "call", "prompt"].map((name): [string[], number, string] => [
      [name, "http://127.0.0.1:9/mcp", "x"],
      1,
      "A URL or a command: one target, not both",
    ]),
    [["call", "echo", ":=1"], 1, ":=1 is no argument"],
    [["call", "echo", "--root", "/nowhere/at/all"], 2, "There is no folder /nowhere/at/all"],
  ])("%j is refused before the server is started", async (args, code, words) => {
    const log = join(folder, "refused.log");
    const said = await atDesk(args, "{}", { env: { CATENARY_TEST_LOG: log } });
    expect(said).toMatchObject({ code, out: "" });
    expect(said.err).toContain(words);
    expect(readdirSync(folder)).not.toContain("refused.log");
  });
});

describe("content", () => {
  it("that is no text is described, and written to files on request", async () => {
    const text = "a picture:\ndesk://note\nembedded\n";
    const described = await atDesk(["call", "picture"]);
    expect(described).toMatchObject({ code: 0, out: text });
    expect(described.err).toContain(
      "image/png, 70 bytes: not shown; --save DIR or --output FILE writes it to a file\n",
    );
    expect(described.err).toContain("desk://inner (text/plain):\n");
    const saved = join(folder, "saved");
    const written = await atDesk(["call", "picture", "--save", saved]);
    expect(written).toMatchObject({ code: 0, out: text });
    expect(written.err).toContain(`image/png, 70 bytes: written to ${join(saved, "image.png")}\n`);
    expect(readdirSync(saved).toSorted()).toEqual(["audio.wav", "image.png", "passwd.gif"]);
    expect(readFileSync(join(saved, "image.png")).subarray(1, 4).toString()).toBe("PNG");
    await atDesk(["call", "picture", "--save", saved]);
    expect(readdirSync(saved).toSorted()).toContain("image-2.png");
  });

  it("goes to the file that is named", async () => {
    const file = join(folder, "shot.png");
    expect((await atDesk(["call", "picture", "--output", file])).code).toBe(0);
    expect(
      readdirSync(folder)
        .filter((name) => name.startsWith("shot"))
        .toSorted(),
    ).toEqual(["shot-2.png", "shot-3.png", "shot.png"]);
    const again = await atDesk(["call", "picture", "--output", file]);
    expect(again).toMatchObject({ code: 1, err: `catenary: ${file} is there already; --force replaces it\n` });
    const none = await atDesk(["call", "echo", "text=x", "--output", join(folder, "none.png")]);
    expect(none).toMatchObject({ code: 2, out: "x\n" });
    expect(none.err).toContain("Nothing came that could be written");
  });

  it("that is structured is left to --json where there is a text", async () => {
    expect(await atDesk(["call", "structured"])).toMatchObject({ out: '{"answer":42}\n', err: "" });
    expect(await atDesk(["call", "both"])).toMatchObject({ out: "in words\n", err: "" });
  });

  it("of a resource comes out byte for byte", async () => {
    const { bytes, err, code } = await atDesk(["read", "desk://bytes"]);
    expect({ code, err, length: bytes.length }).toEqual({ code: 0, err: "", length: 70 });
    expect(bytes.subarray(0, 8)).toEqual(Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]));
    const file = join(folder, "read.png");
    expect(await atDesk(["read", "desk://bytes", "--output", file])).toMatchObject({ code: 0, out: "" });
    expect(readFileSync(file)).toEqual(bytes);
    const note = join(folder, "note.txt");
    await atDesk(["read", "desk://note", "--output", note]);
    expect(readFileSync(note, "utf8")).toBe("no newline at its end");
  });

  it("of a stranger goes to a pipe as it is", async () => {
    const { out } = await atDesk(["call", "hostile"]);
    expect(out).toContain("\u001b[2J");
  });
});

describe("beside the data", () => {
  it("progress is a plain line now and then, or nothing", async () => {
    const said = await atDesk(["call", "count", "to=3", "ms=10"]);
    expect(said).toMatchObject({ code: 0, out: "counted to 3\n", err: "progress: 33% 1/3  step 1\n" });
    expect((await atDesk(["call", "count", "to=3", "ms=10", "--quiet"])).err).toBe("");
  });

  it("log messages come from the level on that is wanted", async () => {
    expect((await atDesk(["call", "logs"])).err).toBe("");
    expect((await atDesk(["call", "logs", "--log-level", "debug"])).err).toBe(
      '[debug] a detail\n[warning] {"low":"ink"}\n',
    );
    const verbose = (await atDesk(["call", "logs", "--verbose"])).err;
    expect(verbose).toContain("[warning]");
    expect(verbose).not.toContain("[debug]");
    expect(verbose).toContain("stderr: own stderr\n");
    expect(verbose).toContain("stderr: without an end\n");
    expect(verbose).toContain(`Connected to desk 1.2.3, revision ${REVISIONS.at(-1)?.name}\n`);
  });

  it("nobody is asked where nobody could answer", async () => {
    const said = await atDesk(["call", "form"]);
    expect(said).toMatchObject({ code: 5, out: "" });
    expect(said.err).toContain("run it in a terminal");
  });
});

describe("connecting", () => {
  it.each(REVISIONS.map(({ name }) => name))("speaks %s alone where that is wanted", async (revision) => {
    const said = await atDesk(["call", "echo", "text=hi", "--revision", revision, "--verbose"]);
    expect(said).toMatchObject({ code: 0, out: "hi\n" });
    expect(said.err).toContain(`revision ${revision}\n`);
  });

  it("gives a command its environment and folder, but not our token", async () => {
    const env = { CATENARY_TOKEN: "secret", OTHER: "kept" };
    const value = async (name: string, ...more: string[]): Promise<string> =>
      (await atDesk(["call", "environment", `name=${name}`, ...more], "", { env })).out;
    expect(await value("GIVEN", "--env", "GIVEN=by us")).toBe("by us\n");
    expect(await value("OTHER")).toBe("kept\n");
    expect(await value("CATENARY_TOKEN")).toBe("undefined\n");
    expect((await atDesk(["tools", "--cwd", "/nowhere/at/all"])).code).toBe(2);
  });

  it("tells a server of folders", async () => {
    const { out } = await atDesk(["call", "roots", "--root", folder, "--root", "/"]);
    expect(out).toBe(`file://${folder}\nfile:///\n`);
  });

  it.each([
    [["tools", "http://127.0.0.1:1/mcp"], 4, "Nothing listens at 127.0.0.1:1"],
    [["tools", "notes"], 1, "notes is no target"],
    [["tools", "http://ann:pw@127.0.0.1:1/mcp"], 1, "a password do not belong into a URL"],
    [["tools", "http://127.0.0.1:1/mcp", "--token", "a b"], 1, "--token is no token"],
    [["tools", "--", "catenary-no-such-command"], 2, "there is no command of that name on the PATH"],
    [["tools", "--", "./no/such/file"], 2, "there is no file"],
    [["tools", "--", process.execPath, "-e", "console.error('no key'); process.exit(3)"], 4, "no key"],
    [["tools", "--timeout", "1", "--", process.execPath, "-e", "process.stdin.resume()"], 4, "did not answer"],
  ])("%j ends with %i", async (args, code, words) => {
    const said = await catenary(args);
    expect(said).toMatchObject({ code, out: "" });
    expect(said.err).toContain(words);
  });
});

describe("an end that wants to know who we are", () => {
  let server: Server;
  let url = "";
  const seen: (string | undefined)[] = [];
  beforeAll(async () => {
    server = createServer((request, response) => {
      if (request.url === "/mcp") seen.push(request.headers.authorization);
      response.writeHead(request.url === "/mcp" ? 401 : 404, { "www-authenticate": "Bearer" }).end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
  });
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });

  const env = (): NodeJS.ProcessEnv => ({ XDG_STATE_HOME: join(folder, "state") });

  it("is told nothing where nobody can sign in, and the person what to do", async () => {
    const said = await catenary(["tools", url, "--json"], "", { env: env() });
    expect(said.code).toBe(3);
    expect(JSON.parse(said.out)).toMatchObject({ error: { kind: "auth", reason: "unauthorized" } });
    expect(said.err).toContain("wants a token");
    expect(said.err).not.toContain("`");
    expect(said.err).toContain("CATENARY_TOKEN");
  });

  it.each([
    ["--token", ["--token", "hush-hush"], {}],
    ["the environment", [], { CATENARY_TOKEN: "hush-hush" }],
    ["a header", ["--header", "Authorization: Bearer hush-hush"], {}],
  ])("is shown a token of %s, which is never printed", async (way, flags, more) => {
    seen.length = 0;
    const said = await catenary(["tools", url, "--verbose", ...flags], "", { env: { ...env(), ...more } });
    expect(said).toMatchObject({ code: 3, out: "" });
    expect(seen[0]).toBe("Bearer hush-hush");
    expect(said.err).not.toContain("hush-hush");
    if (way !== "a header") expect(said.err).toContain("bring another token");
    expect(said.err).not.toContain("bearerToken");
  });
});

describe("help", () => {
  const COMMANDS = ["tools", "resources", "prompts", "call", "read", "prompt"];

  it("lists every command", async () => {
    const { out, code } = await catenary(["--help"]);
    expect(code).toBe(0);
    for (const name of ["serve", ...COMMANDS]) expect(out).toMatch(new RegExp(`^  ${name} +\\w`, "m"));
  });

  it.each(COMMANDS)("of %s is there", async (name) => {
    const { out, code, err } = await catenary([name, "--help"]);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(new RegExp(`^Usage: catenary ${name} TARGET`));
    expect((await catenary(["help", name])).out).toBe(out);
  });

  it("behind -- is the command's own", async () => {
    const { out, code } = await catenary(["call", "echo", "text=x", "--", ...DESK_COMMAND, "--sequential"]);
    expect({ out, code }).toEqual({ out: "x\n", code: 0 });
    expect((await catenary(["tools", "--", process.execPath, "--help"])).out).not.toContain("Usage: catenary");
  });

  it("says which command was probably meant", async () => {
    const said = "There is no command tool; did you mean tools?";
    expect(await catenary(["tool"])).toMatchObject({ code: 1, out: "", err: `catenary: ${said}\n` });
    const { out } = await catenary(["tool", "--json"]);
    expect(JSON.parse(out)).toEqual({ error: { kind: "usage", message: said } });
  });
});
