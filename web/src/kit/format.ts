// How times, durations, counts and sizes are written.

const pad = (value: number, digits = 2): string => String(value).padStart(digits, "0");

/** 14:41:07.2, in the time zone of the browser. */
export function clock(at: number): string {
  const time = new Date(at);
  return `${minute(at)}:${pad(time.getSeconds())}.${Math.floor(time.getMilliseconds() / 100)}`;
}

/** 14:41. */
export function minute(at: number): string {
  const time = new Date(at);
  return `${pad(time.getHours())}:${pad(time.getMinutes())}`;
}

/** How long something took: 0.03 ms, 4 ms, 486 ms, 5.1 s, 3 min. */
export function duration(ms: number): string {
  if (ms < 1) return `${ms < 0.005 ? "0" : ms.toFixed(2)} ms`;
  if (ms < 10) return `${Number(ms.toFixed(1))} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  return shortSpan(ms);
}

/** A span of time without its small parts: 3 s, 12 min, 3 h, 2 d. */
export function shortSpan(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

/** "3 s ago". */
export function ago(at: number, now: number): string {
  return now - at < 1500 ? "now" : `${shortSpan(now - at)} ago`;
}

/** The client that the calls made on these pages come from. */
export const CONSOLE_CLIENT = "catenary-console";

/** A client as a person knows it: the calls made on these pages are of the reader, unless another principal made them. */
export function whoText(client: string, principal?: string): string {
  const isOwn = client === CONSOLE_CLIENT || client.startsWith(`${CONSOLE_CLIENT} `);
  return isOwn && (principal === undefined || principal === "console") ? "you" : client;
}

/** 1,204. */
export function count(value: number): string {
  return value.toLocaleString("en");
}

/** "1 tool", "3 tools". */
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

/** 340 B, 1.1 kB, 2 MB. */
export function bytes(value: number): string {
  if (value < 1000) return `${value} B`;
  if (value < 1_000_000) return `${Number((value / 1000).toFixed(1))} kB`;
  return `${Number((value / 1_000_000).toFixed(1))} MB`;
}
