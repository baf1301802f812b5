// Names with stars: `*` stands for any letters, none among them, and everything else for itself. Matched from left to
// right without going back further than the last star, because names come from ends and may be long.

export function matches(glob: string, name: string): boolean {
  const [first = "", ...rest] = glob.split("*");
  const last = rest.pop();
  if (last === undefined) return glob === name;
  if (!name.startsWith(first) || name.length < first.length + last.length || !name.endsWith(last)) return false;
  const until = name.length - last.length;
  let at = first.length;
  for (const part of rest) {
    const found = name.indexOf(part, at);
    if (found === -1 || found + part.length > until) return false;
    at = found + part.length;
  }
  return true;
}
