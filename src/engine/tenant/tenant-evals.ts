import { v7 as uuidv7 } from 'uuid';
import { mayHoldRows } from '../control/place-of.ts';
import type { Tenant } from '../engine.ts';
import { EngineError } from '../errors.ts';
import { type Judged, scoresOf } from '../evals/measure.ts';
import { fallsOf, hashOf, hashOfItems } from '../evals/questions.ts';
import { parseEvalItem } from '../store/evals.ts';
import { namesOfModels } from '../store/live-model.ts';
import {
  EVAL_CHANGES,
  EVAL_LIMITS,
  type EvalItem,
  type Evals,
  type EvalOutcome,
  type EvalRun,
  type NewEvalSet,
  type PackedEvalSet,
  type RetrievalOptions,
} from '../types.ts';
import { takeTurn } from '../turns.ts';
import { VERSION } from '../version.ts';
import { readRetrievalDefaults } from '../control/retrieval-defaults.ts';
import type { TenantOptions } from './tenant-options.ts';
import { guardOf } from './tenant-privacy.ts';

/**
 * Time after which a process that runs the evaluation sets and has not renewed its claim counts as dead, so that
 * another one may run them (ms). It is far longer than one question takes, as the claim is renewed between questions.
 */
const LEASE_MS = 3_600_000;

/** Runs a set as `Evals.runEval` does. @param beforeItem is called before each question; what it throws ends the run */
type RunSet = (
  name: string,
  signal: AbortSignal | undefined,
  beforeItem?: () => Promise<void>,
) => ReturnType<Tenant['runEval']>;

/** Makes the methods by which a tenant keeps evaluation sets and runs them. */
export function createEvalMethods(options: TenantOptions): Pick<Tenant, keyof Evals> {
  const { id, path, control, clock, writer, readers } = options;
  const guard = guardOf(options);
  const screened = async ({ query, expected, forbidden = [], ...rest }: EvalItem): Promise<EvalItem> => {
    const { value } = (await guard.fields({ value: { query, expected, forbidden } })).fields;
    return { ...rest, ...(value as unknown as Pick<EvalItem, 'query' | 'expected' | 'forbidden'>) };
  };
  const summaryOf = async (name: string) => {
    const summary = (await readers.read(path, 'listEvals', {})).find((set) => set.name === name);
    if (summary === undefined) throw new EngineError('not_found', 'the evaluation set was deleted meanwhile');
    return summary;
  };
  const methods: Pick<Tenant, keyof Evals> = {
    async putEval(set) {
      await writer.write(path, 'putEval', await packSet(set, guard.isOn() ? screened : undefined));
      return summaryOf(set.name);
    },
    listEvals: () => readers.read(path, 'listEvals', {}),
    getEval: (name) => readSet(options, name),
    deleteEval: (name) => writer.write(path, 'deleteEval', { name }),
    runEval: (name, signal) => runSet(name, signal),
    listEvalRuns: (name, limit) => readers.readFew(path, 'listEvalRuns', { name, limit }),
    runDueEvals: (signal) => runDue(options, runSet, signal),
  };
  const runSet: RunSet = async (name, signal, beforeItem) => {
    const at = clock.now();
    const set = await readSet(options, name);
    const defaults = readRetrievalDefaults(control, id);
    const judged = await askAll(options, set, defaults, signal, beforeItem);
    const [before] = await methods.listEvalRuns(name, 1);
    const now = {
      version: VERSION,
      model: namesOfModels(options.open().liveModels),
      ...(await hashesOf(options, set, defaults)),
    };
    const run = { at, ...scoresOf(judged), ...now, changed: before === undefined ? [] : changesOf(before, now) };
    await writer.write(path, 'appendEvalRun', { name, run });
    return { run, outcomes: judged.map(outcomeOf) };
  };
  return methods;
}

/** Reads a set on a reader thread, and parses its items one by one. @throws EngineError `not_found` */
async function readSet({ path, readers }: TenantOptions, name: string): Promise<NewEvalSet> {
  const { items: texts, ...set } = await readers.read(path, 'readEval', { name });
  const items: EvalItem[] = [];
  for (const text of texts) {
    await takeTurn();
    items.push(parseEvalItem(text));
  }
  return { ...set, items };
}

/**
 * Makes of a set what is passed to the writer.
 * @param screen screens an item; none is screened if left out
 * @throws EngineError `invalid` for more than 4 MiB; what `screen` throws
 */
async function packSet(
  { items, ...set }: NewEvalSet,
  screen?: (item: EvalItem) => Promise<EvalItem>,
): Promise<PackedEvalSet> {
  let packed = '';
  let bytes = 0;
  for (const item of items) {
    await takeTurn();
    const text = JSON.stringify(screen === undefined ? item : await screen(item));
    bytes += Buffer.byteLength(text);
    if (bytes > EVAL_LIMITS.setBytes)
      throw new EngineError('invalid', `items: a set has at most ${EVAL_LIMITS.setBytes} bytes of JSON: divide it`);
    packed += `${packed === '' ? '' : ','}${text}`;
  }
  return { ...set, items: `[${packed}]`, count: items.length };
}

/**
 * Runs all evaluation sets (queries with expected answers) if they are due and no other process runs them.
 * @returns the number of sets that were run; 0 if there are none, they are not due or run elsewhere, `OM_EVAL_EVERY` is
 *   not set, or the tenant may not have rows here (`mayHoldRows`)
 * @throws what the run of a set throws; the sets after it are not run then. EngineError `conflict` if another process
 *   took the run over, as the claim was not renewed in time
 */
async function runDue(
  { path, config, clock, writer, readers }: TenantOptions,
  runSet: RunSet,
  signal: AbortSignal | undefined,
): Promise<number> {
  const { OM_EVAL_EVERY: everyMs } = config;
  if (everyMs === undefined || !mayHoldRows(config, path)) return 0;
  const schedule = { name: 'eval', everyMs, waitsAPeriod: false, backsOff: true };
  const claim = { schedule, owner: uuidv7(), leaseMs: LEASE_MS };
  if (!(await readers.readFew(path, 'isRunDue', { schedule, leaseMs: LEASE_MS }))) return 0;
  const sets = await readers.read(path, 'listEvals', {});
  if (sets.length === 0 || !(await writer.write(path, 'claimRun', claim))) return 0;
  const startedAt = clock.now();
  let renewedAt = startedAt;
  const keepClaim = async () => {
    if (Math.abs(clock.now() - renewedAt) < LEASE_MS / 4) return;
    renewedAt = clock.now();
    if (await writer.write(path, 'renewRun', { name: schedule.name, owner: claim.owner, leaseMs: LEASE_MS })) return;
    throw new EngineError('conflict', 'another process runs the evaluation sets');
  };
  let ranAt: number | undefined;
  try {
    for (const { name } of sets) await runSet(name, signal, keepClaim);
    ranAt = startedAt;
    return sets.length;
  } finally {
    await writer.write(path, 'releaseRun', { name: schedule.name, owner: claim.owner, ranAt });
  }
}

/**
 * Runs the guarded evaluation sets of a tenant under its present query defaults and under changed ones, on the same
 * data, and throws if the changed ones do worse.
 * @throws EngineError `conflict`, with the numbers, for the first set that falls in recall or in items that are rightly
 *   empty, or that has more items with a forbidden hit
 */
export async function requireNoLoss(
  options: TenantOptions,
  changed: RetrievalOptions,
  signal?: AbortSignal,
): Promise<void> {
  const { path, control, id, readers } = options;
  const present = readRetrievalDefaults(control, id);
  for (const { name } of (await readers.read(path, 'listEvals', {})).filter(({ guard }) => guard)) {
    const set = await readSet(options, name);
    const before = scoresOf(await askAll(options, set, present, signal));
    const after = scoresOf(await askAll(options, set, changed, signal));
    const falls = fallsOf(before, after);
    if (falls.length > 0)
      throw new EngineError(
        'conflict',
        `the guarded set ${JSON.stringify(name)} would fall: ${falls.join(', ')}; ` +
          'nothing is changed without force=true',
      );
  }
}

/** Runs the queries of an evaluation set one after the other, so that each is timed by itself. */
async function askAll(
  { path, readers }: TenantOptions,
  { items }: NewEvalSet,
  defaults: RetrievalOptions,
  signal: AbortSignal | undefined,
  beforeItem?: () => Promise<void>,
): Promise<Judged[]> {
  const judged: Judged[] = [];
  for (const [place, item] of items.entries()) {
    await beforeItem?.();
    judged.push(await readers.read(path, 'askEval', { item, place, defaults }, signal));
  }
  return judged;
}

function outcomeOf({ place, hits, missing, forbidden, ms }: Judged): EvalOutcome {
  return { place, hits, missing, forbidden, ms };
}

/**
 * Returns the hash of the settings that a query of the set reads, and the hash of the set's items. Two runs are
 * compared by these hashes.
 */
async function hashesOf({ config, languageModel }: TenantOptions, { items }: NewEvalSet, defaults: RetrievalOptions) {
  const { OM_MIN_SCORE, OM_QUERY_WORK_MB, OM_QUERY_DEADLINE_MS } = config;
  const read = { defaults, OM_MIN_SCORE, OM_QUERY_WORK_MB, OM_QUERY_DEADLINE_MS, reorders: languageModel !== null };
  return { settings: hashOf(read), itemsHash: await hashOfItems(items) };
}

type Circumstances = Pick<EvalRun, 'version' | 'model' | 'settings' | 'itemsHash'>;

function changesOf(before: Circumstances, now: Circumstances): EvalRun['changed'] {
  const fieldOf = (change: (typeof EVAL_CHANGES)[number]) => (change === 'items' ? 'itemsHash' : change);
  return EVAL_CHANGES.filter((change) => before[fieldOf(change)] !== now[fieldOf(change)]);
}
