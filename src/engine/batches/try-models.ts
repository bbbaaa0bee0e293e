/**
 * Asks the guarded evaluation sets of a tenant by its live model and by the one that is about to take its place, on the
 * same data. A model that lowers one of them does not go live.
 */
import { EngineError } from '../errors.ts';
import { judge } from '../evals/measure.ts';
import { fallsOf, hashOf, queryOfItem } from '../evals/questions.ts';
import { createQueryEmbedder, type Questioner } from '../providers/query-embedder.ts';
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

/** Time after which the trial is handed back (ms), so that other jobs get their turn. */
const SLICE_MS = 100;

/** A set, and what it was worth by the live model where that can no longer be asked. */
interface GuardedSet extends NewEvalSet {
  readonly before: Means | null;
}

interface Means {
  readonly recall: number | null;
  readonly rightlyEmpty: number | null;
}

/**
 * Asks the next questions. Where the settings do not reach the live model any more, the last run of each set counts in
 * its place if it was made by that model and of the same items; a set without such a run has nothing to fall from.
 * @param models the models that are about to go live
 * @param begun how far the trial was at the end of its last slice; undefined for none
 * @throws EngineError `invalid` if a guarded set falls, with its numbers
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
  const questionerOf = createQuestionerFinder(batch);
  for (const deadline = performance.now() + SLICE_MS; trial.asked < questions.length;) {
    if (performance.now() > deadline) return { trial, waits: false };
    const { set, item, place } = questions[trial.asked]!;
    const asked = { item, place, questionerOf };
    const before = isReached ? await ask(batch, liveModels, asked) : NOT_ASKED;
    const after = before === null ? null : await ask(batch, models, asked);
    if (before === null || after === null) return { trial, waits: true };
    trial = added(trial, set.name, item, [before, after]);
  }
  const falls = sets.flatMap((set) => {
    const sums = trial.sums[set.name];
    if (sums === undefined) return [];
    const fallen = fallsOf(set.before ?? meansOf(sums, 0), meansOf(sums, 1));
    return fallen.length === 0 ? [] : [`${JSON.stringify(set.name)} (${fallen.join(', ')})`];
  });
  if (falls.length === 0) return 'holds';
  throw new EngineError(
    'invalid',
    `the new model does not go live, as guarded sets would fall: ${falls.join('; ')}; \`cairn reembed\` asks them ` +
      'again, `cairn reembed --force` lets the model go live all the same',
  );
}

/** @param unreached the live models, if they cannot be asked: then only sets with a comparable last run are returned */
function readGuardedSets(store: Store, unreached: SectorModels | null): GuardedSet[] {
  return listEvals(store)
    .filter(({ guard }) => guard)
    .flatMap(({ name, lastRun }): GuardedSet[] => {
      const set = getEval(store, name);
      if (unreached === null) return [{ ...set, before: null }];
      const isComparable = lastRun?.model === namesOfModels(unreached) && lastRun.itemsHash === hashOf(set.items);
      if (!isComparable) return [];
      return [{ ...set, before: { recall: lastRun.recall, rightlyEmpty: lastRun.rightlyEmpty } }];
    });
}

/** What came of a question. */
interface Worth {
  /** Share of the expected entries that were found. */
  readonly recall: number;
  /** 1 if nothing came, else 0. */
  readonly rightlyEmpty: number;
}

const NOT_ASKED: Worth = { recall: 0, rightlyEmpty: 0 };

interface Asked {
  readonly item: EvalItem;
  readonly place: number;
  readonly questionerOf: ReadContext['questionerOf'];
}

/** Asks a question as if these models were live. @returns null if a provider gave no vector */
async function ask(
  batch: BatchContext,
  models: SectorModels,
  { item, place, questionerOf }: Asked,
): Promise<Worth | null> {
  const { config, clock, logger, languageModel, defaults } = batch;
  const asIfLive = { liveModels: { value: models }, live: { value: models[0] } };
  const open = () => Object.create(batch.open(), asIfLive) as OpenTenant;
  await loadIndexes(open);
  const context: ReadContext = { config, clock, logger, tracing: null, questionerOf, languageModel, open };
  const { result } = await answerQuery(context, { query: queryOfItem(item), defaults: defaults?.() ?? {} });
  if (result.degradedReasons.includes('vectors')) return null;
  const { missing, hits } = judge(
    item,
    place,
    result.hits.map(({ memory }) => memory),
    0,
  );
  return {
    recall: item.expected.length === 0 ? 0 : 1 - missing.length / item.expected.length,
    rightlyEmpty: hits.length === 0 ? 1 : 0,
  };
}

/** Makes the function that finds what embeds questions by a model, which keeps no vectors. */
function createQuestionerFinder(batch: BatchContext): ReadContext['questionerOf'] {
  return (model): Questioner | null => {
    const source = sourceOfModel(batch, model);
    if (source === null) return null;
    const { embedder, gatherer } = source;
    const timeoutMs = batch.config.OM_QUERY_EMBED_TIMEOUT_MS;
    const provider = embedder.cacheable ? { provider: { gatherer, timeoutMs } } : {};
    return { embedder, embedQuery: createQueryEmbedder({ embedder, logger: batch.logger, cached: 0, ...provider }) };
  };
}

function added(trial: ReembedTrial, set: string, { expected }: EvalItem, [one, other]: readonly [Worth, Worth]) {
  const { recall, rightlyEmpty } = trial.sums[set] ?? { recall: [0, 0, 0], rightlyEmpty: [0, 0, 0] };
  const plus = (sums: TrialSums['recall'], name: keyof Worth): TrialSums['recall'] => [
    sums[0] + one[name],
    sums[1] + other[name],
    sums[2] + 1,
  ];
  const sums: TrialSums =
    expected.length > 0
      ? { recall: plus(recall, 'recall'), rightlyEmpty }
      : { recall, rightlyEmpty: plus(rightlyEmpty, 'rightlyEmpty') };
  return { ...trial, asked: trial.asked + 1, sums: { ...trial.sums, [set]: sums } };
}

function meansOf({ recall, rightlyEmpty }: TrialSums, model: 0 | 1): Means {
  const mean = (sums: TrialSums['recall']) => (sums[2] === 0 ? null : sums[model] / sums[2]);
  return { recall: mean(recall), rightlyEmpty: mean(rightlyEmpty) };
}
