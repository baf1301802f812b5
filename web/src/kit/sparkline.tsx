// Sparkline: a line without axes, for the eye; the number beside it says the same in words.

import type { JSX } from "preact";

export function Sparkline(props: {
  readonly values: readonly number[];
  readonly width?: number;
  readonly height?: number;
  readonly class?: string;
}): JSX.Element {
  const { values, width = 92, height = 26 } = props;
  const max = Math.max(1, ...values);
  const step = values.length > 1 ? (width - 2) / (values.length - 1) : 0;
  const points = values.map((value, index) => {
    const y = height - 2 - (value / max) * (height - 4);
    return `${(1 + index * step).toFixed(1)} ${y.toFixed(1)}`;
  });
  return (
    <svg class={`sparkline ${props.class ?? ""}`} width={width} height={height} aria-hidden="true">
      <path d={points.length < 2 ? "" : `M${points.join("L")}`} />
    </svg>
  );
}
