// How many columns of a terminal a text takes, and a text cut so that it takes no more than there are. Near enough for
// a line that is redrawn in place and must not wrap: East Asian letters and emoji are wide, combining marks are nothing.

const NOTHING = /^[\p{Mn}\p{Me}\p{Cf}]$/u;
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f680}-\u{1f6ff}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]$/u;

export function widthOf(text: string): number {
  let width = 0;
  for (const letter of text) width += columnsOf(letter);
  return width;
}

/** At most so many columns wide; where something had to go, it ends in "...". */
export function cutTo(columns: number, text: string): string {
  if (widthOf(text) <= columns) return text;
  const room = Math.max(columns - 3, 0);
  let cut = "";
  let width = 0;
  for (const letter of text) {
    width += columnsOf(letter);
    if (width > room) break;
    cut += letter;
  }
  return `${cut}${"...".slice(0, columns)}`;
}

export function padTo(columns: number, text: string): string {
  return text + " ".repeat(Math.max(columns - widthOf(text), 0));
}

function columnsOf(letter: string): number {
  if (letter <= "\x7e") return 1;
  if (NOTHING.test(letter)) return 0;
  return WIDE.test(letter) ? 2 : 1;
}
