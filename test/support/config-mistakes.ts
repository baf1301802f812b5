// Configs that are wrong, each in one way: the text and its servers. Chains, variables and what else there is have a
// file of their own. All that is said of each is written out, because it is what a person reads.

import { REVISIONS } from "../../src/protocol/revisions/index.ts";

/**
 * What is wrong, the text, whether an editor that knows only the schema sees it, and all that is said, in order: the
 * place, the sentence, and what to do. FOLDER is where the text stands.
 */
export type Mistake = readonly [name: string, text: string, schema: "seen" | "unseen" | "no JSON", ...says: string[]];

export const IN_THE_TEXT: readonly Mistake[] = [
  [
    "an empty file",
    " \n",
    "no JSON",
    '1:1 error: The file is empty; write {"mcpServers": {"notes": {"command": "npx", "args": ["-y", "notes-mcp"]}}}',
  ],
  [
    "a comma too few",
    '{"mcpServers": {"a": {"command": "x" "args": []}}\n "name": ""}',
    "no JSON",
    "1:38 error: A comma is missing before this",
    "2:2 error: A comma is missing before this",
    "2:10 error: name is empty; write something, or leave it out",
  ],
  ["a brace too few", '{"mcpServers": {"a": {"command": "x"}}', "no JSON", "1:39 error: A closing brace } is missing"],
  [
    "single quotes",
    "{'mcpServers': {}}",
    "no JSON",
    "1:2 error: This is no JSON value; texts stand in double quotes; the words without quotes are true, false and null",
  ],
  [
    "two objects",
    '{"mcpServers": {"a": {"command": "x"}}} {}',
    "no JSON",
    "1:41 error: There is more after the end of the config; the file holds one object, { ... }, and comments",
  ],
  [
    "a text that is not closed",
    '{"mcpServers": {"a\n": {}}}',
    "no JSON",
    '1:17 error: A text is not closed; end it with " on the same line',
    '2:1 error: A text is not closed; end it with " on the same line',
  ],
  [
    "a bad escape",
    '{"mcpServers": {"a": {"command": "C:\\x"}}}',
    "no JSON",
    "1:34 error: A backslash means something special in a text; write \\\\ for one backslash",
  ],
  [
    "a comment that is not closed",
    '{"mcpServers": {"a": {"command": "x"}}} /* so',
    "no JSON",
    "1:41 error: A comment that begins with /* is not closed; end it with */",
  ],
  [
    "too much inside each other",
    `{"a": ${"[".repeat(70)}${"]".repeat(70)}}`,
    "no JSON",
    "1:70 error: Values stand more than 64 deep inside each other; a config needs no more than 8",
  ],
];

export const IN_SERVERS: readonly Mistake[] = [
  ["a list", "[]", "seen", '1:1 error: A config is an object; write {"mcpServers": {...}}'],
  [
    "the same name twice",
    '{"mcpServers": {\n  "a": {"command": "x"},\n  "a": {"command": "y"}\n}}',
    "unseen",
    '3:3 error: "a" stands here for the second time; it is on line 2 already: keep one of them',
  ],
  [
    "the same key twice",
    '{"mcpServers": {"a": {"command": "x", "command": "y"}}}',
    "unseen",
    '1:39 error: "command" stands here for the second time; it is on line 1 already: keep one of them',
  ],
  [
    "the same server in both sections",
    '{"mcpServers": {"a": {"command": "x"}},\n "servers": {"a": {"command": "x"}}}',
    "unseen",
    "2:14 error: servers.a: mcpServers.a, on line 1, has the same name; rename one of them, or remove it",
  ],
  [
    "no servers",
    "{}",
    "seen",
    '1:1 error: There is no server in it, so there is nothing to serve; write {"mcpServers": {"notes": {"command": "npx", "args": ["-y", "notes-mcp"]}}}',
  ],
  [
    "an empty section",
    '{"mcpServers": {}}',
    "unseen",
    '1:2 error: There is no server in it, so there is nothing to serve; write {"mcpServers": {"notes": {"command": "npx", "args": ["-y", "notes-mcp"]}}}',
  ],
  [
    "only disabled servers",
    '{"mcpServers": {"a": {"command": "x", "disabled": true}}}',
    "unseen",
    "1:2 error: All servers are disabled, so there is nothing to serve; remove `disabled` from one of them",
  ],
  [
    "only servers that are not enabled",
    '{"mcpServers": {"a": {"command": "x", "enabled": false}}}',
    "unseen",
    "1:2 error: All servers are disabled, so there is nothing to serve; remove `disabled` from one of them",
  ],
  [
    "a misspelt section",
    '{"mcpServer": {}, "servers": {"a": {"command": "x"}}}',
    "unseen",
    "1:2 warning: mcpServer is passed over; did you mean mcpServers?",
  ],
  [
    "a section that is a list",
    '{"mcpServers": []}',
    "seen",
    '1:16 error: mcpServers must be an object of servers by name, such as {"notes": {...}}, and is a list',
  ],
  [
    "an empty name",
    '{"mcpServers": {" ": {"command": "x"}}}',
    "seen",
    "1:17 error: The name of a server is empty; give it one: it says in answers whose they are",
  ],
  [
    "a server that is a text",
    '{"mcpServers": {"a": "npx"}}',
    "seen",
    '1:22 error: mcpServers.a must be an object that says how the server is reached, and is a text; write "command" for a program to start, or "url" for an address over HTTP, or "module" for a module that exports a server',
  ],
  [
    "neither command nor url",
    '{"mcpServers": {"a": {"args": []}}}',
    "seen",
    '1:17 error: mcpServers.a does not say how it is reached; write "command" for a program to start, or "url" for an address over HTTP, or "module" for a module that exports a server',
  ],
  [
    "a misspelt command",
    '{"mcpServers": {"a": {"comand": "x"}}}',
    "seen",
    "1:23 error: mcpServers.a does not say how it is reached; did you mean command where comand stands?",
  ],
  [
    "the url of another client",
    '{"mcpServers": {"a": {"httpUrl": "https://x"}}}',
    "seen",
    "1:23 error: mcpServers.a does not say how it is reached; did you mean url where httpUrl stands?",
  ],
  [
    "a name that every object has",
    '{"mcpServers": {"a": {"constructor": "x"}}}',
    "seen",
    '1:17 error: mcpServers.a does not say how it is reached; write "command" for a program to start, or "url" for an address over HTTP, or "module" for a module that exports a server',
  ],
  [
    "both command and url",
    '{"mcpServers": {"a": {"command": "x", "url": "https://x"}}}',
    "seen",
    "1:39 error: mcpServers.a has both command and url; keep the one by which it is reached",
  ],
  [
    "arguments of an address",
    '{"mcpServers": {"a": {"url": "https://x", "args": []}}}',
    "unseen",
    "1:43 warning: mcpServers.a.args is passed over; it goes with command, not with url",
  ],
  [
    "an empty command",
    '{"mcpServers": {"a": {"command": ""}}}',
    "seen",
    "1:34 error: mcpServers.a.command is no command; write the program to start, such as npx",
  ],
  [
    "arguments in one text",
    '{"mcpServers": {"a": {"command": "x", "args": "-y z"}}}',
    "seen",
    '1:47 error: mcpServers.a.args must be a list of texts, such as ["-y", "notes-mcp"], and is a text',
  ],
  [
    "an argument that is a number",
    '{"mcpServers": {"a": {"command": "x", "args": [1]}}}',
    "seen",
    "1:48 error: mcpServers.a.args[0] must be a text, and is a number",
  ],
  [
    "a list in env",
    '{"mcpServers": {"a": {"command": "x", "env": {"A": []}}}}',
    "seen",
    "1:52 error: mcpServers.a.env.A must be a text, and is a list",
  ],
  [
    "null in env",
    '{"mcpServers": {"a": {"command": "x", "env": {"A": null}}}}',
    "unseen",
    "1:52 warning: mcpServers.a.env.A is null and passed over; nothing is taken away from the environment of a command; unset it for the gateway itself",
  ],
  [
    "a folder that is not there",
    '{"mcpServers": {"a": {"command": "x", "cwd": "./nowhere"}}}',
    "unseen",
    "1:46 warning: mcpServers.a.cwd names a folder that is not there; looked for at FOLDER/nowhere",
  ],
  [
    "a home that only a shell knows",
    '{"mcpServers": {"a": {"command": "x", "cwd": "~/nowhere"}}}',
    "unseen",
    "1:46 warning: mcpServers.a.cwd names a folder that is not there; write ${userHome} for ~, which only a shell understands",
  ],
  [
    "an envFile that is not there",
    '{"mcpServers": {"a": {"command": "x", "envFile": "${API_KEY}.env"}}}',
    "unseen",
    "1:50 error: mcpServers.a.envFile names a file that is not there; look at the variables in it",
  ],
  [
    "a module that is not there",
    '{"mcpServers": {"a": {"module": "./nowhere.ts"}}}',
    "unseen",
    "1:33 error: mcpServers.a.module names a file that is not there; looked for at FOLDER/nowhere.ts",
  ],
  [
    "a url that is none",
    '{"mcpServers": {"a": {"url": "example.com"}}}',
    "seen",
    "1:30 error: mcpServers.a.url is no address over HTTP; write one that begins with https:// or http://, without a name or password in it",
  ],
  [
    "a url with a password",
    '{"mcpServers": {"a": {"url": "https://me:s3cret@example.com"}}}',
    "unseen",
    "1:30 error: mcpServers.a.url is no address over HTTP; write one that begins with https:// or http://, without a name or password in it",
  ],
  [
    "a url that is none because of a variable",
    '{"mcpServers": {"a": {"url": "${NOT_A_URL}/mcp"}}}',
    "unseen",
    "1:30 error: mcpServers.a.url is no address over HTTP, once its variables are put in; write one that begins with https:// or http://, without a name or password in it",
  ],
  [
    "a header whose name has a space in it",
    '{"mcpServers": {"a": {"url": "https://x", "headers": {"Bad Header": "x"}}}}',
    "unseen",
    '1:55 error: "Bad Header" is no name of a header; it has letters, digits and -, and no spaces',
  ],
  [
    "a header of two lines",
    '{"mcpServers": {"a": {"url": "https://x", "headers": {"A": "x\\ny"}}}}',
    "unseen",
    "1:60 error: mcpServers.a.headers.A cannot stand in a header; write it on one line, in Latin letters",
  ],
  [
    "a wire that there is not",
    '{"mcpServers": {"a": {"url": "https://x", "type": "htp"}}}',
    "seen",
    '1:51 error: mcpServers.a.type must be one of "stdio", "http", "streamable-http", "streamableHttp", "sse"; did you mean http?',
  ],
  [
    "a wire that does not fit",
    '{"mcpServers": {"a": {"url": "https://x", "type": "stdio"}}}',
    "unseen",
    "1:51 error: mcpServers.a.type does not go with a url; leave it out, or say by a command how the end is reached",
  ],
  [
    "a transport that does not fit",
    '{"mcpServers": {"a": {"command": "x", "transport": "sse"}}}',
    "unseen",
    "1:52 error: mcpServers.a.transport does not go with a command; leave it out, or say by a url how the end is reached",
  ],
  [
    "an unknown share",
    '{"mcpServers": {"a": {"command": "x", "share": "share"}}}',
    "seen",
    '1:48 error: mcpServers.a.share must be one of "shared", "per-session", "per-caller", "per-request"; did you mean shared?',
  ],
  [
    "an unknown revision",
    '{"mcpServers": {"a": {"command": "x", "revision": "2020-01-01"}}}',
    "unseen",
    `1:51 error: mcpServers.a.revision must be one of ${REVISIONS.map(({ name }) => `"${name}"`).join(", ")}`,
  ],
  [
    "a timeout in seconds",
    '{"mcpServers": {"a": {"command": "x", "timeout": 60}}}',
    "unseen",
    "1:50 warning: mcpServers.a.timeout is less than a second; it is counted in milliseconds: write 60000 if seconds are meant",
  ],
  [
    "a timeout that is a text",
    '{"mcpServers": {"a": {"command": "x", "timeout": "60000"}}}',
    "seen",
    "1:50 error: mcpServers.a.timeout must be a number of milliseconds, or {idleMs, totalMs}, and is a text; write it without quotes",
  ],
  [
    "a timeout that is too long",
    '{"mcpServers": {"a": {"command": "x", "timeout": 1e12}}}',
    "seen",
    "1:50 error: mcpServers.a.timeout must be a number of milliseconds from 0 to 2147483647",
  ],
  [
    "a timeout with a name that there is not",
    '{"mcpServers": {"a": {"command": "x", "timeout": {"idle": 1}}}}',
    "seen",
    "1:51 error: mcpServers.a.timeout.idle is not known; did you mean idleMs?",
  ],
  [
    "a restart that is none",
    '{"mcpServers": {"a": {"command": "x", "restart": {"most": 0}}}}',
    "seen",
    "1:59 error: mcpServers.a.restart.most must be a whole number above 0",
  ],
  [
    "disabled as a text",
    '{"mcpServers": {"a": {"command": "x", "disabled": "no"}}}',
    "seen",
    "1:51 error: mcpServers.a.disabled must be true or false, and is a text",
  ],
  [
    "a key that is nearly ours",
    '{"mcpServers": {"a": {"command": "x", "arg": []}}}',
    "unseen",
    "1:39 warning: mcpServers.a.arg is passed over; did you mean args?",
  ],
  [
    "a name that cannot stand before others",
    '{"mcpServers": {"my notes": {"command": "x"}}}',
    "unseen",
    '1:17 warning: Tools that need the name of mcpServers["my notes"] are called my_notes.name; it may have up to 32 letters, digits, _ and -, to be used as it is',
  ],
];
