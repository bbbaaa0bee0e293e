import fs from 'node:fs';
import type { EvalRunItem, EvalRunReply, EvalSetItem } from '../../api/schemas/evals.ts';
import { CliError } from '../cli-error.ts';
import { connect, type ConnectionOptions } from '../client.ts';
import { count, dim, print, table } from '../terminal.ts';

export interface EvalOptions extends ConnectionOptions {
  readonly file?: string;
  readonly json?: boolean;
}

/**
 * Runs `cairn eval`: stores the set of a file if one is given, runs one set or all, and prints the numbers beside those
 * of the run before.
 * @throws CliError if recall or the rightly empty items of a set fell
 */
export async function runEvals(name: string | undefined, { file, json, ...connection }: EvalOptions): Promise<void> {
  const server = connect(connection);
  const stored = file === undefined ? undefined : await server.putEval(readSet(file));
  if (stored !== undefined && name !== undefined && stored.name !== name)
    throw new CliError(`the set in the file is named ${stored.name}: it is stored, and nothing was run`, {
      exitCode: 2,
    });
  const { items: sets } = await server.listEvals();
  const only = name ?? stored?.name;
  const chosen = only === undefined ? sets : sets.filter((set) => set.name === only);
  if (chosen.length === 0)
    throw new CliError(only === undefined ? 'no evaluation sets: give one with --file' : `no evaluation set ${only}`);
  const fallen: string[] = [];
  for (const { name: set, last_run: before } of chosen) {
    const reply = await server.runEval({ name: set });
    if (json) print(JSON.stringify({ name: set, ...reply }));
    else show(set, reply, before);
    if (before !== null && hasFallen(before, reply.run)) fallen.push(set);
  }
  if (fallen.length > 0) throw new CliError(`lower than in the run before: ${fallen.join(', ')}`);
}

function readSet(file: string): EvalSetItem {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8')) as EvalSetItem;
  } catch (cause) {
    throw new CliError(`${file}: expected a file with a set as JSON, {name, items}`, { exitCode: 2, cause });
  }
}

function show(name: string, { run, items }: EvalRunReply, before: EvalRunItem | null): void {
  const row = (measure: string, valueOf: (run: EvalRunItem) => string) => [
    measure,
    valueOf(run),
    before === null ? '' : valueOf(before),
  ];
  const shareOf = (value: number | null) => (value === null ? '–' : value.toFixed(3));
  const [head, ...body] = table(
    [
      [name, 'now', before === null ? '' : 'before'],
      row('items', (of) => count(of.items)),
      row('recall', (of) => shareOf(of.recall)),
      row('precision', (of) => shareOf(of.precision)),
      row('rightly empty', (of) => shareOf(of.rightly_empty)),
      row('with forbidden', (of) => count(of.forbidden)),
      row('p95 ms', (of) => of.p95_ms.toFixed(1)),
    ],
    '<>>',
  );
  print(dim(head!), ...body);
  if (run.changed.length > 0) print(`changed since the run before: ${run.changed.join(', ')}`);
  for (const { place, missing, forbidden } of items) {
    if (missing.length > 0) print(`item ${place} misses ${missing.map((entry) => JSON.stringify(entry)).join(', ')}`);
    if (forbidden.length > 0)
      print(`item ${place} shows ${forbidden.map((entry) => JSON.stringify(entry)).join(', ')}`);
  }
  print('');
}

function hasFallen(before: EvalRunItem, now: EvalRunItem): boolean {
  const fell = (was: number | null, is: number | null) => was !== null && is !== null && is < was;
  return fell(before.recall, now.recall) || fell(before.rightly_empty, now.rightly_empty);
}
