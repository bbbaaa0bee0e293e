/**
 * Draws the table and the plot of docs/internals/performance.md from the output of `scale.ts`: `npm run measure --
 * draw-scale LINES.jsonl`. It writes docs/images/scale.svg and prints the table as Markdown.
 */
import fs from 'node:fs';
import path from 'node:path';

interface Row {
  readonly figure: string;
  readonly label: string;
  readonly unit: string;
  /** Goals by size; sizes without a goal are left out. */
  readonly goals?: Readonly<Record<number, string>>;
}

interface Plot {
  readonly title: string;
  readonly rows: readonly Row[];
}

const PLOTS: readonly Plot[] = [
  {
    title: 'Query, p95 (ms)',
    rows: [
      {
        figure: 'query_in_process_p95_ms',
        label: 'one user with everything',
        unit: 'ms',
        goals: { 10_000: '≤ 5', 100_000: '≤ 8', 1_000_000: '≤ 20' },
      },
      { figure: 'query_of_common_words_p95_ms', label: 'common words only', unit: 'ms' },
      { figure: 'query_of_a_small_user_p95_ms', label: 'a small user', unit: 'ms', goals: { 1_000_000: '≤ 3' } },
      { figure: 'query_of_a_small_user_with_new_words_p95_ms', label: 'a small user, new words', unit: 'ms' },
      { figure: 'query_http_p95_ms', label: 'over HTTP, reinforced', unit: 'ms' },
      { figure: 'floor_fts5_and_vec0_p95_ms', label: 'floor: FTS5 + vec0', unit: 'ms' },
    ],
  },
  {
    title: 'Adds per second, on one core',
    rows: [
      { figure: 'accepted_in_batches_per_s_of_one_core', label: 'accepted', unit: '/s' },
      { figure: 'worked_off_per_s_of_one_core', label: 'encoded and linked, one user', unit: '/s' },
      {
        figure: 'worked_off_per_s_of_two_workers',
        label: 'encoded and linked, one user, two workers',
        unit: '/s',
        goals: { 10_000: '≥ 2,000', 100_000: '≥ 2,000', 1_000_000: '≥ 1,000' },
      },
      { figure: 'worked_off_of_many_users_per_s_of_one_core', label: 'encoded and linked, 500 users', unit: '/s' },
      { figure: 'floor_fts5_and_vec0_inserts_per_s', label: 'floor: FTS5 + vec0', unit: '/s' },
    ],
  },
  {
    title: 'Resident memory (MB)',
    rows: [
      { figure: 'rss_after_start_mb', label: 'after the start', unit: 'MB', goals: { 100_000: '≤ 250' } },
      { figure: 'rss_after_queries_mb', label: 'after 500 queries', unit: 'MB' },
      { figure: 'rss_when_quiet_again_mb', label: '6 s after these', unit: 'MB', goals: { 100_000: '≤ 250' } },
    ],
  },
  {
    title: 'Other work (ms)',
    rows: [
      { figure: 'decay_ms', label: 'decay of all', unit: 'ms', goals: { 100_000: '≤ 300' } },
      { figure: 'start_to_ready_ms', label: 'start to ready', unit: 'ms' },
      { figure: 'commit_of_100_adds_p95_ms', label: 'commit of 100 adds, p95', unit: 'ms' },
    ],
  },
];
const TABLE_ONLY: readonly Row[] = [
  { figure: 'bytes_beyond_text_per_memory', label: 'bytes beyond the text, a memory', unit: 'B' },
  { figure: 'bytes_settled_per_memory', label: 'without finished jobs', unit: 'B' },
];

type Lines = ReadonlyMap<string, ReadonlyMap<number, number>>;

function main(): void {
  const lines = readLines(process.argv[2]!);
  fs.writeFileSync(path.join(import.meta.dirname, '../docs/images/scale.svg'), draw(lines));
  console.log(tableOf(lines));
}

function readLines(file: string): Lines {
  const lines = new Map<string, Map<number, number>>();
  for (const text of fs.readFileSync(file, 'utf8').split('\n')) {
    if (!text.startsWith('{')) continue;
    const { figure, value, size } = JSON.parse(text) as { figure: string; value: number; size: number };
    lines.set(figure, (lines.get(figure) ?? new Map<number, number>()).set(size, value));
  }
  return lines;
}

function sizesOf(lines: Lines): number[] {
  return [...new Set([...lines.values()].flatMap((bySize) => [...bySize.keys()]))].sort((a, b) => a - b);
}

function tableOf(lines: Lines): string {
  const sizes = sizesOf(lines);
  const cell = ({ figure, unit, goals }: Row, size: number) => {
    const value = lines.get(figure)?.get(size);
    const goal = goals?.[size];
    return value === undefined ? '' : `${shown(value)} ${unit}${goal === undefined ? '' : ` (goal ${goal})`}`;
  };
  const named = (plot: Plot, row: Row) => ({ row, name: `${plot.title.replace(/ \(.*/, '')}: ${row.label}` });
  const rows = [
    ...PLOTS.flatMap((plot) => plot.rows.map((row) => named(plot, row))),
    ...TABLE_ONLY.map((row) => ({ row, name: row.label })),
  ];
  return [
    `| | ${sizes.map((size) => size.toLocaleString('en')).join(' | ')} |`,
    `|---|${sizes.map(() => '---').join('|')}|`,
    ...rows.map(({ row, name }) => `| ${name} | ${sizes.map((size) => cell(row, size)).join(' | ')} |`),
  ].join('\n');
}

function shown(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en') : String(Number(value.toPrecision(2)));
}

// ── The plot: small multiples, both axes logarithmic ─────────────────────────────────────────────────────────────────

const WIDTH = 460;
const LEGEND_HEIGHT = 16;
/** Room below a plot for the sizes and a legend line for each row and for the goals. */
const INNER = { left: 56, right: 30, top: 34, bottom: 28 + 7 * LEGEND_HEIGHT };
const HEIGHT = 210 + INNER.bottom;
const COLOURS = ['#1f6f8b', '#d1603d', '#5b8c5a', '#8d6a9f', '#c29a2e'];
const FLOOR_COLOUR = '#9a9a9a';

function draw(lines: Lines): string {
  const plots = PLOTS.map(
    (plot, at) =>
      `<g transform="translate(${(at % 2) * WIDTH} ${Math.floor(at / 2) * HEIGHT})">${drawPlot(plot, lines)}</g>`,
  );
  const [width, height] = [2 * WIDTH, Math.ceil(PLOTS.length / 2) * HEIGHT];
  const font = 'font-family="system-ui, sans-serif" font-size="11"';
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" ${font}>
<rect width="${width}" height="${height}" fill="#ffffff"/>
${plots.join('\n')}
</svg>
`;
}

function drawPlot({ title, rows }: Plot, lines: Lines): string {
  const sizes = sizesOf(lines);
  const values = rows.flatMap(({ figure }) => [...(lines.get(figure)?.values() ?? [])]);
  const [low, high] = [Math.min(...values), Math.max(...values)].map(Math.log10) as [number, number];
  const [bottom, top] = [Math.floor(low), Math.ceil(high + 0.01)];
  const x = (size: number) =>
    scale(Math.log10(size), Math.log10(sizes[0]!), Math.log10(sizes.at(-1)!), INNER.left, WIDTH - INNER.right);
  const y = (value: number) => scale(Math.log10(value), bottom, top, HEIGHT - INNER.bottom, INNER.top);
  const grid = Array.from({ length: top - bottom + 1 }, (_, step) => 10 ** (bottom + step)).map(
    (tick) =>
      `<path d="M${INNER.left} ${y(tick).toFixed(1)}H${WIDTH - INNER.right}" stroke="#e4e4e4"/>` +
      `<text x="${INNER.left - 6}" y="${(y(tick) + 4).toFixed(1)}" text-anchor="end" fill="#555">` +
      `${tick.toLocaleString('en')}</text>`,
  );
  const marks = sizes.map(
    (size) =>
      `<text x="${x(size).toFixed(1)}" y="${HEIGHT - INNER.bottom + 16}" text-anchor="middle" fill="#555">` +
      `${size.toLocaleString('en')}</text>`,
  );
  const drawn = rows.map((row, at) =>
    drawRow(row, lines, row.figure.startsWith('floor') ? FLOOR_COLOUR : COLOURS[at]!, at, { x, y }),
  );
  const heading = title + (rows.some(({ goals }) => goals) ? ', dashes: goal' : '');
  return [
    `<text x="${INNER.left}" y="20" font-size="13" font-weight="600" fill="#222">${heading}</text>`,
    ...grid,
    ...marks,
    ...drawn,
  ].join('');
}

function drawRow(
  { figure, label, goals }: Row,
  lines: Lines,
  colour: string,
  at: number,
  { x, y }: { x: (size: number) => number; y: (value: number) => number },
): string {
  const points = [...(lines.get(figure) ?? [])].sort(([a], [b]) => a - b);
  const place = ([size, value]: readonly [number, number]) => `${x(size).toFixed(1)} ${y(value).toFixed(1)}`;
  const dots = points.map((point) => `<circle cx="${place(point).replace(' ', '" cy="')}" r="3" fill="${colour}"/>`);
  const shownGoals = Object.entries(goals ?? {}).filter(([size]) => sizesOf(lines).includes(Number(size)));
  const goalMarks = shownGoals.map(([size, goal]) => {
    const [at, value] = [x(Number(size)), y(Number(goal.replace(/\D/g, '')))];
    const line = `M${(at - 9).toFixed(1)} ${value.toFixed(1)}h18`;
    return `<path d="${line}" stroke="${colour}" stroke-width="2" stroke-dasharray="3 2"/>`;
  });
  const [legendX, legendY] = [INNER.left + (at % 2) * 200, HEIGHT - INNER.bottom + 36 + Math.floor(at / 2) * 16];
  return [
    `<path d="M${points.map(place).join('L')}" fill="none" stroke="${colour}" stroke-width="2"/>`,
    ...dots,
    ...goalMarks,
    `\n<rect x="${legendX}" y="${legendY - 8}" width="10" height="10" fill="${colour}"/>`,
    `<text x="${legendX + 15}" y="${legendY + 1}" fill="#222">${label}</text>`,
  ].join('');
}

function scale(value: number, from: number, to: number, start: number, end: number): number {
  return to === from ? (start + end) / 2 : start + ((value - from) / (to - from)) * (end - start);
}

main();
