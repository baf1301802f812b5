// Calls a minute of the last hour: an area for each server, one on another, with errors as bars below. The same figures
// are in a table for those who do not see it.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Minutes } from "../../../src/console/types.ts";
import { count, minute } from "../kit/format.ts";
import { InertText } from "../kit/inert-text.tsx";
import { colorOf, info } from "../state.ts";

const WIDTH = 600;
const BASE = 110;
const TOP = 20;
const ERROR_HEIGHT = 20;
/** So many servers have an area of their own. */
const MAX_SERIES = 5;

interface Series {
  readonly name: string;
  readonly color: string;
  readonly values: readonly number[];
}

/** A gateway that has just started shows fewer minutes, so that its first calls can be seen. */
const FEWEST_MINUTES = 10;

export function CallsChart(props: { readonly minutes: Minutes }): JSX.Element {
  const started = info.value === undefined ? 0 : Date.parse(info.value.startedAt);
  const minutes = lastOf(props.minutes, Math.max(FEWEST_MINUTES, Math.ceil((Date.now() - started) / 60_000) + 1));
  const [at, setAt] = useState<number | undefined>(undefined);
  const series = seriesOf(minutes);
  const length = Math.max(2, ...series.map(({ values }) => values.length));
  const totals = sumOf(series, length);
  const errors = sumOf(
    Object.values(minutes.errors).map((values) => ({ values })),
    length,
  );
  const max = niceMax(Math.max(1, ...totals));
  const step = WIDTH / (length - 1);
  const timeOf = (index: number): number => minutes.last - (length - 1 - index) * 60_000;
  return (
    <div class="chart">
      <div class="row chart-head">
        <h2 class="grow">
          {at === undefined
            ? `Calls a minute, last ${length >= 60 ? "hour" : `${length} minutes`}`
            : `Calls at ${minute(timeOf(at))}`}
        </h2>
        <Legend series={series} errors={errors} at={at} />
      </div>
      <div class="chart-box">
        <span class="chart-max faint" aria-hidden="true">
          {count(max)}
        </span>
        <svg
          viewBox={`0 0 ${WIDTH} 132`}
          preserveAspectRatio="none"
          role="img"
          aria-label={summary(totals, errors)}
          onMouseMove={(event) => {
            const box = event.currentTarget.getBoundingClientRect();
            setAt(
              Math.max(0, Math.min(length - 1, Math.round(((event.clientX - box.left) / box.width) * (length - 1)))),
            );
          }}
          onMouseLeave={() => setAt(undefined)}
        >
          <path class="grid" d={`M0 ${TOP}h${WIDTH}M0 ${(TOP + BASE) / 2}h${WIDTH}M0 ${BASE}h${WIDTH}`} />
          {areas(series, length, max).map(({ name, color, path }) => (
            <path key={name} class={`area ${color}`} d={path} />
          ))}
          {errors.map((value, index) => {
            const height = Math.min(ERROR_HEIGHT, 3 + value * 3);
            return value === 0 ? null : (
              <rect key={index} class="error" x={index * step - 3} y={BASE + 2} width={6} height={height} />
            );
          })}
          {at === undefined ? null : <path class="cursor" d={`M${at * step} 4V${BASE}`} />}
        </svg>
      </div>
      <div class="row chart-times faint" aria-hidden="true">
        {[...new Set([0, 1 / 3, 2 / 3, 1].map((part) => Math.round(part * (length - 1))))].map((index) => (
          <span key={index}>{minute(timeOf(index))}</span>
        ))}
      </div>
      <Figures series={series} errors={errors} timeOf={timeOf} />
    </div>
  );
}

function lastOf({ last, calls, errors }: Minutes, count: number): Minutes {
  const cut = (all: Minutes["calls"]): Minutes["calls"] =>
    Object.fromEntries(Object.entries(all).map(([name, values]) => [name, values.slice(-count)]));
  return { last, calls: cut(calls), errors: cut(errors) };
}

function seriesOf({ calls }: Minutes): readonly Series[] {
  const all = Object.entries(calls)
    .map(([name, values]) => ({ name, values, sum: values.reduce((sum, value) => sum + value, 0) }))
    .filter(({ sum }) => sum > 0)
    .toSorted((one, other) => other.sum - one.sum);
  const shown = all.slice(0, all.length > MAX_SERIES ? MAX_SERIES - 1 : MAX_SERIES);
  const series = shown.map(({ name, values }): Series => {
    return { name: name === "" ? "no server" : name, values, color: colorOf(name === "" ? undefined : name) };
  });
  const rest = all.slice(shown.length);
  if (rest.length === 0) return series;
  const length = Math.max(...rest.map(({ values }) => values.length));
  return [...series, { name: `${rest.length} others`, values: sumOf(rest, length), color: "c-rest" }];
}

function sumOf(series: readonly { readonly values: readonly number[] }[], length: number): number[] {
  return Array.from({ length }, (_, index) => series.reduce((sum, { values }) => sum + (values[index] ?? 0), 0));
}

/** A round number that is not less. */
function niceMax(value: number): number {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 3, 4, 5, 6, 8, 10].map((one) => one * power).find((one) => one >= value) ?? value;
}

function areas(series: readonly Series[], length: number, max: number): (Series & { readonly path: string })[] {
  const below = Array.from({ length }, () => 0);
  const y = (value: number): string => (BASE - (value / max) * (BASE - TOP)).toFixed(1);
  const x = (index: number): string => ((index * WIDTH) / (length - 1)).toFixed(1);
  return series.map((one) => {
    const floor = below.map((value, index) => `${x(index)} ${y(value)}`);
    for (let index = 0; index < length; index++) below[index] = (below[index] ?? 0) + (one.values[index] ?? 0);
    const roof = below.map((value, index) => `${x(index)} ${y(value)}`);
    return { ...one, path: `M${roof.join("L")}L${floor.toReversed().join("L")}Z` };
  });
}

function Legend(props: {
  readonly series: readonly Series[];
  readonly errors: readonly number[];
  readonly at: number | undefined;
}): JSX.Element {
  const { series, errors, at } = props;
  const value = (values: readonly number[]): string => (at === undefined ? "" : ` ${count(values[at] ?? 0)}`);
  return (
    <span class="legend soft" aria-hidden="true">
      {series.map(({ name, color, values }) => (
        <span key={name}>
          <i class={`swatch ${color}`} /> <InertText text={name} max={40} />
          <b class="num">{value(values)}</b>
        </span>
      ))}
      {errors.some((one) => one > 0) ? (
        <span>
          <i class="swatch error" /> errors<b class="num">{value(errors)}</b>
        </span>
      ) : null}
    </span>
  );
}

function summary(totals: readonly number[], errors: readonly number[]): string {
  const calls = totals.reduce((sum, value) => sum + value, 0);
  const failed = errors.reduce((sum, value) => sum + value, 0);
  return `${count(calls)} calls in the last hour, at most ${count(Math.max(...totals))} a minute, ${count(failed)} errors`;
}

/** Sums of ten minutes, for screen readers. In a box, since a table is never narrower than its words. */
function Figures(props: {
  readonly series: readonly Series[];
  readonly errors: readonly number[];
  readonly timeOf: (index: number) => number;
}): JSX.Element {
  const { series, errors, timeOf } = props;
  const parts = Array.from({ length: Math.ceil(errors.length / 10) }, (_, index) => index * 10);
  const sum = (values: readonly number[], from: number): number =>
    values.slice(from, from + 10).reduce((all, value) => all + value, 0);
  return (
    <div class="unseen">
      <table aria-label="Calls of the last hour">
        <thead>
          <tr>
            <th scope="col">Ten minutes from</th>
            {series.map(({ name }) => (
              <th key={name} scope="col">
                {name}
              </th>
            ))}
            <th scope="col">Errors</th>
          </tr>
        </thead>
        <tbody>
          {parts.map((from) => (
            <tr key={from}>
              <th scope="row">{minute(timeOf(from))}</th>
              {series.map(({ name, values }) => (
                <td key={name}>{sum(values, from)}</td>
              ))}
              <td>{sum(errors, from)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
