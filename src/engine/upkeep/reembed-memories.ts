import { enqueueStep } from '../commands/enqueue-step.ts';
import { sectorsFromBits } from '../dynamics.ts';
import { EngineError } from '../errors.ts';
import { commitInSlices } from '../steps/commit-in-slices.ts';
import { cutWindows } from '../steps/draft-encoding.ts';
import { allOrOneByOne, countCached, embedBy, writeVectors, type EmbeddedIn } from '../steps/encode.ts';
import { linkModel } from '../steps/link.ts';
import type { StepContext, StepFailure } from '../steps/step-context.ts';
import { textOfMemory } from '../steps/text-of-memory.ts';
import { releaseJob, type Claim } from '../store/jobs.ts';
import { holdsLease } from '../store/job-leases.ts';
import { areSameModels, distinctModels, numbersOf } from '../store/live-model.ts';
import { readMemoryRows, type MemoryRow } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { findReembed, removeReembedJob } from '../store/reembed.ts';
import { findWholeVector } from '../store/vectors.ts';
import { NOT_MINE_MS } from './reembed.ts';

/**
 * Embeds the memories of claimed jobs by the configured models of their sectors, and deletes the jobs. The memories
 * keep their sectors, entities, links and live vectors. A memory that got its vectors meanwhile from an encode job is
 * left unchanged. If a configured model is live already, so that the job fills a gap, the memory is linked again. If no
 * change of the model is under way, or it has other target models than this worker's settings name, all claims are
 * handed back.
 * @returns the jobs whose embedding failed, which are still held, with the errors
 */
export async function reembedMemories(
  context: StepContext,
  claims: readonly Claim[],
  signal?: AbortSignal,
): Promise<readonly StepFailure[]> {
  const { store, configuredModels } = context.open();
  if (claims.length === 0) return [];
  const target = findReembed(store)?.target;
  if (target === undefined || configuredModels === null || !areSameModels(target, numbersOf(configuredModels))) {
    return handBack(context, claims);
  }
  const memoryNos = claims.map(({ memoryNo: memory }) => memory);
  const rows = new Map(readMemoryRows(store, memoryNos).map((row) => [row.memoryNo, row]));
  const drafts = claims.flatMap((claim) => {
    const row = rows.get(claim.memoryNo);
    return row === undefined ? [] : [{ claim, row }];
  });
  const results = await Promise.allSettled(drafts.map(({ row }) => embedRow(context, row, signal)));
  const failures: StepFailure[] = [];
  const embedded = drafts.flatMap(({ claim, row }, place) => {
    const result = results[place] as PromiseSettledResult<readonly EmbeddedIn[]>;
    if (result.status === 'fulfilled') return [{ claim, row, embedded: result.value }];
    failures.push({ jobNo: claim.jobNo, error: result.reason });
    return [];
  });
  await commitInSlices(
    () => context.open().store,
    embedded,
    (current, { claim, row, embedded: made }) => {
      if (!holdsLease(current, claim)) return;
      for (const part of made) {
        const isNew = findWholeVector(current, part.space, row.memoryNo) === undefined;
        if (isNew) addVectors(context, current, row, part);
      }
      removeReembedJob(current, claim);
    },
  );
  return failures;
}

/**
 * Hands the claims back for another worker, due in 5 seconds, since this worker's settings would make other vectors.
 * Returns no failures.
 */
function handBack({ open, clock }: StepContext, claims: readonly Claim[]): [] {
  const { store } = open();
  const now = clock.now();
  store.write(() => {
    for (const claim of claims) releaseJob(store, claim, now + NOT_MINE_MS, now);
  });
  return [];
}

async function embedRow(context: StepContext, row: MemoryRow, signal?: AbortSignal): Promise<readonly EmbeddedIn[]> {
  const { store, configuredModels } = context.open();
  if (configuredModels === null) throw new EngineError('unavailable', 'this worker has no embedder');
  const wanted = distinctModels(configuredModels, sectorsFromBits(row.sectors, row.primary_sector));
  const missing = wanted.filter((model) => findWholeVector(store, model, row.memoryNo) === undefined);
  const windows = cutWindows(textOfMemory(row));
  const embedded = await allOrOneByOne(
    context,
    missing.map((model) => () => embedBy(context, model, windows, signal)),
  );
  for (const { texts } of embedded) countCached(context, texts);
  return embedded;
}

function addVectors(context: StepContext, store: Store, row: MemoryRow, embedded: EmbeddedIn): void {
  writeVectors(context, { memory: row.memoryNo, userNo: row.user_no, ...embedded });
  const { liveModels } = context.open();
  if (liveModels === null || linkModel({ store, liveModels }, row.memoryNo).modelNo !== embedded.space.modelNo) return;
  enqueueStep({ store, now: context.clock.now(), newId: context.newId }, row.memoryNo, 'link');
}
