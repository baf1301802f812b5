// Draws docs/speed.svg: a group of bars for each row of a table, one bar for each implementation, from its ratio to the
// baseline. The colors follow the reader's color scheme; the background is part of the picture, so that the text is
// readable on any page.

import { OURS } from "./figures.ts";

/** The ratios of one row to its baseline, by implementation. */
export interface ChartRow {
  readonly name: string;
  readonly ratios: Readonly<Record<string, number>>;
}

const WIDTH = 860;
const MARGIN = 28;
const BARS_LEFT = 310;
/** At the right of the longest bar, for its value. */
const VALUE_WIDTH = 64;
const HEADER_HEIGHT = 120;
const GROUP_GAP = 16;
const BAR_STEP = 22;
const BAR_HEIGHT = 12;
/** Of the text beside a bar. */
const BASELINE = BAR_HEIGHT - 1.5;

const TITLE = "CPU time of a call";
const SUBTITLE = "Times that of a bare Node program which does the same work without the protocol. Shorter is better.";

const STYLE = `
    text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #59636e; }
    .title { font-size: 18px; font-weight: 600; fill: #1f2328; }
    .group { font-weight: 600; fill: #1f2328; }
    .value { font-variant-numeric: tabular-nums; }
    .ours { font-weight: 600; fill: #0969da; }
    .name { text-anchor: end; }
    .one { text-anchor: middle; font-size: 12px; }
    .card { fill: #ffffff; stroke: #d1d9e0; }
    .bar { fill: #c8d1da; }
    .our-bar { fill: #0969da; }
    .line { stroke: #818b98; }
    @media (prefers-color-scheme: dark) {
      text { fill: #9198a1; }
      .title, .group { fill: #f0f6fc; }
      .ours { fill: #4493f8; }
      .card { fill: #0d1117; stroke: #3d444d; }
      .bar { fill: #3d444d; }
      .our-bar { fill: #4493f8; }
      .line { stroke: #656c76; }
    }`;

export function drawChart(rows: readonly ChartRow[]): string {
  const largest = Math.max(1, ...rows.flatMap(({ ratios }) => Object.values(ratios)));
  const scale = (WIDTH - MARGIN - VALUE_WIDTH - BARS_LEFT) / largest;
  const lines: string[] = [];
  let y = HEADER_HEIGHT;
  for (const { name, ratios } of rows) {
    lines.push(`<text class="group" x="${MARGIN}" y="${y + BASELINE}">${escapeXml(name)}</text>`);
    for (const [who, ratio] of Object.entries(ratios).toSorted(([, a], [, b]) => a - b)) {
      lines.push(...drawBar(who, ratio, ratio * scale, y));
      y += BAR_STEP;
    }
    y += GROUP_GAP;
  }
  const bottom = y - GROUP_GAP - BAR_STEP + BAR_HEIGHT;
  const height = bottom + MARGIN;
  const one = Math.round(BARS_LEFT + scale) + 0.5;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-labelledby="title desc">
  <title id="title">${TITLE}</title>
  <desc id="desc">${escapeXml(`${SUBTITLE} ${rows.map(describeRow).join(" ")}`)}</desc>
  <style>${STYLE}
  </style>
  <rect class="card" x="0.5" y="0.5" width="${WIDTH - 1}" height="${height - 1}" rx="9.5" />
  <text class="title" x="${MARGIN}" y="42">${TITLE}</text>
  <text x="${MARGIN}" y="64">${SUBTITLE}</text>
  ${lines.join("\n  ")}
  <text class="one" x="${one}" y="${HEADER_HEIGHT - 18}">bare Node</text>
  <line class="line" x1="${one}" y1="${HEADER_HEIGHT - 10}" x2="${one}" y2="${bottom + 6}" />
</svg>
`;
}

function drawBar(who: string, ratio: number, width: number, y: number): string[] {
  const [bar, text] = who === OURS ? ["our-bar", " ours"] : ["bar", ""];
  const end = (BARS_LEFT + width).toFixed(1);
  const base = y + BASELINE;
  return [
    `<text class="name${text}" x="${BARS_LEFT - 10}" y="${base}">${escapeXml(who)}</text>`,
    `<path class="${bar}" d="M${BARS_LEFT} ${y}H${(BARS_LEFT + width - 2).toFixed(1)}q2 0 2 2v${BAR_HEIGHT - 4}q0 2-2 2H${BARS_LEFT}z" />`,
    `<text class="value${text}" x="${Number(end) + 8}" y="${base}">${ratio.toFixed(ratio < 10 ? 2 : 1)}x</text>`,
  ];
}

function describeRow({ name, ratios }: ChartRow): string {
  return `${name}: ${Object.entries(ratios)
    .map(([who, ratio]) => `${who} ${ratio.toFixed(2)}x`)
    .join(", ")}.`;
}

function escapeXml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}
