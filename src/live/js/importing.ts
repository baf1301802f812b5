// Static imports, and exports from other modules, said with `import()`: the same names get the same values, but what
// the module changes later is not seen.

import type { ImportDeclaration, Node } from "acorn";

interface From extends Node {
  readonly source: Node;
  readonly attributes?: readonly (Node & { readonly key: Node; readonly value: Node })[];
}

/** The names that it declares. */
export function importNames(node: Node): string[] {
  return node.type === "ImportDeclaration" ? (node as ImportDeclaration).specifiers.map(({ local }) => local.name) : [];
}

/** The statements in its place; `box` is what has `a` (awaits) and `i` (checks that the names are there). */
export function importText(node: Node, text: string, box: string): string {
  const { source, attributes = [] } = node as From;
  const raw = (part: Node): string => text.slice(part.start, part.end);
  const pairs = attributes.map(({ key, value }) => `${raw(key)}:${raw(value)}`).join(",");
  const loaded = `await ${box}.a(import(${raw(source)}${pairs === "" ? "" : `,{with:{${pairs}}}`}))`;
  const specifiers = node.type === "ImportDeclaration" ? (node as ImportDeclaration).specifiers : [];
  if (specifiers.length === 0) return `;${loaded};`;
  const all = specifiers.find(({ type }) => type === "ImportNamespaceSpecifier");
  const named: [key: string, local: string][] = [];
  for (const specifier of specifiers) {
    if (specifier.type === "ImportDefaultSpecifier") named.push(["default", specifier.local.name]);
    if (specifier.type !== "ImportSpecifier") continue;
    const { imported } = specifier;
    const key = imported.type === "Identifier" ? imported.name : String(imported.value);
    named.push([key, specifier.local.name]);
  }
  if (all !== undefined) {
    const others = named.map(([key, local]) => `${local}=${all.local.name}[${JSON.stringify(key)}];`).join("");
    return `;${all.local.name}=${loaded};${others}`;
  }
  const keys = JSON.stringify(named.map(([key]) => key));
  const pattern = named.map(([key, local]) => `${JSON.stringify(key)}:${local}`).join(",");
  return `;({${pattern}}=${box}.i(${loaded},${raw(source)},${keys}));`;
}
