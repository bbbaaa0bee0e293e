/**
 * Makes the table of docs/internals/performance.md from the figures of one run: a row a system, with the ratio to Cairn
 * in the same run behind each figure.
 */
import { SYSTEMS, type SystemName } from './system.ts';

export interface Figure {
  readonly system: SystemName;
  readonly texts: string;
  readonly size: number;
  readonly figure: string;
  readonly value: number;
  /** Details, such as the `p50` of a latency, or the `reason` for which a system was not measured. */
  readonly more: Readonly<Record<string, number | string>>;
}

interface Column {
  readonly title: string;
  readonly figure: string;
  /** Name of the detail that is shown instead of the value. */
  readonly detail?: string;
  readonly better: 'more' | 'less';
}

const COLUMNS: readonly Column[] = [
  { title: 'loaded a second', figure: 'loaded_per_s', better: 'more' },
  { title: 'asking, p50 ms', figure: 'ask_p95_ms', detail: 'p50', better: 'less' },
  { title: 'p95 ms', figure: 'ask_p95_ms', better: 'less' },
  { title: 'asked a second by 8', figure: 'asked_per_s_by_8', better: 'more' },
  { title: 'p95 beside 200 adds a second, ms', figure: 'ask_p95_ms_beside_adds', better: 'less' },
  { title: 'add p95 then, ms', figure: 'add_p95_ms_beside_asks', better: 'less' },
  { title: 'bytes a memory', figure: 'bytes_per_memory', better: 'less' },
  { title: 'resident MB', figure: 'resident_mb', better: 'less' },
];

/** Least share of the adds that were due which must be finished; below it the add rate is named beside the table. */
const KEPT_UP = 0.95 * 200;

/** Makes one Markdown table for each kind of texts and each size, in the order in which they were measured. */
export function makeTables(figures: readonly Figure[]): string {
  const groups = Map.groupBy(figures, ({ texts, size }) => `${size.toLocaleString('en')} memories, ${texts} texts`);
  return [...groups].map(([title, group]) => `**${title}**\n\n${makeTable(group)}`).join('\n\n');
}

function makeTable(figures: readonly Figure[]): string {
  const measured = new Set(figures.map(({ system }) => system));
  const systems = (Object.keys(SYSTEMS) as SystemName[]).filter((name) => measured.has(name));
  const find = (system: SystemName, name: string) =>
    figures.find((figure) => figure.system === system && figure.figure === name);
  const rows = systems.map((system) => {
    const cells = COLUMNS.map((column) => cell(column, find(system, column.figure), find('cairn', column.figure)));
    const found = find(system, 'found');
    return [SYSTEMS[system].title, ...cells, found === undefined ? '–' : `${Math.round(100 * found.value)} %`];
  });
  const lines = [['', ...COLUMNS.map(({ title }) => title), 'found'], Array(COLUMNS.length + 2).fill('---'), ...rows];
  const table = lines.map((line) => `| ${line.join(' | ')} |`).join('\n');
  const notes = systems.flatMap((system) => notesOf(system, (name) => find(system, name)));
  return notes.length === 0 ? table : `${table}\n\n${notes.map((note) => `- ${note}`).join('\n')}`;
}

/** Writes a figure and, in brackets, how many times better Cairn is. */
function cell(column: Column, figure: Figure | undefined, cairn: Figure | undefined): string {
  const value = valueOf(column, figure);
  const base = valueOf(column, cairn);
  if (value === undefined) return '–';
  if (base === undefined || figure?.system === 'cairn') return format(value);
  return `${format(value)} (${format(column.better === 'more' ? base / value : value / base)}×)`;
}

function valueOf({ detail }: Column, figure: Figure | undefined): number | undefined {
  const value = detail === undefined ? figure?.value : Number(figure?.more[detail]);
  return Number.isFinite(value) ? value : undefined;
}

function notesOf(system: SystemName, find: (name: string) => Figure | undefined): string[] {
  const { title } = SYSTEMS[system];
  const [resident, adds, ended] = [find('resident_mb'), find('add_p95_ms_beside_asks'), find('ended_after_s')];
  const notes: string[] = [];
  if (ended !== undefined) notes.push(`${title}: ${ended.more.reason}.`);
  if (resident?.more.before !== undefined)
    notes.push(`${title}: of its memory, ${format(Number(resident.more.before))} MB are the measuring process.`);
  if (adds !== undefined && Number(adds.more.per_s) < KEPT_UP)
    notes.push(`${title}: finished ${format(Number(adds.more.per_s))} of the 200 adds a second.`);
  return notes;
}

function format(value: number): string {
  if (value >= 1000) return Math.round(value).toLocaleString('en');
  return String(Number(value.toPrecision(value >= 100 ? 3 : 2)));
}
