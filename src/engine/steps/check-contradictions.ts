import { contradictionOf, DEFAULT_WEIGHTS } from '../commands/relate.ts';
import { failpoint } from '../failpoint.ts';
import { judgeRelations, type Relation } from '../reasoning/judge-relations.ts';
import { putConcludedEdge, type EdgeKey } from '../store/edges.ts';
import { compileFilter } from '../store/filter.ts';
import { finishJob, insertJob, type Claim, type Question } from '../store/jobs.ts';
import { hasLaterCheck } from '../store/job-views.ts';
import { holdsLease } from '../store/job-leases.ts';
import { findOwner, readMemoryRows, type MemoryRow } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { isReflection } from '../store/reflections.ts';
import { listPassingOf } from '../store/passing-memories.ts';
import { compareStored } from '../store/vector-encoding.ts';
import { findWholeVector, readVectors } from '../store/vectors.ts';
import { type OpenTenant, spaceOf } from '../tenant-file/open-tenant.ts';
import { linkModel } from './link.ts';
import { waypointThreshold } from './settle-link-bases.ts';
import { statementOf, unchangedOf } from './shown-memories.ts';
import { liveSources, type StepContext } from './step-context.ts';

/**
 * Greatest number of memories that a memory, which has just got its vectors, is compared with: the nearest ones that
 * are near enough for a waypoint (automatic link).
 */
const MAX_COMPARED = 5;
/** Number of vectors that a search of the index returns. Memories that cannot be compared are dropped afterwards. */
const CANDIDATES_TO_COMPARE = 32;

/**
 * Adds a job that checks a memory for contradictions, if `OM_CONTRADICTIONS` is `llm`. Chunks of documents are not
 * checked, since they may quote others, nor are memories that were made of others (`isReflection`), such as
 * reflections: a contradiction would say nothing about what people stated. Call it when the memory has just got its
 * vectors, inside the same write transaction.
 */
export function enqueueContradictionCheck(
  { config, clock, newId }: Pick<StepContext, 'config' | 'clock' | 'newId'>,
  store: Store,
  { memoryNo: memory, documentNo: document, isBulk, trace }: Claim,
): void {
  if (config.OM_CONTRADICTIONS !== 'llm' || document !== null || isReflection(store, memory)) return;
  const job = { id: newId(), kind: 'contradictions', memory, step: 'reason', bulk: isBulk === 1 } as const;
  insertJob(store, { ...job, trace, now: clock.now() });
}

/**
 * Asks a language model how a memory relates to the nearest others of its user, and links it to those that it
 * contradicts, updates or supports; an update is stored as a contradiction. No winner of a contradiction is set, and
 * nothing is superseded: a model may be wrong, or be misled by a text. A contradiction without a winner only lowers the
 * score of the weaker memory, until its link is removed.
 *
 * Of two memories that are both to be checked, only the later job compares the pair, in whatever order the jobs run, so
 * that no pair gets two answers. The links and the end of the job are one commit; nothing is written if the claim no
 * longer holds the job.
 * @returns whether the model was asked. Without a model, or without a memory to compare with, the job ends unasked
 * @throws EngineError of `LanguageModel.complete`: `rate_limited`, `unavailable` (also if `signal` aborts), `conflict`,
 *   or `invalid` if the model declines or answers in another form
 */
export async function checkContradictions(
  context: StepContext,
  question: Question,
  signal?: AbortSignal,
): Promise<boolean> {
  const compared = findCompared(context, question);
  const { languageModel: model } = context;
  const asks = compared !== null && model !== null;
  const relations = asks
    ? await judgeRelations(
        model,
        { statement: statementOf(compared.own), others: compared.others.map(({ row }) => statementOf(row)) },
        signal,
      )
    : [];
  await failpoint('before-reason-commit');
  const { store } = context.open();
  const now = context.clock.now();
  store.write(() => {
    if (!holdsLease(store, question)) return;
    if (compared !== null) linkRelated(store, compared, relations, now);
    finishJob(store, question, now);
  });
  return asks;
}

/** A memory and the others that it is compared with, nearest first. */
interface Compared {
  readonly own: MemoryRow;
  readonly others: readonly { readonly row: MemoryRow; readonly similarity: number }[];
}

/**
 * Finds the at most 5 nearest memories with which a memory is compared, without those that have a later check of their
 * own. Null if there is none, or if the memory itself is not compared: it was erased, is not active or not valid now,
 * or is a chunk or made of other memories (`isReflection`); neither are such memories among the others.
 */
function findCompared(context: StepContext, { memoryNo, jobNo }: Question): Compared | null {
  const tenant = context.open();
  const { store } = tenant;
  return store.read(() => {
    if (memoryNo === null) return null;
    const near = nearestOf(context, tenant, memoryNo);
    const memoryNos = [memoryNo, ...near.map((neighbour) => neighbour.memoryNo)];
    const passing = new Set(listPassingOf(store, compileFilter({}, context.clock.now()), memoryNos));
    const rows = new Map(readMemoryRows(store, memoryNos).map((row) => [row.memoryNo, row]));
    const isSaid = (row: MemoryRow) =>
      passing.has(row.memoryNo) && row.generation_no === null && !isReflection(store, row.memoryNo);
    const own = rows.get(memoryNo);
    if (own === undefined || !isSaid(own)) return null;
    const others = near.flatMap(({ memoryNo: other, similarity }) => {
      const row = rows.get(other);
      return row !== undefined && isSaid(row) && !hasLaterCheck(store, other, jobNo) ? [{ row, similarity }] : [];
    });
    return others.length === 0 ? null : { own, others: others.slice(0, MAX_COMPARED) };
  });
}

/**
 * Lists at most 32 other memories of the same user that are near enough for a waypoint (automatic link), nearest first;
 * none if the memory has no vector, or if its model cannot be called.
 */
function nearestOf(
  context: StepContext,
  tenant: OpenTenant,
  memoryNo: number,
): { readonly memoryNo: number; readonly similarity: number }[] {
  const { store, liveModels, indexes } = tenant;
  if (liveModels === null) return [];
  const model = linkModel(tenant, memoryNo);
  const threshold = waypointThreshold(store, model.modelNo, liveSources(context));
  const space = spaceOf(model);
  const own = findWholeVector(store, space, memoryNo);
  const userNo = findOwner(store, memoryNo);
  const index = indexes.get(model.modelNo);
  if (own === undefined || userNo === undefined || index === undefined) return [];
  const vectorNos = index.search({ embedding: own.embedding, userNo, purpose: 'link', k: CANDIDATES_TO_COMPARE });
  const cosineWith = compareStored(own.embedding, space.encoding);
  return readVectors(store, space, vectorNos)
    .filter((other) => other.memory !== memoryNo)
    .map(({ memory, blob, offset, form }) => ({ memoryNo: memory, similarity: cosineWith(blob, offset, form) }))
    .filter(({ similarity }) => similarity >= threshold)
    .sort((a, b) => b.similarity - a.similarity || a.memoryNo - b.memoryNo);
}

/**
 * Adds the links that the model's answers state. Memories that were hidden or changed since they were compared are left
 * out: a changed text has a job of its own, which compares it.
 */
function linkRelated(store: Store, { own, others }: Compared, relations: readonly Relation[], now: number): void {
  const unchanged = unchangedOf(store, [own, ...others.map(({ row }) => row)], now);
  for (const [place, { row, similarity }] of others.entries()) {
    const key = edgeOf(relations[place] ?? 'unrelated', own, row);
    if (key === null || !unchanged.has(own.memoryNo) || !unchanged.has(row.memoryNo)) continue;
    putConcludedEdge(store, key, { similarity, weight: DEFAULT_WEIGHTS[key.type] }, now);
  }
}

function edgeOf(relation: Relation, own: MemoryRow, other: MemoryRow): EdgeKey | null {
  switch (relation) {
    case 'contradicts':
    case 'updates':
      return contradictionOf(own, other);
    case 'supports':
      return { src: own.memoryNo, dst: other.memoryNo, type: 'supports' };
    case 'unrelated':
      return null;
  }
}
