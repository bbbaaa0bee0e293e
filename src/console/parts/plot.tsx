import { fixed } from './format.ts';

const WIDTH = 480;
const HEIGHT = 180;
const LEFT = 52;
const [TOP, BOTTOM] = [10, 24];
/** Classes that colour the lines, in their order; further lines start again with the first. */
const COLOURS = ['of-semantic', 'of-episodic', 'of-procedural', 'of-emotional', 'of-reflective'];

/** A line of a plot. It has a gap where a value is null. */
interface Line {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number | null])[];
}

interface PlotProps {
  readonly title: string;
  readonly lines: readonly Line[];
  /** Formats a value for display. */
  readonly write: (value: number) => string;
  /** Formats a position on the horizontal axis for display. */
  readonly writeX: (x: number) => string;
  /** Upper end of the vertical axis; a round number that is at least the largest value by default. */
  readonly most?: number;
}

/**
 * Shows values over time as lines. The legend repeats the latest value of each line, for readers who cannot see the
 * lines.
 */
export function Plot({ title, lines, write, writeX, most }: PlotProps) {
  const points = lines.flatMap((line) => line.points);
  const xs = points.map(([at]) => at);
  const [first, last] = [Math.min(...xs), Math.max(...xs)];
  const top = most ?? roundAbove(Math.max(0, ...points.map(([, value]) => value ?? 0)));
  const x = (at: number) => LEFT + (last === first ? 0.5 : (at - first) / (last - first)) * (WIDTH - LEFT - 12);
  const y = (value: number) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - TOP - BOTTOM);
  return (
    <figure class="stack-tight">
      <h3>{title}</h3>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} aria-hidden="true" class="plot">
        {[0, top / 2, top].map((value) => (
          <g key={value}>
            <line x1={LEFT} x2={WIDTH} y1={y(value)} y2={y(value)} stroke="var(--line)" />
            <text x={LEFT - 8} y={y(value) + 4} text-anchor="end">
              {write(value)}
            </text>
          </g>
        ))}
        <text x={LEFT} y={HEIGHT - 6}>
          {writeX(first)}
        </text>
        <text x={WIDTH} y={HEIGHT - 6} text-anchor="end">
          {writeX(last)}
        </text>
        {lines.map(({ name, points: own }, at) => (
          <g key={name} class={COLOURS[at % COLOURS.length]}>
            <path d={pathOf(own, x, y)} fill="none" stroke="var(--of)" stroke-width="2" stroke-linejoin="round" />
            {own.length < 80 &&
              own.map(([place, value]) =>
                value === null ? null : (
                  <circle key={place} cx={x(place)} cy={y(value)} r="2.5" fill="var(--of)">
                    <title>{`${name}: ${write(value)}, ${writeX(place)}`}</title>
                  </circle>
                ),
              )}
          </g>
        ))}
      </svg>
      <figcaption class="legend number">
        {lines.map(({ name, points: own }, at) => {
          const value = own.findLast(([, known]) => known !== null)?.[1];
          return (
            <span key={name} class={COLOURS[at % COLOURS.length]}>
              {name} {value === undefined || value === null ? '–' : write(value)}
            </span>
          );
        })}
      </figcaption>
    </figure>
  );
}

function pathOf(points: Line['points'], x: (at: number) => number, y: (value: number) => number): string {
  return points
    .map(([at, value], place) =>
      value === null ? '' : `${points[place - 1]?.[1] == null ? 'M' : 'L'}${fixed(x(at), 1)} ${fixed(y(value), 1)}`,
    )
    .join('');
}

/**
 * Returns the smallest number of the form 1, 2, 5 or 10 times a power of ten that is at least the value; 1 for a value
 * of 0 or less.
 */
function roundAbove(value: number): number {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value) ?? value;
}
