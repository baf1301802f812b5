// Fills in a URI template (RFC 6570) with the values of a form.

const EXPRESSION = /\{([+#./;?&]?)([^{}]+)\}/g;

export interface Variable {
  readonly name: string;
  /** Those of a query, a fragment or path parameters may be left out. */
  readonly required: boolean;
  readonly minLength: number;
}

/** The variables, each once. */
export function variablesOf(template: string): readonly Variable[] {
  const variables = new Map<string, Variable>();
  for (const [, operator = "", list = ""] of template.matchAll(EXPRESSION)) {
    const required = !/[?&;#]/.test(operator);
    for (const part of list.split(",")) {
      const name = part.replace(/[:*].*$/, "");
      if (name !== "") variables.set(name, { name, required, minLength: required ? 1 : 0 });
    }
  }
  return [...variables.values()];
}

const SEPARATORS: Readonly<Record<string, readonly [first: string, between: string]>> = {
  "": ["", ","],
  "+": ["", ","],
  "#": ["#", ","],
  ".": [".", "."],
  "/": ["/", "/"],
  ";": [";", ";"],
  "?": ["?", "&"],
  "&": ["&", "&"],
};

/** The URI. Variables without a value are left out. */
export function expandTemplate(template: string, values: Readonly<Record<string, unknown>>): string {
  return template.replaceAll(EXPRESSION, (_whole, operator: string, list: string) => {
    const [first, between] = SEPARATORS[operator] ?? ["", ","];
    const isNamed = operator === ";" || operator === "?" || operator === "&";
    const isReserved = operator === "+" || operator === "#";
    const parts = list.split(",").flatMap((variable) => {
      const [name = "", length] = variable.replace(/\*$/, "").split(":");
      const value = values[name];
      if (value === undefined) return [];
      const text = (typeof value === "string" ? value : JSON.stringify(value)).slice(
        0,
        length === undefined ? undefined : Number(length),
      );
      const encoded = isReserved ? encodeURI(text) : encodeURIComponent(text);
      return [isNamed ? `${name}=${encoded}` : encoded];
    });
    return parts.length === 0 ? "" : first + parts.join(between);
  });
}

/** The value of the only variable of a template with which it is the URI. */
export function valuesIn(template: string, uri: string): Readonly<Record<string, string>> | undefined {
  const [, head = "", name = "", tail = ""] = /^([^{}]*)\{(\w+)\}([^{}]*)$/.exec(template) ?? [];
  if (name === "" || !uri.startsWith(head) || !uri.endsWith(tail)) return undefined;
  const value = uri.slice(head.length, uri.length - tail.length);
  const values = { [name]: value };
  return value !== "" && expandTemplate(template, values) === uri ? values : undefined;
}
