/** Draws dashboards as SVG for documents, with the layout, units and thresholds of Grafana. */
import { placesOf, type Dashboard, type Panel, type Place, type Unit } from './dashboard.ts';

/** A line of a panel. */
export interface Line {
  readonly name: string;
  /** Points as time (Unix s) and value; a value that is not finite is a gap. */
  readonly points: readonly (readonly [number, number])[];
}

export interface Drawing {
  /** Start of the x axis, Unix s. */
  readonly start: number;
  readonly end: number;
  /** Lines of a panel; a stat shows their last values. */
  linesOf(panel: Panel): readonly Line[];
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

const COLUMN = 50;
const UNIT_HEIGHT = 29;
const GAP = 8;
const WIDTH = 24 * COLUMN + GAP;
const ROW_HEADER = 30;
const PALETTE = [
  '#2f7ed8',
  '#e08a1e',
  '#3a9d5d',
  '#c0392b',
  '#8e5cc2',
  '#1fa3a3',
  '#b0a11c',
  '#d4569b',
  '#6b7785',
  '#7a4b2a',
];
const COLOUR = { good: '#2e9e5b', warning: '#e08a1e', critical: '#d33f3f', plain: '#33475b' } as const;
const MAX_LEGENDS = 10;
/** Possible distances between the labels of the x axis, s. */
const TIME_STEPS = [10, 30, 60, 120, 300, 600, 1800, 3600];

export function drawDashboard({ title, rows }: Dashboard, drawing: Drawing): string {
  const parts: string[] = [text(title, { x: GAP, y: 24, size: 18, weight: 600 })];
  let top = 38;
  for (const row of rows) {
    const { places, height } = placesOf(row);
    parts.push(text(row.title, { x: GAP, y: top + 20, size: 13, weight: 600, fill: '#5b6b7b' }));
    top += ROW_HEADER;
    for (const place of places) parts.push(drawPanel(place, boxOf(place, top), drawing));
    top += height * UNIT_HEIGHT;
  }
  const size = `width="${WIDTH}" height="${top + GAP}" viewBox="0 0 ${WIDTH} ${top + GAP}"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} font-family="DejaVu Sans, Verdana, sans-serif">`,
    `<rect width="100%" height="100%" fill="#f4f6f8"/>`,
    ...parts,
    '</svg>\n',
  ].join('\n');
}

function boxOf({ x, y, w, h }: Place, top: number): Box {
  const [left, upper] = [GAP + x * COLUMN, top + y * UNIT_HEIGHT];
  return { x: left, y: upper, width: w * COLUMN - GAP, height: h * UNIT_HEIGHT - GAP };
}

function drawPanel({ panel }: Place, box: Box, drawing: Drawing): string {
  const lines = drawing.linesOf(panel);
  const frame =
    `<rect x="${box.x}" y="${box.y}" width="${box.width}" height="${box.height}" ` +
    'rx="4" fill="#fff" stroke="#dde3e8"/>';
  const title = text(panel.title, { x: box.x + 10, y: box.y + 18, size: 12, weight: 600 });
  if (lines.length === 0) return [frame, title, drawNothing(box)].join('\n');
  return [
    frame,
    title,
    panel.kind === 'stat' ? drawStat(panel, lines, box) : drawLines(panel, lines, box, drawing),
  ].join('\n');
}

function drawNothing({ x, y, width, height }: Box): string {
  return text('nothing', { x: x + width / 2, y: y + height / 2 + 10, size: 11, fill: '#9aa7b3', anchor: 'middle' });
}

function drawStat({ unit, thresholds }: Panel, lines: readonly Line[], box: Box): string {
  const value = lines[0]!.points.findLast(([, one]) => Number.isFinite(one))![1];
  const fill = thresholds === undefined ? COLOUR.plain : COLOUR[gradeOf(value, thresholds)];
  const at = {
    x: box.x + box.width / 2,
    y: box.y + box.height / 2 + 22,
    size: 28,
    weight: 600,
    fill,
    anchor: 'middle',
  };
  return text(format(value, unit), at);
}

function gradeOf(value: number, { warning, critical, isFloor = false }: NonNullable<Panel['thresholds']>) {
  const isOver = (mark: number | undefined) => mark !== undefined && (isFloor ? value < mark : value >= mark);
  return isOver(critical) ? 'critical' : isOver(warning) ? 'warning' : 'good';
}

function drawLines(panel: Panel, given: readonly Line[], box: Box, { start, end }: Drawing): string {
  const lines = panel.isStacked === true ? stack(given) : given;
  const legend = drawLegend(given, box);
  const plot: Box = { x: box.x + 58, y: box.y + 30, width: box.width - 70, height: box.height - 52 - legend.height };
  const top = roundUp(
    Math.max(...lines.flatMap(({ points }) => points.map(([, value]) => (Number.isFinite(value) ? value : 0)))),
    panel.unit,
  );
  const toX = (time: number) => Math.round(plot.x + ((time - start) / (end - start)) * plot.width);
  const toY = (value: number) => Math.round(plot.y + plot.height * (1 - value / top));
  const drawn = lines.map(({ points }, at) => {
    const colour = PALETTE[at % PALETTE.length]!;
    const path = pathOf(points, toX, toY);
    const area = panel.isStacked === true ? drawArea(points, lines[at - 1]?.points, { toX, toY, colour }) : '';
    return `${area}<path d="${path}" fill="none" stroke="${colour}" stroke-width="1.4"/>`;
  });
  // The lowest line is drawn last, so that no area hides it.
  return [drawAxes(panel, { plot, top, seconds: end - start, toY }), ...drawn.toReversed(), legend.svg].join('\n');
}

/** Stacks lines on top of each other; a line adds nothing where it has no value. */
function stack(lines: readonly Line[]): Line[] {
  const sums = new Map<number, number>();
  const times = [...new Set(lines.flatMap(({ points }) => points.map(([time]) => time)))].sort((a, b) => a - b);
  return lines.map(({ name, points }) => {
    const own = new Map(points.filter(([, value]) => Number.isFinite(value)));
    for (const time of times) sums.set(time, (sums.get(time) ?? 0) + (own.get(time) ?? 0));
    return { name, points: times.map((time) => [time, sums.get(time)!] as const) };
  });
}

type Scale = (value: number) => number;

function pathOf(points: Line['points'], toX: Scale, toY: Scale): string {
  let isOn = false;
  return points
    .map(([time, value]) => {
      if (!Number.isFinite(value)) {
        isOn = false;
        return '';
      }
      const step = `${isOn ? 'L' : 'M'}${toX(time)} ${toY(value)}`;
      isOn = true;
      return step;
    })
    .join('');
}

function drawArea(
  points: Line['points'],
  below: Line['points'] | undefined,
  { toX, toY, colour }: { readonly toX: Scale; readonly toY: Scale; readonly colour: string },
): string {
  const floor = below ?? [points.at(0)!, points.at(-1)!].map(([time]) => [time, 0] as const);
  const path = pathOf(points, toX, toY) + pathOf(floor.toReversed(), toX, toY).replace('M', 'L');
  return `<path d="${path}Z" fill="${colour}" fill-opacity="0.25"/>`;
}

interface Axes {
  readonly plot: Box;
  readonly top: number;
  readonly seconds: number;
  readonly toY: Scale;
}

function drawAxes({ unit, thresholds = {} }: Panel, { plot, top, seconds, toY }: Axes): string {
  const right = plot.x + plot.width;
  const levels = [0, 0.25, 0.5, 0.75, 1].map((share) => {
    const y = toY(share * top);
    const label = text(format(share * top, unit), { x: plot.x - 6, y: y + 3, size: 9, fill: '#7b8894', anchor: 'end' });
    return `<path d="M${plot.x} ${y}H${right}" stroke="#e8ecef"/>${label}`;
  });
  const every = TIME_STEPS.find((step) => seconds / step <= 6) ?? seconds;
  const times = Array.from({ length: Math.floor(seconds / every) + 1 }, (_, at) =>
    text(format(at * every, 's'), {
      x: plot.x + ((at * every) / seconds) * plot.width,
      y: plot.y + plot.height + 14,
      size: 9,
      fill: '#7b8894',
      anchor: 'middle',
    }),
  );
  const marks = (['warning', 'critical'] as const).flatMap((grade) => {
    const value = thresholds[grade];
    if (value === undefined || value > top) return [];
    return `<path d="M${plot.x} ${toY(value)}H${right}" stroke="${COLOUR[grade]}" stroke-dasharray="4 3"/>`;
  });
  return [...levels, ...times, ...marks].join('\n');
}

function drawLegend(lines: readonly Line[], box: Box): { svg: string; height: number } {
  const LINE_HEIGHT = 14;
  const CHARACTER = 5.7;
  const named = lines.length <= MAX_LEGENDS ? lines : lines.slice(0, MAX_LEGENDS - 1);
  const names = [
    ...named.map(({ name }) => name),
    ...(named.length < lines.length ? [`${lines.length - named.length} more`] : []),
  ];
  let [x, line] = [0, 0];
  const placed = names.map((name, at) => {
    const width = 18 + name.length * CHARACTER + 8;
    if (x > 0 && x + width > box.width - 16) [x, line] = [0, line + 1];
    const place = { name, x, line, colour: at < named.length ? PALETTE[at % PALETTE.length]! : '#fff' };
    x += width;
    return place;
  });
  const height = (line + 1) * LINE_HEIGHT;
  const first = box.y + box.height - height + 6;
  const svg = placed.map(({ name, x: left, line: below, colour }) => {
    const [from, y] = [box.x + 10 + left, first + below * LINE_HEIGHT];
    const swatch = `<rect x="${from}" y="${y - 6}" width="12" height="3" fill="${colour}"/>`;
    return swatch + text(name, { x: from + 16, y: y - 1, size: 9.5, fill: '#4a5966' });
  });
  return { svg: svg.join('\n'), height };
}

/**
 * End of the y axis: 1, 2, 4, 5 or 8 times a power of ten, or a power of two for bytes, so that its quarters are short.
 */
function roundUp(value: number, unit: Unit): number {
  if (value <= 0) return 1;
  if (unit === 'bytes' || unit === 'Bps') return 2 ** Math.ceil(Math.log2(value));
  const size = unit === 's' ? SECONDS.find(([from]) => value >= from)![0] || 1 : 1;
  const power = 10 ** Math.floor(Math.log10(value / size));
  return [1, 2, 4, 5, 8, 10].find((times) => times * power * size >= value)! * power * size;
}

const SECONDS = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
  [1, 's'],
  [1e-3, 'ms'],
  [0, 'µs'],
] as const;
const BYTES = [
  [2 ** 30, 'GiB'],
  [2 ** 20, 'MiB'],
  [2 ** 10, 'KiB'],
  [0, 'B'],
] as const;
const NUMBERS = [
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
  [0, ''],
] as const;

function format(value: number, unit: Unit): string {
  switch (unit) {
    case 's':
      return value === 0 ? '0' : scaled(value, SECONDS, ' ');
    case 'bytes':
      return scaled(value, BYTES, ' ');
    case 'Bps':
      return `${scaled(value, BYTES, ' ')}/s`;
    case 'percentunit':
      return `${short(value * 100)} %`;
    case 'currencyUSD':
      return `$${short(value)}`;
    case 'cpm':
      return `${scaled(value, NUMBERS, '')}/min`;
    case 'reqps':
    case 'ops':
      return `${scaled(value, NUMBERS, '')}/s`;
    case 'short':
      return scaled(value, NUMBERS, '');
  }
}

function scaled(value: number, steps: readonly (readonly [number, string])[], between: string): string {
  const [size, name] = steps.find(([from]) => Math.abs(value) >= from)!;
  return `${short(value / (size === 0 ? (name === 'µs' ? 1e-6 : 1) : size))}${between}${name}`.trim();
}

function short(value: number): string {
  return String(Number(value.toPrecision(3)));
}

interface TextStyle {
  readonly x: number;
  readonly y: number;
  readonly size: number;
  readonly weight?: number;
  readonly fill?: string;
  readonly anchor?: string;
}

function text(content: string, { x, y, size, weight = 400, fill = '#22303c', anchor = 'start' }: TextStyle): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  const round = (value: number) => Math.round(value * 10) / 10;
  const style = [
    `font-size="${size}" fill="${fill}"`,
    ...(weight === 400 ? [] : [`font-weight="${weight}"`]),
    ...(anchor === 'start' ? [] : [`text-anchor="${anchor}"`]),
  ].join(' ');
  return `<text x="${round(x)}" y="${round(y)}" ${style}>${escaped}</text>`;
}
