// Rewrites TypeScript namespaces, which sucrase drops, as functions that fill an object. All edits stay in their lines, so
// stack traces and source maps show the lines that the author wrote.

/** What we use of the tokens of sucrase. */
export interface Token {
  readonly type: number;
  readonly start: number;
  readonly end: number;
  readonly isType: boolean;
  readonly scopeDepth: number;
}

export interface Tokenizer {
  readonly tokenize: (source: string) => readonly Token[];
  readonly isDeclaration: (token: Token) => boolean;
  readonly kinds: Readonly<Record<Kind, number>>;
}

type Bracket = "braceL" | "braceR" | "bracketL" | "bracketR" | "dollarBraceL" | "parenL" | "parenR";
type Kind = Bracket | "comma" | "dot" | "eq" | "name" | "semi" | "_const" | "_enum" | "_export" | "_let" | "_var";

interface Header {
  readonly start: number;
  /** Where the body begins, with its brace. */
  readonly open: number;
  /** More than one for `namespace A.B { }`. */
  readonly names: readonly string[];
  readonly isExported: boolean;
}

/** A namespace with values, as a block of `tokens`. */
interface Block extends Header {
  /** The indexes of its braces. */
  readonly from: number;
  readonly to: number;
}

interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Throws if the syntax is not valid. Namespaces that contain only types, or are declared, stay: sucrase drops them. */
export function rewriteNamespaces(source: string, tokenizer: Tokenizer): string {
  return new Rewriter(source, tokenizer).rewrite();
}

class Rewriter {
  readonly #source: string;
  readonly #tokenizer: Tokenizer;
  readonly #edits: Edit[] = [];
  #tokens: readonly Token[] = [];

  constructor(source: string, tokenizer: Tokenizer) {
    this.#source = source;
    this.#tokenizer = tokenizer;
  }

  rewrite(): string {
    this.#tokens = this.#tokenizer.tokenize(this.#source);
    const headers = this.#headers();
    // Without their headers, namespaces are blocks. In these, the parser tells declarations of values from types.
    let blocks = this.#source;
    for (const { start, open } of headers) {
      blocks = blocks.slice(0, start) + blocks.slice(start, open).replace(/[^\n]/g, " ") + blocks.slice(open);
    }
    this.#tokens = this.#tokenizer.tokenize(blocks);
    const found = headers.map((header) => this.#block(header)).filter((block) => this.#hasValues(block));
    for (const block of found) this.#edit(block, found);
    let text = this.#source;
    for (const { start, end, text: inserted } of this.#edits.toSorted((a, b) => b.start - a.start)) {
      text = text.slice(0, start) + inserted + text.slice(end);
    }
    return text;
  }

  #text(index: number): string {
    const token = this.#tokens[index];
    return token === undefined ? "" : this.#source.slice(token.start, token.end);
  }

  #is(index: number, ...kinds: Kind[]): boolean {
    const type = this.#tokens[index]?.type;
    return kinds.some((kind) => this.#tokenizer.kinds[kind] === type);
  }

  #headers(): Header[] {
    const headers: Header[] = [];
    for (let at = 0; at < this.#tokens.length; at++) {
      const token = this.#tokens[at];
      if (token?.isType !== true || !/^(?:namespace|module|global)$/.test(this.#text(at))) continue;
      let end = at + (this.#text(at) === "global" ? 0 : 1);
      while (this.#is(end + 1, "dot")) end += 2;
      const body = this.#tokens[end + 1];
      if (body === undefined || !this.#is(end + 1, "braceL")) continue;
      // Everything in a declared one is a type.
      if (this.#text(at - 1) === "declare" || !this.#is(end, "name") || end === at) at = this.#closing(end + 1);
      else {
        const names = this.#source.slice(this.#tokens[at + 1]?.start, this.#tokens[end]?.end).split(".");
        const isExported = this.#is(at - 1, "_export");
        const start = (isExported ? this.#tokens[at - 1] : token)?.start ?? token.start;
        headers.push({ start, open: body.start, names: names.map((name) => name.trim()), isExported });
      }
    }
    return headers;
  }

  /** The index of the brace that closes the one at an index. */
  #closing(open: number): number {
    for (let at = open + 1, depth = 0; at < this.#tokens.length; at++) {
      if (this.#is(at, "braceL", "dollarBraceL")) depth++;
      else if (this.#is(at, "braceR") && depth-- === 0) return at;
    }
    return this.#tokens.length;
  }

  #block(header: Header): Block {
    const from = this.#tokens.findIndex(({ start }) => start === header.open);
    return { ...header, from, to: this.#closing(from) };
  }

  #hasValues({ from, to }: Block): boolean {
    for (let at = from + 1; at < to; at++) {
      if (this.#tokens[at]?.isType === false && !this.#is(at, "braceL", "braceR", "semi")) return true;
    }
    return false;
  }

  #edit(block: Block, all: readonly Block[]): void {
    const { from, to, names, start, open, isExported } = block;
    const [name = "", ...inner] = names;
    const parent = all.findLast((other) => other.from < from && other.to > to);
    const siblings = all.filter((other) => other !== block && isDirectlyIn(other, parent, all));
    const exported = new Set(this.#exports(block));
    for (const child of all) {
      if (child.isExported && isDirectlyIn(child, block, all)) exported.add(child.names[0] ?? "");
    }
    const isDeclared =
      siblings.some((other) => other.from < from && other.names[0] === name) || this.#declares(parent, name);
    const declaration = isDeclared ? "" : `${isExported && parent === undefined ? "export " : ""}var ${name}`;
    const properties = [...exported].map(
      (one) =>
        `${one}: { enumerable: true, configurable: true, get: () => ${one}, set: (value) => { ${one} = value; } }`,
    );
    const header = [
      `${declaration}; (function ($namespace) {`,
      ...inner.map((one) => ` var ${one} = $namespace.${one} ||= {}; (function ($namespace) {`),
      properties.length === 0 ? "" : ` Object.defineProperties($namespace, { ${properties.join(", ")} });`,
      // Those of a header in several lines.
      this.#source.slice(start, open).replace(/[^\n]/g, ""),
    ];
    this.#edits.push({ start, end: open + 1, text: header.join("") });
    const end = this.#tokens[to]?.start ?? this.#source.length;
    const footer = [...inner.toReversed().map((one) => `})(${one}); `), `})(${name} ||= {});`];
    this.#edits.push({ start: end, end: end + 1, text: footer.join("") });
  }

  /** Removes the `export` of each value in a namespace, and returns the names of the values. */
  #exports({ from, to }: Block): string[] {
    const names: string[] = [];
    for (const at of this.#directlyIn(from, to)) {
      const token = this.#tokens[at];
      if (token === undefined || token.isType || !this.#is(at, "_export")) continue;
      this.#edits.push({ start: token.start, end: token.end, text: "" });
      const isVariable = this.#is(at + 1, "_const", "_let", "_var") && !this.#is(at + 2, "_enum");
      if (isVariable) names.push(...this.#variables(at + 1, to));
      else {
        const named = this.#tokens.findIndex(
          (one, index) =>
            index > at && !one.isType && this.#is(index, "name") && !/^(?:async|abstract)$/.test(this.#text(index)),
        );
        names.push(this.#text(named));
      }
    }
    return names;
  }

  /** The names of a declaration such as `const a = 1, { b } = c`. */
  #variables(keyword: number, to: number): string[] {
    const names: string[] = [];
    const { scopeDepth } = this.#tokens[keyword] ?? {};
    let isPattern = true;
    let depth = 0;
    for (let at = keyword + 1; at < to; at++) {
      const token = this.#tokens[at];
      if (token === undefined || token.isType) continue;
      if (this.#is(at, "braceL", "dollarBraceL", "bracketL", "parenL")) depth++;
      else if (this.#is(at, "braceR", "bracketR", "parenR")) depth--;
      else if (depth === 0 && this.#is(at, "semi", "_const", "_let", "_var", "_export")) return names;
      else if (depth === 0 && this.#is(at, "eq")) isPattern = false;
      else if (depth === 0 && this.#is(at, "comma")) isPattern = true;
      else if (isPattern && token.scopeDepth === scopeDepth && this.#tokenizer.isDeclaration(token)) {
        names.push(this.#text(at));
      }
    }
    return names;
  }

  /** The indexes of the tokens between two others that are in no brackets. */
  *#directlyIn(from: number, to: number): Generator<number> {
    for (let at = from + 1, depth = 0; at < to; at++) {
      if (this.#is(at, "braceL", "dollarBraceL", "bracketL", "parenL")) depth++;
      else if (this.#is(at, "braceR", "bracketR", "parenR")) depth--;
      else if (depth === 0) yield at;
    }
  }

  /** Whether a class, function or enum has the name, beside the namespaces in a parent. */
  #declares(parent: Block | undefined, name: string): boolean {
    for (const at of this.#directlyIn(parent?.from ?? -1, parent?.to ?? this.#tokens.length)) {
      const token = this.#tokens[at];
      if (token !== undefined && !token.isType && this.#text(at) === name && this.#tokenizer.isDeclaration(token)) {
        return true;
      }
    }
    return false;
  }
}

function isDirectlyIn(block: Block, parent: Block | undefined, all: readonly Block[]): boolean {
  return all.findLast((other) => other.from < block.from && other.to > block.to) === parent;
}
