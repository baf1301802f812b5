// The cases of the recording: which transforms stand in front of which upstreams, and with which options. The options
// name items as the upstreams do, with a prefix, and as other transforms rename them, so that each pair has an effect.

import { chain } from "../../../src/chain/chain.ts";
import type { Gateway } from "../../../src/chain/gateway.ts";
import * as middleware from "../../../src/chain/middleware/index.ts";
import type { Middleware } from "../../../src/core/handler.ts";
import { sampleUpstream, type SampleUpstream, type State } from "./upstreams.ts";

export interface TransformContext {
  /** The file of approved definitions. */
  readonly pins: string;
  readonly onHeld: (item: middleware.HeldItem) => void;
}

type CreateTransform = (context: TransformContext) => Middleware;

/** Ada may use everything. Bob may use little. */
const RULES: readonly middleware.AuthorizeRule[] = [
  { callers: ["ada"], scopes: ["notes"] },
  { allow: false, tools: ["open", "notes_search"], prompts: ["greet"], resources: ["note://shared"] },
  { callers: ["bob"], tools: ["*search*", "find*", "open", "long", "read-result", "call-tool", "send"] },
  { scopes: ["mail"], prompts: ["*review", "compose", "hello"], resources: ["mail://*", "*note://*", "memo://*"] },
  { scopes: ["notes"], tools: ["add"] },
];

const TRANSFORMS: Readonly<Record<string, CreateTransform>> = {
  filter: () =>
    middleware.filter({
      tools: { exclude: ["remove", "notes_add", "unlist*", "list all!"] },
      prompts: { include: ["*review", "check*", "greet", "hello", "shift", "compose"], exclude: ["mail_review"] },
      resources: { exclude: ["file:///secret.txt", "mail://{box}", "memo://shared", "ui://notes/*"] },
    }),
  rename: () =>
    middleware.rename({
      // The second takes the name of another tool.
      tools: { search: "find", add: "remove", notes_search: "find_notes", long: "lengthy" },
      prompts: { review: "check", notes_review: "check_notes", greet: "hello" },
      resources: {
        "note://1": "memo://one",
        "note://shared": "memo://shared",
        "notes.note://shared": "memo://of-notes",
        "file:///public/*": "public://*",
        "item://{kind}/{id}": "thing://{kind}/{id}",
      },
      descriptions: { tools: { find: "Finds", remove: "Adds, in fact" }, resources: { "memo://one": "The first" } },
    }),
  describe: () =>
    middleware.describe({
      tools: {
        "*": { icons: [{ src: "https://example.com/icon.png" }] },
        search: { title: "Described search", parameters: { query: "Described" } },
        "*_search": { description: "Described search of one upstream", outputSchema: { type: "object" } },
        add: { annotations: { readOnlyHint: true, title: "Described" } },
        find: { description: "Described by its new name" },
        "call-tool": { description: "Described" },
        shift: { description: "Shifts before" },
      },
      prompts: { "*review": { title: "Described", arguments: { tone: "Described" } }, hello: { title: "Renamed" } },
      resources: { "note://*": { description: "Described" }, "*item://{kind}/{id}": { mimeType: "text/plain" } },
    }),
  readOnly: () => middleware.readOnly({ include: ["call-tool", "send"] }),
  authorize: () => middleware.authorize({ rules: RULES }),
  pin: ({ pins, onHeld }) => middleware.pin({ file: pins, onHeld }),
  inject: () =>
    middleware.inject({
      tools: {
        "*search": { arguments: { apiKey: "KEY" } },
        "find*": { arguments: { apiKey: "KEY of find" } },
        remove: { arguments: { text: "injected" } },
        "call-tool": { arguments: { arguments: { query: "injected" } } },
      },
    }),
  search: () => middleware.search({ include: ["open", "*search", "find*", "read-result"], limit: 5 }),
  shape: () => middleware.shape({ maxChars: 300 }),
};

/** Other options of the same transforms, which are recorded alone. */
const VARIANTS: Readonly<Record<string, CreateTransform>> = {
  "authorize-tell": () => middleware.authorize({ rules: RULES, tell: true }),
  "authorize-decide": () =>
    middleware.authorize({
      decide: ({ principal }, { kind, name }) => principal === "ada" || `${kind}${name}`.length % 2 === 0,
    }),
  "filter-only": () =>
    middleware.filter({ tools: { include: ["s*", "notes_*"] }, resources: { include: ["note://*", "mail.*"] } }),
  "pin-hold": ({ pins, onHeld }) => middleware.pin({ file: `${pins}.held`, first: "hold", onHeld }),
  "read-only-strict": () => middleware.readOnly(),
  "rename-swap": () => middleware.rename({ tools: { search: "open", open: "search" }, resources: { "*": "all+*" } }),
  "search-all": () => middleware.search(),
  "shape-narrow": () => middleware.shape({ maxChars: 60 }),
};

/** `alone` is an upstream without a name, `always` has a prefix before each name, `nested` a gateway behind a gateway. */
const SETUPS = ["one", "two", "alone", "always", "nested"] as const;
type Setup = (typeof SETUPS)[number];

export interface Case {
  readonly name: string;
  /** Whether there is a gateway behind the gateway. */
  readonly isNested: boolean;
  /** Whether the recording is kept as text. */
  readonly isText: boolean;
  /** The path that callers use, if it is not the main one. */
  readonly endpoint?: string;
  open(state: State, context: TransformContext): Opened | Promise<Opened>;
}

const NAMES = Object.keys(TRANSFORMS);

function caseOf(names: readonly string[], setup: Setup): Case {
  const transforms = names.map((name) => (TRANSFORMS[name] ?? VARIANTS[name]) as CreateTransform);
  return {
    name: [...names, setup].join(" "),
    isNested: setup === "nested",
    isText: (setup === "one" || setup === "two") && names.length < 2 && !names.some((name) => name in VARIANTS),
    open: (state, context) => openGateway(transforms, setup, state, context),
  };
}

/** No transform, each transform alone, and variants, in front of all setups of upstreams. */
export const SINGLES: readonly Case[] = [[], ...[...NAMES, ...Object.keys(VARIANTS)].map((name) => [name])].flatMap(
  (names) => SETUPS.map((setup) => caseOf(names, setup)),
);

/** Every ordered pair, also of two of the same kind, in front of one and two upstreams. */
export const PAIRS: readonly Case[] = NAMES.flatMap((outer) =>
  NAMES.flatMap((inner) => (["one", "two"] as const).map((setup) => caseOf([outer, inner], setup))),
);

export interface Opened {
  readonly gateway: Gateway;
  readonly upstreams: Readonly<Record<string, SampleUpstream>>;
}

function openGateway(
  transforms: readonly CreateTransform[],
  setup: Setup,
  state: State,
  context: TransformContext,
): Opened {
  const notes = sampleUpstream("notes", state);
  const mail = sampleUpstream("mail", state);
  const start = chain(...transforms.map((create) => create(context)));
  const both = { notes: notes.handler, mail: mail.handler };
  const onWarning = (): void => undefined;
  switch (setup) {
    case "one":
      return { gateway: start.to({ notes: notes.handler }, { onWarning }), upstreams: { notes } };
    case "alone":
      return { gateway: start.to(notes.handler, { onWarning }), upstreams: { notes } };
    case "two":
      return { gateway: start.to(both, { onWarning }), upstreams: { notes, mail } };
    case "always":
      return { gateway: start.to(both, { names: "always", onWarning }), upstreams: { notes, mail } };
    case "nested": {
      const outer = sampleUpstream("mail", state);
      const inner = chain().to(both, { onWarning });
      return {
        gateway: start.to({ in: inner, mail: outer.handler }, { onWarning }),
        upstreams: { notes, mail, outer },
      };
    }
  }
}
