import fs from 'node:fs';
import path from 'node:path';
import type { EvalRunItem, EvalRunReply, EvalSetItem } from '../../api/schemas/evals.ts';
import { CliError } from '../cli-error.ts';
import { databaseForm } from '../../engine/for-admin.ts';
import { readConfig } from '../../engine/index.ts';
import { type Client, connect, type ConnectionOptions } from '../client.ts';
import { count, dim, print, table } from '../terminal.ts';
import { makeThrowawayFolder } from '../throwaway-folder.ts';

export interface EvalOptions extends ConnectionOptions {
  readonly file?: string;
  /** Path of a backup. The sets are then run on a copy of it instead of the server's data. */
  readonly copy?: string;
  readonly json?: boolean;
}

/**
 * Runs `cairn eval`: stores the evaluation set of a file if one is given, runs one set or all, and prints the measures
 * beside those of the run before. With `copy`, the queries are answered by a temporary service of this version on a
 * copy of a backup.
 * @throws CliError if a set has a lower recall or share of rightly empty answers than before, or more items with a
 *   forbidden hit; if there is no set to run; with exit code 2 if the file has no set, or one of another name than
 *   `name`
 */
export async function runEvals(name: string | undefined, options: EvalOptions): Promise<void> {
  const { copy, ...rest } = options;
  if (copy === undefined) return runOn(connect(rest, process.env, 'patient'), name, rest);
  const service = await startCopy(copy, connect(rest));
  try {
    await runOn(connect({ url: service.url }, {}, 'patient'), name, rest);
  } finally {
    await service.stop();
  }
}

/**
 * Starts a service of this version, with the settings of this process, on a copy of a backup. A backup does not contain
 * the tenant's defaults for queries, so they are read from the running server. The service does not embed the memories
 * again.
 * @throws CliError for a file that is not an unencrypted backup
 */
async function startCopy(file: string, server: Client): Promise<{ readonly url: string; stop(): Promise<void> }> {
  if (databaseForm(file) !== 'clear') {
    throw new CliError(
      `${file}: expected a backup in clear; restore one that is encrypted into a data folder of its own, and run ` +
        '`cairn eval` against a server of it',
      { exitCode: 2 },
    );
  }
  const { startService } = await import('../../main.ts');
  const defaults = await server.getRetrievalDefaults();
  const folder = makeThrowawayFolder('eval');
  const database = path.join(folder, 'cairn.sqlite');
  fs.copyFileSync(file, database);
  const own = { OM_DB_PATH: database, OM_PORT: '0', OM_LOG_LEVEL: 'silent', OM_REEMBED: 'manual', OM_EVENTS: 'false' };
  const given = Object.entries(process.env).filter(([name]) => !NOT_FOR_COPIES.test(name));
  const service = await startService(readConfig({ ...Object.fromEntries(given), ...own }));
  await connect({ url: service.url }, {}).putRetrievalDefaults({ ...defaults, force: 'true' });
  return service;
}

/**
 * Matches the settings that a copy must not have, since with them it would act beyond its folder or refuse this
 * process.
 */
const NOT_FOR_COPIES =
  /^(?:REDIS_URL|OM_(?:HOST|API_KEY|API_PROCESSES|EVAL_EVERY|EVENTS|DATABASE.*|METRICS_.*|BACKUP_.*|ENCRYPTION_.*|OIDC_.*))$/;

async function runOn(server: Client, name: string | undefined, { file, json }: EvalOptions): Promise<void> {
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
  return (
    fell(before.recall, now.recall) || fell(before.rightly_empty, now.rightly_empty) || now.forbidden > before.forbidden
  );
}
