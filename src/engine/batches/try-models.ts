/**
 * Tries new embedding models before a tenant uses them. The tenant's guarded evaluation sets (queries with expected
 * answers) are run by the live model and by the new one on the same data. A new model that lowers the scores of one of
 * these sets does not go live.
 */
import { EngineError } from '../errors.ts';
import { judge } from '../evals/measure.ts';
import { fallsOf, type GuardedScores, hashOf, queryOfItem } from '../evals/questions.ts';
import { createQueryEmbedder, type QueryEmbeddingSource } from '../providers/query-embedder.ts';
import { answerQuery } from '../readers/answer-query.ts';
import type { ReadContext } from '../readers/read-context.ts';
import { loadIndexes } from '../steps/link.ts';
import { sourceOfModel } from '../steps/step-context.ts';
import { getEval, listEvals } from '../store/evals.ts';
import { distinctModels, namesOfModels, type SectorModels } from '../store/live-model.ts';
import type { Store } from '../store/open-store.ts';
import type { ReembedTrial, TrialSums } from '../store/reembed.ts';
import type { OpenTenant } from '../tenant-file/open-tenant.ts';
import type { EvalItem, NewEvalSet } from '../types.ts';
import type { TrialStep } from '../upkeep/reembed.ts';
import type { BatchContext } from './batch-context.ts';

/** Time after which the trial of new models pauses for other jobs (ms); it continues later. */
const SLICE_MS = 100;

/**
 * A guarded evaluation set. `before` holds its scores by the live model if that can no longer be called; else it is
 * null.
 */
interface GuardedSet extends NewEvalSet {
  readonly before: GuardedScores | null;
}

/**
 * Runs the next queries of the guarded evaluation sets by the live model and by the new ones. If the settings do not
 * say any more how to reach the live model, the scores of each set's last run are used in place of its answers, if the
 * live model made this run with the same items; a set without such a run is left out.
 * @param models the models that are about to go live
 * @param begun state of the trial when it last paused; undefined if it has not begun
 * @returns `holds` if the scores of no set fall; else the state of the unfinished trial, and whether it waits for a
 *   provider
 * @throws EngineError `invalid`, with the numbers, if the new models lower the scores of a guarded set
 */
export async function tryModels(
  batch: BatchContext,
  models: SectorModels,
  begun: ReembedTrial | undefined,
): Promise<TrialStep> {
  const { store, liveModels } = batch.open();
  if (liveModels === null) return 'holds';
  const isReached = distinctModels(liveModels).every((model) => sourceOfModel(batch, model) !== null);
  const sets = readGuardedSets(store, isReached ? null : liveModels);
  if (sets.length === 0) return 'holds';
  const name = hashOf(sets);
  let trial: ReembedTrial = begun?.sets === name ? begun : { sets: name, asked: 0, sums: {} };
  const questions = sets.flatMap((set) => set.items.map((item, place) => ({ set, item, place })));
  const querySourceOf = createQuerySourceFinder(batch);
  for (const deadline = performance.now() + SLICE_MS; trial.asked < questions.length;) {
    if (performance.now() > deadline) return { trial, waits: false };
    const { set, item, place } = questions[trial.asked]!;
    const asked = { item, place, querySourceOf };
    const before = isReached ? await ask(batch, liveModels, asked) : NOT_ASKED;
    const after = before === null ? null : await ask(batch, models, asked);
    if (before === null || after === null) return { trial, waits: true };
    trial = added(trial, set.name, item, [before, after]);
  }
  const falls = sets.flatMap((set) => {
    const sums = trial.sums[set.name];
    if (sums === undefined) return [];
    const fallen = fallsOf(set.before ?? scoresBy(sums, 0), scoresBy(sums, 1));
    return fallen.length === 0 ? [] : [`${JSON.stringify(set.name)} (${fallen.join(', ')})`];
  });
  if (falls.length === 0) return 'holds';
  throw new EngineError(
    'invalid',
    `the new model does not go live, as guarded sets would fall: ${falls.join('; ')}; \`cairn reembed\` asks them ` +
      'again, `cairn reembed --force` lets the model go live all the same',
  );
}

/**
 * Returns the evaluation sets that are guarded: a model that lowers their scores must not go live.
 * @param unreached the live models, if they cannot be called: then only sets with a comparable last run are returned
 */
function readGuardedSets(store: Store, unreached: SectorModels | null): GuardedSet[] {
  return listEvals(store)
    .filter(({ guard }) => guard)
    .flatMap(({ name, lastRun }): GuardedSet[] => {
      const set = getEval(store, name);
      if (unreached === null) return [{ ...set, before: null }];
      const isComparable = lastRun?.model === namesOfModels(unreached) && lastRun.itemsHash === hashOf(set.items);
      if (!isComparable) return [];
      const { recall, rightlyEmpty, forbidden } = lastRun;
      return [{ ...set, before: { recall, rightlyEmpty, forbidden } }];
    });
}

/** How well the answer to one query of an evaluation set met what the set expects. */
interface Worth {
  /** Share of the expected entries that were found; 0 if none are expected. */
  readonly recall: number;
  /** 1 if there was no hit, else 0. */
  readonly rightlyEmpty: number;
  /** 1 if a forbidden entry was found, else 0. */
  readonly forbidden: number;
}

const NOT_ASKED: Worth = { recall: 0, rightlyEmpty: 0, forbidden: 0 };

interface Asked {
  readonly item: EvalItem;
  readonly place: number;
  readonly querySourceOf: ReadContext['querySourceOf'];
}

/**
 * Runs a query of a set as if these models were live.
 * @returns null if a provider gave no vector
 */
async function ask(
  batch: BatchContext,
  models: SectorModels,
  { item, place, querySourceOf }: Asked,
): Promise<Worth | null> {
  const { config, clock, logger, languageModel, defaults } = batch;
  const asIfLive = { liveModels: { value: models }, live: { value: models[0] } };
  const open = () => Object.create(batch.open(), asIfLive) as OpenTenant;
  await loadIndexes(open);
  const parts = { config, clock, logger, tracing: null, threads: 1, querySourceOf, languageModel };
  const context: ReadContext = { ...parts, open };
  const { result } = await answerQuery(context, { query: queryOfItem(item), defaults: defaults?.() ?? {} });
  if (result.degradedReasons.includes('vectors')) return null;
  const { missing, hits, forbidden } = judge(
    item,
    place,
    result.hits.map(({ memory }) => memory),
    0,
  );
  return {
    recall: item.expected.length === 0 ? 0 : 1 - missing.length / item.expected.length,
    rightlyEmpty: hits.length === 0 ? 1 : 0,
    forbidden: forbidden.length === 0 ? 0 : 1,
  };
}

/** Makes the function that returns the embedder of queries for a model, without a cache of vectors. */
function createQuerySourceFinder(batch: BatchContext): ReadContext['querySourceOf'] {
  return (model): QueryEmbeddingSource | null => {
    const source = sourceOfModel(batch, model);
    if (source === null) return null;
    const { embedder, gatherer } = source;
    const timeoutMs = batch.config.OM_QUERY_EMBED_TIMEOUT_MS;
    const provider = embedder.cacheable ? { provider: { gatherer, timeoutMs } } : {};
    const embedderOf = createQueryEmbedder({ embedder, logger: batch.logger, maxCached: 0, ...provider });
    // Without a cache, the name of the tenant says nothing.
    return { embedder, embedQuery: embedderOf('') };
  };
}

const NO_SUMS: TrialSums['recall'] = [0, 0, 0];

function added(trial: ReembedTrial, set: string, { expected }: EvalItem, [one, other]: readonly [Worth, Worth]) {
  const { recall = NO_SUMS, rightlyEmpty = NO_SUMS, forbidden = NO_SUMS } = trial.sums[set] ?? {};
  const plus = (sums: TrialSums['recall'], name: keyof Worth): TrialSums['recall'] => [
    sums[0] + one[name],
    sums[1] + other[name],
    sums[2] + 1,
  ];
  const sums: TrialSums = {
    recall: expected.length > 0 ? plus(recall, 'recall') : recall,
    rightlyEmpty: expected.length > 0 ? rightlyEmpty : plus(rightlyEmpty, 'rightlyEmpty'),
    forbidden: plus(forbidden, 'forbidden'),
  };
  return { ...trial, asked: trial.asked + 1, sums: { ...trial.sums, [set]: sums } };
}

function scoresBy({ recall, rightlyEmpty, forbidden }: TrialSums, model: 0 | 1): GuardedScores {
  const mean = (sums: TrialSums['recall']) => (sums[2] === 0 ? null : sums[model] / sums[2]);
  return { recall: mean(recall), rightlyEmpty: mean(rightlyEmpty), forbidden: forbidden?.[model] ?? 0 };
}
