// Shows what a reader cannot see in a text, since that is where instructions to a model hide.

/** What a reader cannot see or tell apart from a space: control and format characters, fillers, odd spaces. */
const INVISIBLE = /(?! )[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}\u2800]/gu;

/** Shows invisible characters as escapes, such as `\u{e0041}`. */
export function visible(text: string): string {
  const escape = (character: string): string => `\\u{${character.codePointAt(0)?.toString(16)}}`;
  return text.replaceAll("\t", "    ").replaceAll(INVISIBLE, escape);
}
