// Each command as a process, with a command and with a URL as target: its output and its exit code.

import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { REVISIONS } from "../../../src/protocol/revisions/index.ts";
import { callTestServer, catenary, TEST_SERVER_COMMAND, startTestServer } from "./cli-process.ts";

let folder = "";
let server: Awaited<ReturnType<typeof startTestServer>>;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "catenary-cli-"));
  server = await startTestServer();
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await server.close();
});

/** Runs the same line with both kinds of targets. */
const TARGETS = [
  ["a command", (name: string, ...rest: string[]) => callTestServer([name, ...rest])],
  ["a URL", (name: string, ...rest: string[]) => catenary([name, server.url, ...rest])],
] as const;

describe.each(TARGETS)("with %s", (_kind, run) => {
  it("tools are listed, shown in detail, and printed as JSON", async () => {
    const listed = await run("tools");
    expect(listed).toMatchObject({ code: 0, err: "" });
    expect(listed.out.split("\n").slice(0, 3)).toEqual([
      "echo         Echo the text",
      "             text=string [times=integer]",
      "arguments    Return the arguments",
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
        "demo://note   A note",
        "              note, text/plain",
        "demo://raw    raw",
        "demo://bytes  bytes, image/png, 70 bytes",
        "",
        "Templates:",
        "demo://day/{day}  A day",
        "                  day",
        "",
      ].join("\n"),
    );
    const json = JSON.parse((await run("resources", "--json")).out) as Record<string, { name: string }[]>;
    expect(json["resources"]?.map(({ name }) => name)).toEqual(["note", "raw", "bytes"]);
    expect(json["resourceTemplates"]?.map(({ name }) => name)).toEqual(["day"]);
    const prompts = await run("prompts");
    expect(prompts.out).toBe("greet  Greet a person\n       name=string [tone=string]\ntalk   A talk\n");
    expect((await run("prompts", "greet")).out).toContain("  name  string  required; Who\n");
    expect(JSON.parse((await run("prompts", "greet", "--json")).out)).toMatchObject({ name: "greet" });
  });

  it("a tool is called, a resource read, and a prompt fetched", async () => {
    expect(await run("call", "echo", "text=hi", "times=2")).toMatchObject({ code: 0, out: "hi\nhi\n", err: "" });
    expect(await run("read", "demo://note")).toMatchObject({ code: 0, out: "no final newline", err: "" });
    expect(await run("read", "demo://day/7")).toMatchObject({ code: 0, out: "day 7" });
    expect(await run("prompt", "greet", "name=Ann", "tone=kind")).toMatchObject({
      code: 0,
      out: "Greet Ann in a kind tone.\n",
      err: "",
    });
    expect((await run("prompt", "talk")).out).toBe("user:\nHello\n\nassistant:\nGood day\n");
    const called = JSON.parse((await run("call", "echo", "text=hi", "--json")).out) as object;
    expect(called).toMatchObject({ content: [{ type: "text", text: "hi" }], isError: false });
    const contents = [{ uri: "demo://note", mimeType: "text/plain", text: "no final newline" }];
    expect(JSON.parse((await run("read", "demo://note", "--json")).out)).toMatchObject({ contents });
    const messages = [{ role: "user", content: { type: "text", text: "Greet Ann." } }];
    expect(JSON.parse((await run("prompt", "greet", "name=Ann", "--json")).out)).toMatchObject({ messages });
  });

  it.each([
    [["call", "nothing"], 2, "not_found", "There is no tool nothing; there are echo, arguments"],
    [["call", "ecko", "text=x"], 2, "not_found", "There is no tool ecko; did you mean echo?"],
    [["tools", "ech"], 2, "not_found", "There is no tool ech; did you mean echo?"],
    [["prompts", "greeet"], 2, "not_found", "There is no prompt greeet; did you mean greet?"],
    [["prompt", "grete"], 2, "not_found", "There is no prompt grete; did you mean greet?"],
    [["read", "demo://none"], 2, "not_found", "There is no resource demo://none: Resource not found"],
    [["call", "echo"], 1, "usage", "echo needs text\nArguments of echo:\n  text   string   required; What to say\n"],
    [["call", "echo", "text=x", "times=abc"], 1, "usage", "times must be an integer: abc"],
    [["prompt", "greet"], 1, "usage", "greet needs name\nArguments of greet:\n  name  string  required; Who\n"],
    [["call", "refuse"], 5, "failed", "not today"],
    [["call", "denied"], 3, "auth", "not you"],
  ] as const)("%j exits with %i", async ([name, ...rest], code, kind, message) => {
    const result = await run(name, ...rest, "--json");
    expect(result.code).toBe(code);
    expect(result.err).toContain(`catenary: ${message}`);
    expect(JSON.parse(result.out)).toMatchObject({ error: { kind, message: expect.stringContaining(message.trim()) } });
  });

  it("a tool that fails is shown, and the exit code is 5", async () => {
    const result = await run("call", "fail");
    expect(result).toMatchObject({ code: 5, out: "out of order\n", err: "fail reported an error\n" });
    const json = await run("call", "fail", "--json", "--quiet");
    expect(json).toMatchObject({ code: 5, err: "" });
    expect(JSON.parse(json.out)).toMatchObject({ isError: true, content: [{ text: "out of order" }] });
  });
});

it("arguments are converted by the schema", async () => {
  const words = ["text=007", "count=7", "ratio=.5", "flag=true", "tags=a", "tags=b", "numbers=[1,2]", "mode=3"];
  const more = ['filter={"a":1}', "maybe=null", "named=1e3", "other=x"];
  const { out, err, code } = await callTestServer(["call", "arguments", ...words, ...more]);
  expect(JSON.parse(out)).toEqual({
    ...{ text: "007", count: 7, ratio: 0.5, flag: true, tags: ["a", "b"], numbers: [1, 2], mode: 3 },
    ...{ filter: { a: 1 }, maybe: null, named: 1000, other: "x" },
  });
  expect({ code, err }).toEqual({ code: 0, err: "arguments does not declare other; sent anyway\n" });
});

it("arguments may come from files and from stdin", async () => {
  const file = join(folder, "filter.json");
  writeFileSync(file, '{"from":"file"}');
  const given = await callTestServer(["call", "arguments", "text=@-", `filter:=@${file}`], "from stdin\n");
  expect(JSON.parse(given.out)).toEqual({ text: "from stdin\n", filter: { from: "file" } });
  const whole = await callTestServer(["call", "arguments", "--args", "-", "count=2"], '{"text":"a","count":1}');
  expect(JSON.parse(whole.out)).toEqual({ text: "a", count: 2 });
  const greeted = await callTestServer(["prompt", "greet", "--args", '{"name":"Ann"}']);
  expect(greeted.out).toBe("Greet Ann.\n");
});

it.each([
  [["call", "echo", "text=@/nowhere/at/all"], 2, "There is no file /nowhere/at/all"],
  [["call", "echo", "text"], 1, "text is not a valid argument"],
  [["call", "echo", "--args", "x"], 1, "--args is not JSON"],
  [["call", "echo", "text=@-", "--args", "-"], 1, "stdin was already read by --args -"],
  [["call"], 1, "call needs the name of a TOOL"],
  [["read"], 1, "read needs a URI"],
  [["read", "a", "b"], 1, "read: unexpected argument b"],
  [["prompt"], 1, "prompt needs the NAME of a prompt"],
  [["tools", "a", "b"], 1, "tools: unexpected argument b"],
  [["resources", "a"], 1, "resources: unexpected argument a"],
  ...["tools", "prompts", "resources", "call", "prompt"].map((name): [string[], number, string] => [
    [name, "http://127.0.0.1:9/mcp", "x"],
    1,
    "Give one target: a URL or a command, not both",
  ]),
  [["call", "echo", ":=1"], 1, ":=1 is not a valid argument"],
  [["call", "echo", "--root", "/nowhere/at/all"], 2, "There is no folder /nowhere/at/all"],
])("arguments: %j is refused before the server is started", async (args, code, message) => {
  const log = join(folder, "refused.log");
  const result = await callTestServer(args, "{}", { env: { CATENARY_TEST_LOG: log } });
  expect(result).toMatchObject({ code, out: "" });
  expect(result.err).toContain(message);
  expect(readdirSync(folder)).not.toContain("refused.log");
});

it("content that is not text is described, or written to files", async () => {
  const text = "a picture:\ndemo://note\nembedded\n";
  const described = await callTestServer(["call", "picture"]);
  expect(described).toMatchObject({ code: 0, out: text });
  expect(described.err).toContain(
    "image/png, 70 bytes: not shown; use --save DIR or --output FILE to write it to a file\n",
  );
  expect(described.err).toContain("demo://inner (text/plain):\n");
  const saved = join(folder, "saved");
  const written = await callTestServer(["call", "picture", "--save", saved]);
  expect(written).toMatchObject({ code: 0, out: text });
  expect(written.err).toContain(`image/png, 70 bytes: written to ${join(saved, "image.png")}\n`);
  expect(readdirSync(saved).toSorted()).toEqual(["audio.wav", "image.png", "passwd.gif"]);
  expect(readFileSync(join(saved, "image.png")).subarray(1, 4).toString()).toBe("PNG");
  await callTestServer(["call", "picture", "--save", saved]);
  expect(readdirSync(saved).toSorted()).toContain("image-2.png");
});

it("content goes to the given file", async () => {
  const file = join(folder, "shot.png");
  expect((await callTestServer(["call", "picture", "--output", file])).code).toBe(0);
  expect(
    readdirSync(folder)
      .filter((name) => name.startsWith("shot"))
      .toSorted(),
  ).toEqual(["shot-2.png", "shot-3.png", "shot.png"]);
  const again = await callTestServer(["call", "picture", "--output", file]);
  expect(again).toMatchObject({ code: 1, err: `catenary: ${file} already exists; use --force to replace it\n` });
  const text: [string[], string][] = [
    [["call", "echo", "text=x"], "x\n"],
    [["prompt", "greet", "name=Ann"], "Greet Ann.\n"],
  ];
  for (const [words, out] of text) {
    const none = await callTestServer([...words, "--output", join(folder, "none.png")]);
    expect(none).toMatchObject({ code: 2, out });
    expect(none.err).toContain("Nothing to write to");
  }
});

it("content that is structured is printed only without text", async () => {
  expect(await callTestServer(["call", "structured"])).toMatchObject({ out: '{"answer":42}\n', err: "" });
  expect(await callTestServer(["call", "both"])).toMatchObject({ out: "in words\n", err: "" });
});

it("content of a resource is printed byte for byte", async () => {
  const { bytes, err, code } = await callTestServer(["read", "demo://bytes"]);
  expect({ code, err, length: bytes.length }).toEqual({ code: 0, err: "", length: 70 });
  expect(bytes.subarray(0, 8)).toEqual(Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]));
  const file = join(folder, "read.png");
  expect(await callTestServer(["read", "demo://bytes", "--output", file])).toMatchObject({ code: 0, out: "" });
  expect(readFileSync(file)).toEqual(bytes);
  const note = join(folder, "note.txt");
  await callTestServer(["read", "demo://note", "--output", note]);
  expect(readFileSync(note, "utf8")).toBe("no final newline");
});

it("content with control characters goes to a pipe unchanged", async () => {
  const { out } = await callTestServer(["call", "hostile"]);
  expect(out).toContain("\u001b[2J");
});

it("stderr shows progress as plain lines, or nothing with --quiet", async () => {
  const result = await callTestServer(["call", "count", "to=3", "ms=10"]);
  expect(result).toMatchObject({ code: 0, out: "counted to 3\n", err: "progress: 33% 1/3  step 1\n" });
  expect((await callTestServer(["call", "count", "to=3", "ms=10", "--quiet"])).err).toBe("");
});

it("stderr shows log messages from the requested level on", async () => {
  expect((await callTestServer(["call", "logs"])).err).toBe("");
  expect((await callTestServer(["call", "logs", "--log-level", "debug"])).err).toBe(
    '[debug] a detail\n[warning] {"low":"ink"}\n',
  );
  const verbose = (await callTestServer(["call", "logs", "--verbose"])).err;
  expect(verbose).toContain("[warning]");
  expect(verbose).not.toContain("[debug]");
  expect(verbose).toContain("stderr: own stderr\n");
  expect(verbose).toContain("stderr: incomplete line\n");
  expect(verbose).toContain(`Connected to demo 1.2.3, revision ${REVISIONS.at(-1)?.name}\n`);
});

it("stderr explains that a question needs a terminal", async () => {
  const result = await callTestServer(["call", "form"]);
  expect(result).toMatchObject({ code: 5, out: "" });
  expect(result.err).toContain("run this command in a terminal");
});

it.each(REVISIONS.map(({ name }) => name))("connecting uses only revision %s on request", async (revision) => {
  const result = await callTestServer(["call", "echo", "text=hi", "--revision", revision, "--verbose"]);
  expect(result).toMatchObject({ code: 0, out: "hi\n" });
  expect(result.err).toContain(`revision ${revision}\n`);
});

it("connecting passes environment and folder to a command, but not our token", async () => {
  const env = { CATENARY_TOKEN: "secret", OTHER: "kept" };
  const value = async (name: string, ...more: string[]): Promise<string> =>
    (await callTestServer(["call", "environment", `name=${name}`, ...more], "", { env })).out;
  expect(await value("GIVEN", "--env", "GIVEN=by us")).toBe("by us\n");
  expect(await value("OTHER")).toBe("kept\n");
  expect(await value("CATENARY_TOKEN")).toBe("undefined\n");
  expect((await callTestServer(["tools", "--cwd", "/nowhere/at/all"])).code).toBe(2);
});

it("connecting announces roots to a server", async () => {
  const { out } = await callTestServer(["call", "roots", "--root", folder, "--root", "/"]);
  expect(out).toBe(`file://${folder}\nfile:///\n`);
});

it.each([
  [["tools", "http://127.0.0.1:1/mcp"], 4, "Nothing listens at 127.0.0.1:1"],
  [["tools", "notes"], 1, "There is no catenary.json here that could have a server notes"],
  [["tools", "http://ann:pw@127.0.0.1:1/mcp"], 1, "The URL contains a user name or password"],
  [["tools", "http://127.0.0.1:1/mcp", "--token", "a b"], 1, "--token is not a valid token"],
  [["tools", "--", "catenary-no-such-command"], 2, "there is no command of that name on the PATH"],
  [["tools", "--", "./no/such/file"], 2, "there is no file"],
  [["tools", "--", process.execPath, "-e", "console.error('no key'); process.exit(3)"], 4, "no key"],
  [["tools", "--timeout", "1", "--", process.execPath, "-e", "process.stdin.resume()"], 4, "did not answer"],
])("connecting: %j exits with %i", async (args, code, message) => {
  const result = await catenary(args);
  expect(result).toMatchObject({ code, out: "" });
  expect(result.err).toContain(message);
});

describe("a server that requires authentication", () => {
  let http: Server;
  let url = "";
  const seen: (string | undefined)[] = [];
  beforeAll(async () => {
    http = createServer((request, response) => {
      if (request.url === "/mcp") seen.push(request.headers.authorization);
      response.writeHead(request.url === "/mcp" ? 401 : 404, { "www-authenticate": "Bearer" }).end();
    });
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`;
  });
  afterAll(() => {
    http.closeAllConnections();
    http.close();
  });

  const env = (): NodeJS.ProcessEnv => ({ XDG_STATE_HOME: join(folder, "state") });

  it("a server that requires authentication causes advice for the user if signing in is not possible", async () => {
    const result = await catenary(["tools", url, "--json"], "", { env: env() });
    expect(result.code).toBe(3);
    expect(JSON.parse(result.out)).toMatchObject({ error: { kind: "auth", reason: "unauthorized" } });
    expect(result.err).toContain("needs a token");
    expect(result.err).not.toContain("`");
    expect(result.err).toContain("CATENARY_TOKEN");
  });

  it.each([
    ["--token", ["--token", "hush-hush"], {}],
    ["the environment", [], { CATENARY_TOKEN: "hush-hush" }],
    ["a header", ["--header", "Authorization: Bearer hush-hush"], {}],
  ])(
    "a server that requires authentication receives a token from %s, which is never printed",
    async (source, flags, more) => {
      seen.length = 0;
      const result = await catenary(["tools", url, "--verbose", ...flags], "", { env: { ...env(), ...more } });
      expect(result).toMatchObject({ code: 3, out: "" });
      expect(seen[0]).toBe("Bearer hush-hush");
      expect(result.err).not.toContain("hush-hush");
      if (source !== "a header") expect(result.err).toContain("use another token");
      expect(result.err).not.toContain("bearerToken");
    },
  );
});

const COMMANDS = ["tools", "resources", "prompts", "call", "read", "prompt"];

it("help lists every command", async () => {
  const { out, code } = await catenary(["--help"]);
  expect(code).toBe(0);
  for (const name of ["serve", ...COMMANDS]) expect(out).toMatch(new RegExp(`^  ${name} +\\w`, "m"));
});

it.each(COMMANDS)("help of %s is there", async (name) => {
  const { out, code, err } = await catenary([name, "--help"]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toMatch(new RegExp(`^Usage: catenary ${name} TARGET`));
  expect((await catenary(["help", name])).out).toBe(out);
});

it("help after -- belongs to the command", async () => {
  const { out, code } = await catenary(["call", "echo", "text=x", "--", ...TEST_SERVER_COMMAND, "--sequential"]);
  expect({ out, code }).toEqual({ out: "x\n", code: 0 });
  expect((await catenary(["tools", "--", process.execPath, "--help"])).out).not.toContain("Usage: catenary");
});

it("help suggests the command that was probably meant", async () => {
  const message = "There is no command tool; did you mean tools?";
  expect(await catenary(["tool"])).toMatchObject({ code: 1, out: "", err: `catenary: ${message}\n` });
  expect((await catenary(["tools/call"])).err).toBe("catenary: There is no command tools/call; did you mean call?\n");
  const { out } = await catenary(["tool", "--json"]);
  expect(JSON.parse(out)).toEqual({ error: { kind: "usage", message } });
});
