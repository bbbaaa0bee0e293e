import { contradictionOf, DEFAULT_WEIGHTS } from '../commands/relate.ts';
import { failpoint } from '../failpoint.ts';
import { judgeRelations, type Relation } from '../reasoning/judge-relations.ts';
import { putConcludedEdge, type EdgeKey } from '../store/edges.ts';
import { compileFilter } from '../store/filter.ts';
import { finishJob, hasLaterCheck, holdsLease, insertJob, type Claim, type Question } from '../store/jobs.ts';
import { findOwner, readMemoryRows, type MemoryRow } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import { isReflection } from '../store/reflections.ts';
import { listPassingOf } from '../store/search.ts';
import { cosine } from '../store/vector-encoding.ts';
import { findWholeVector, readVectors } from '../store/vectors.ts';
import { type OpenTenant, spaceOf } from '../tenant-file/open-tenant.ts';
import { linkModel } from './link.ts';
import { statementOf, unchangedOf } from './shown-memories.ts';
import { liveSources, type StepContext } from './step-context.ts';

/** Memories that a new one is compared with, the nearest that are near enough. */
const COMPARED_MOST = 5;
/** Neighbours taken from the index before those that do not count are left out. */
const CANDIDATES = 32;

/**
 * Owes a look for contradictions to a memory that has just got its vectors, if the settings ask for it. Parts of documents quote, and
 * reflections conclude: neither is held against what was said. Call inside a write.
 */
export function oweContradictionCheck(
  { config, clock, newId }: Pick<StepContext, 'config' | 'clock' | 'newId'>,
  store: Store,
  { memory, document, isBulk, trace }: Claim,
): void {
  if (config.OM_CONTRADICTIONS === 'off' || document !== null || isReflection(store, memory)) return;
  const job = { id: newId(), kind: 'contradictions', memory, step: 'reason', bulk: isBulk === 1 } as const;
  insertJob(store, { ...job, trace, now: clock.now() });
}

/**
 * Asks a language model how a memory relates to the nearest others of its user, and links it to those that it contradicts, brings up to
 * date or supports. Of two that contradict each other nobody is said to be right, and nothing is superseded: a model may be wrong, or be
 * talked into something by a text. An open contradiction only lowers the weaker of the two in answers, and goes with the link.
 *
 * Of a pair the later job asks, whatever the order of their work, so that none is asked about twice with two answers.
 * @returns whether there was anything to ask
 * @throws EngineError as `judgeRelations`
 */
export async function checkContradictions(
  context: StepContext,
  question: Question,
  signal?: AbortSignal,
): Promise<boolean> {
  const near = nearOnes(context, question);
  const { languageModel: model } = context;
  const asks = near !== null && model !== null;
  const relations = asks
    ? await judgeRelations(
        model,
        { statement: statementOf(near.own), others: near.others.map(({ row }) => statementOf(row)) },
        signal,
      )
    : [];
  await failpoint('before-reason-commit');
  const { store } = context.open();
  const now = context.clock.now();
  store.write(() => {
    if (!holdsLease(store, question)) return;
    if (near !== null) linkRelated(store, near, relations, now);
    finishJob(store, question, now);
  });
  return asks;
}

interface NearOnes {
  readonly own: MemoryRow;
  readonly others: readonly { readonly row: MemoryRow; readonly similarity: number }[];
}

/** null where there is nothing to compare. */
function nearOnes(context: StepContext, { memory, seq }: Question): NearOnes | null {
  const tenant = context.open();
  const { store } = tenant;
  return store.read(() => {
    if (memory === null) return null;
    const near = nearestOf(context, tenant, memory);
    const seqs = [memory, ...near.map((one) => one.memory)];
    const passing = new Set(listPassingOf(store, compileFilter({}, context.clock.now()), seqs));
    const rows = new Map(readMemoryRows(store, seqs).map((row) => [row.seq, row]));
    const isSaid = (row: MemoryRow) =>
      passing.has(row.seq) && row.generation_no === null && !isReflection(store, row.seq);
    const own = rows.get(memory);
    if (own === undefined || !isSaid(own)) return null;
    const others = near.flatMap(({ memory: other, similarity }) => {
      const row = rows.get(other);
      return row !== undefined && isSaid(row) && !hasLaterCheck(store, other, seq) ? [{ row, similarity }] : [];
    });
    return others.length === 0 ? null : { own, others: others.slice(0, COMPARED_MOST) };
  });
}

/** Others of the same user that would be near enough for a waypoint, the nearest first. */
function nearestOf(
  context: StepContext,
  tenant: OpenTenant,
  memory: number,
): { readonly memory: number; readonly similarity: number }[] {
  const { store, liveModels, indexes } = tenant;
  if (liveModels === null) return [];
  const model = linkModel(tenant, memory);
  const threshold = liveSources(context).get(model.modelNo)?.embedder.waypointThreshold ?? Infinity;
  const space = spaceOf(model);
  const own = findWholeVector(store, space, memory);
  const userNo = findOwner(store, memory);
  const index = indexes.get(model.modelNo);
  if (own === undefined || userNo === undefined || index === undefined) return [];
  const found = index.search({ embedding: own.embedding, userNo, purpose: 'link', k: CANDIDATES });
  return readVectors(store, space, found)
    .filter((other) => other.memory !== memory)
    .map((other) => ({ memory: other.memory, similarity: cosine(own.embedding, other.embedding) }))
    .filter(({ similarity }) => similarity >= threshold)
    .sort((a, b) => b.similarity - a.similarity || a.memory - b.memory);
}

/** What was hidden or says something else since it was compared is left out: a new text is compared by a job of its own. */
function linkRelated(store: Store, { own, others }: NearOnes, relations: readonly Relation[], now: number): void {
  const unchanged = unchangedOf(store, [own, ...others.map(({ row }) => row)], now);
  for (const [place, { row, similarity }] of others.entries()) {
    const key = edgeOf(relations[place] ?? 'unrelated', own, row);
    if (key === null || !unchanged.has(own.seq) || !unchanged.has(row.seq)) continue;
    putConcludedEdge(store, key, { similarity, weight: DEFAULT_WEIGHTS[key.type] }, now);
  }
}

function edgeOf(relation: Relation, own: MemoryRow, other: MemoryRow): EdgeKey | null {
  switch (relation) {
    case 'contradicts':
    case 'updates':
      return contradictionOf(own, other);
    case 'supports':
      return { src: own.seq, dst: other.seq, type: 'supports' };
    case 'unrelated':
      return null;
  }
}
