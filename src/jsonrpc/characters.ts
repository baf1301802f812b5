// The codes of the characters that JSON is made of, for what reads JSON without parsing it.

export const TAB = 9;
export const NEWLINE = 10;
export const RETURN = 13;
export const SPACE = 32;
export const QUOTE = 34;
export const COMMA = 44;
export const MINUS = 45;
export const COLON = 58;
export const BACKSLASH = 92;
/** With bit 32 set, `[` and `{` both have this code, and `]` and `}` both have that of CLOSE. */
export const BRACE = 123;
export const CLOSE = 125;
