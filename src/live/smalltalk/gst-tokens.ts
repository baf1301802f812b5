// Tokens of Smalltalk source, and the variables that a piece of code declares and assigns. GNU Smalltalk keeps no names
// of arguments and temporaries in compiled code, so they are read from the source here and sent along with it.

export interface Token {
  readonly type: "name" | "keyword" | "string" | "number" | "symbol" | "character" | "binary" | "mark" | "assign";
  readonly text: string;
  /** The index of its first character, and of the character after its last. */
  readonly start: number;
  readonly end: number;
}

/** The arguments and temporaries of a method or block, and the lines that it takes up. */
export interface Scope {
  readonly firstLine: number;
  readonly lastLine: number;
  /** Its number among the blocks in the order in which they end, as the compiler keeps them; 0 for the code itself. */
  readonly order: number;
  readonly parameters: readonly string[];
  readonly temporaries: readonly string[];
}

/** The types in the order of the groups below. */
const TYPES = [
  ...["space", "string", "character", "assign", "symbol", "keyword", "name", "number", "binary", "mark"],
] as readonly (Token["type"] | "space")[];
const TOKEN = new RegExp(
  [
    /([\s]+|"[^"]*(?:"|$))/,
    /(#?'[^']*(?:''[^']*)*(?:'|$))/,
    /(\$[^])/,
    /(:=)/,
    /(#(?:[A-Za-z_][\w]*:?(?:[A-Za-z_][\w]*:)*|[-+*/\\~<>=@%|&?,]+))/,
    /([A-Za-z_]\w*:(?!=))/,
    /([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)/,
    /(\d+r-?[0-9A-Z]+|\d+(?:\.\d+)?(?:[edqs]-?\d*)?)/,
    /([-+*/\\~<>=@%|&?,]+)/,
    /([^])/,
  ]
    .map(({ source }) => source)
    .join("|"),
  "y",
);

/** Splits the source into tokens. An unfinished string or comment ends with the source. */
export function tokenize(source: string): readonly Token[] {
  const tokens: Token[] = [];
  for (let start = 0; start < source.length;) {
    TOKEN.lastIndex = start;
    const match = TOKEN.exec(source) as RegExpExecArray;
    const [text] = match;
    const end = start + text.length;
    let group = 1;
    while (match[group] === undefined) group += 1;
    const type = TYPES[group - 1] ?? "mark";
    // `||` is an empty declaration, and `|-3` ends one.
    if (type === "binary" && text.startsWith("|") && text.length > 1) {
      tokens.push({ type: "binary", text: "|", start, end: start + 1 });
      start += 1;
      continue;
    }
    if (type !== "space") tokens.push({ type, text, start, end });
    start = end;
  }
  return tokens;
}

export function isMark(token: Token | undefined, text: string): boolean {
  return token !== undefined && (token.type === "mark" || token.type === "binary") && token.text === text;
}

/** The index of the next such mark after the token at `i`; -1 if there is none. */
export function nextMark(tokens: readonly Token[], i: number, text: string): number {
  for (let at = i + 1; at < tokens.length; at += 1) if (isMark(tokens[at], text)) return at;
  return -1;
}

/** Finds the lines of a source. */
export class Lines {
  readonly #ends: number[] = [];
  readonly #first: number;

  /** `first` is the number of its first line. */
  constructor(source: string, first = 1) {
    this.#first = first;
    for (let at = source.indexOf("\n"); at !== -1; at = source.indexOf("\n", at + 1)) this.#ends.push(at);
  }

  /** The number of the line at an index. */
  at(index: number): number {
    let low = 0;
    for (let high = this.#ends.length; low < high;) {
      const middle = (low + high) >> 1;
      if ((this.#ends[middle] as number) < index) low = middle + 1;
      else high = middle;
    }
    return this.#first + low;
  }
}

export interface Variables {
  /**
   * The scopes of the code itself (first) and of its blocks, in the order in which they begin, without those that the
   * compiler puts into the code around them.
   */
  readonly scopes: readonly Scope[];
  /** Names that are assigned and not declared. */
  readonly assigned: readonly string[];
  /** The indices where the statements at the top begin. */
  readonly statements: readonly number[];
  /** Names with a capital first letter that are used and not declared. */
  readonly globals: readonly string[];
  /** The places of the declarations at the top. */
  readonly declarations: readonly { readonly start: number; readonly end: number }[];
}

const INLINED = /^(?:if(?:True|False|Nil|NotNil):|and:|or:|timesRepeat:|while(?:True|False):)$/;
const LOOPS = /^(?:while(?:True|False):?|repeat)$/;

/** The indices of the brackets of blocks for which GNU Smalltalk makes no context, such as those of `ifTrue:`. */
function inlinedBlocks(tokens: readonly Token[]): ReadonlySet<number> {
  const positions = new Set<number>();
  const levels: { readonly open: number; keywords: string[] }[] = [{ open: -1, keywords: [] }];
  for (const [at, token] of tokens.entries()) {
    const level = levels.at(-1) as (typeof levels)[number];
    if (token.type === "keyword") level.keywords.push(token.text);
    else if (token.type === "assign" || [".", ";", "^"].some((mark) => isMark(token, mark))) level.keywords = [];
    else if (["[", "(", "{"].some((mark) => isMark(token, mark))) {
      const before = tokens[at - 1];
      const isLoop = /^to: (?:by: )?do:$/.test(level.keywords.join(" ")) && before?.text === "do:";
      const isArgument = before?.type === "keyword" && (INLINED.test(before.text) || isLoop);
      if (isMark(token, "[") && isArgument) positions.add(at);
      levels.push({ open: at, keywords: [] });
    } else if (["]", ")", "}"].some((mark) => isMark(token, mark)) && levels.length > 1) {
      levels.pop();
      if (isMark(tokens[level.open], "[") && LOOPS.test(tokens[at + 1]?.text ?? "")) positions.add(level.open);
    }
  }
  return positions;
}

type OpenScope = { -readonly [Key in keyof Scope]: Scope[Key] } & {
  readonly temporaries: string[];
  readonly isInlined: boolean;
};

/** Reads the body of a method or the statements of an evaluation. `parameters` are those of the method. */
export function readVariables(source: string, parameters: readonly string[] = []): Variables {
  const tokens = tokenize(source);
  const scopes: OpenScope[] = [];
  const open: OpenScope[] = [];
  const assigned = new Set<string>();
  const statements: number[] = [];
  const globals = new Set<string>();
  const declarations: { start: number; end: number }[] = [];
  const declared = new Set<string>();
  /** How many of the open scopes declare a name. */
  const counts = new Map<string, number>();
  const count = (names: readonly string[], by: number): void => {
    for (const name of names) counts.set(name, (counts.get(name) ?? 0) + by);
    for (const name of names) declared.add(name);
  };
  const lines = new Lines(source);
  const inlined = inlinedBlocks(tokens);
  const begin = (start: number, names: readonly string[], isInlined = false): void => {
    const line = lines.at(start);
    const scope = { firstLine: line, lastLine: line, order: 0, parameters: names, temporaries: [], isInlined };
    count(names, 1);
    if (!isInlined) scopes.push(scope);
    open.push(scope);
  };
  begin(0, parameters);
  let isStart = true;
  let nesting = 0;
  let ended = 0;
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i] as Token;
    const scope = open.at(-1) as OpenScope;
    if (isMark(token, "|") && isStart) {
      const end = nextMark(tokens, i, "|");
      const names = tokens.slice(i + 1, end === -1 ? undefined : end).map(({ text }) => text);
      for (const name of names) scope.temporaries.push(name);
      count(names, 1);
      if (open.length === 1) declarations.push({ start: token.start, end: tokens[end]?.end ?? source.length });
      if (end === -1) break;
      i = end;
      continue;
    }
    if (isStart && open.length === 1 && nesting === 0 && token.text !== "." && token.text !== "!")
      statements.push(token.start);
    isStart = false;
    if (token.type === "assign") {
      const { type, text: name = "" } = tokens[i - 1] ?? {};
      if (type === "name" && (counts.get(name) ?? 0) === 0) assigned.add(name);
    } else if (token.type === "name" && /^[A-Z]/.test(token.text)) globals.add(token.text);
    else if (token.type !== "mark") continue;
    else if (token.text === "[") {
      const names: string[] = [];
      const isInlined = inlined.has(i);
      while (isMark(tokens[i + 1], ":") && tokens[i + 2]?.type === "name") {
        names.push((tokens[i + 2] as Token).text);
        i += 2;
      }
      if (names.length > 0 && isMark(tokens[i + 1], "|")) i += 1;
      begin(token.start, names, isInlined);
      isStart = true;
    } else if (token.text === "]") {
      scope.lastLine = lines.at(token.start);
      if (open.length === 1) continue;
      if (!scope.isInlined) scope.order = ended += 1;
      open.pop();
      count([...scope.parameters, ...scope.temporaries], -1);
    } else if (token.text === "." && nesting === 0) isStart = true;
    else if (token.text === "(" || token.text === "{") nesting += 1;
    else if (token.text === ")" || token.text === "}") nesting -= 1;
  }
  const lastLine = lines.at(source.length);
  for (const scope of open) scope.lastLine = lastLine;
  const used = [...globals].filter((name) => !declared.has(name));
  return { scopes, assigned: [...assigned], globals: used, statements, declarations };
}
