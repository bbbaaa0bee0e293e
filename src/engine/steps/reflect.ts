import { addMemories } from '../commands/accept.ts';
import { DEFAULT_WEIGHTS } from '../commands/relate.ts';
import { oweReflection } from '../commands/request-reflection.ts';
import type { WriteContext } from '../commands/write-context.ts';
import { EngineError } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { drawInsights, type Insight } from '../reasoning/draw-insights.ts';
import { putConcludedEdge } from '../store/edges.ts';
import { compileFilter } from '../store/filter.ts';
import { finishJob, holdsLease, type Question } from '../store/jobs.ts';
import { findSeqs, readMemoryRows, type MemoryRow } from '../store/memories.ts';
import type { Store } from '../store/open-store.ts';
import {
  findOwedReflection,
  findReflection,
  finishReflection,
  hasReflectionOnAll,
  lastMemory,
  listRecent,
  listReflections,
  listUnreflected,
  type ReflectionScope,
} from '../store/reflections.ts';
import type { NewMemory } from '../types.ts';
import { statementOf, unchangedOf } from './shown-memories.ts';
import type { StepContext } from './step-context.ts';

/** The type of a reflection, by which queries and lists find it. */
export const REFLECTION_TYPE = 'reflection';
/** Memories that one reflecting reads, the latest. */
const READ_MOST = 40;
/** Earlier reflections that it is told of. */
const KNOWN_MOST = 10;
/** It concludes and may err: where it contradicts what was said, that is the stronger. */
const CONFIDENCE = 0.5;
/** Users that one run of the schedule serves; the others are due at the next. */
const USERS_MOST = 1_000;
const USERS_AT_ONCE = 50;

/** The schedule: owes a reflecting to users with enough that is new. @param breathe lets others write between two pages of users */
export async function oweReflections(
  { open, config, clock }: Pick<StepContext, 'open' | 'config' | 'clock'>,
  { newId, breathe }: { readonly newId: () => string; readonly breathe: () => Promise<void> },
): Promise<void> {
  const page = { limit: USERS_AT_ONCE, atLeast: config.OM_REFLECTION_MIN_MEMORIES };
  for (let after = -1, owed = 0; owed < USERS_MOST;) {
    const { store } = open();
    const { due, last } = listUnreflected(store, { ...page, after });
    if (last === undefined) return;
    const scopes = due.map((userNo) => ({ userNo, sessionId: null }));
    store.write(() => {
      for (const scope of scopes.filter((one) => findOwedReflection(store, one) === undefined)) {
        oweReflection({ store, newId, now: clock.now() }, scope, { bulk: true });
        owed += 1;
      }
    });
    after = last;
    await breathe();
  }
}

/**
 * Asks a language model what follows from the latest memories of a user, and stores each insight as a memory that points to those it
 * rests on. The job, its memories and their links are one commit.
 * @returns whether there was anything to ask
 * @throws EngineError as `drawInsights`; `invalid` without a language model
 */
export async function reflect(context: StepContext, question: Question, signal?: AbortSignal): Promise<boolean> {
  const reading = read(context, question);
  const asks = reading !== null && reading.memories.length > 1;
  const insights = asks ? await askFor(context, reading, signal) : [];
  await failpoint('before-reason-commit');
  const { store, indexes } = context.open();
  const { config, newId } = context;
  const now = context.clock.now();
  const writing: WriteContext = {
    store,
    indexes,
    config,
    newId,
    now,
    trace: question.trace ?? undefined,
    backlog: { atMost: 0 },
  };
  store.write(() => {
    if (!holdsLease(store, question)) return;
    if (reading !== null) {
      const model = context.languageModel?.model ?? '';
      for (const insight of insights) keep(writing, reading, { insight, model, job: question.id });
      finishReflection(store, question.seq, reading.upTo);
    }
    finishJob(store, question, now);
  });
  return asks;
}

interface Reading extends ReflectionScope {
  /** In order of time. */
  readonly memories: readonly MemoryRow[];
  readonly known: readonly string[];
  readonly upTo: number;
}

/** null where there is nothing to put together. */
function read({ open, clock }: StepContext, { seq }: Question): Reading | null {
  const { store } = open();
  return store.read(() => {
    const scope = findReflection(store, seq);
    if (scope === undefined) return null;
    const visible = compileFilter({}, clock.now());
    const memories = readInOrder(store, listRecent(store, scope, { visible, limit: READ_MOST }));
    const known = readInOrder(store, listReflections(store, scope.userNo, { visible, limit: KNOWN_MOST }));
    return { ...scope, memories, known: known.map(({ content }) => content), upTo: lastMemory(store) };
  });
}

function readInOrder(store: Store, seqs: readonly number[]): MemoryRow[] {
  const rows = new Map(readMemoryRows(store, seqs).map((row) => [row.seq, row]));
  return seqs.flatMap((seq) => rows.get(seq) ?? []);
}

async function askFor(
  { languageModel }: StepContext,
  { memories, known }: Reading,
  signal: AbortSignal | undefined,
): Promise<readonly Insight[]> {
  if (languageModel === null)
    throw new EngineError('invalid', 'there is no language model to reflect by: set OM_LLM_MODEL');
  return drawInsights(languageModel, { memories: memories.map(statementOf), known }, signal);
}

/**
 * Nothing is kept that rests on what was erased, hidden or changed since it was read, nor what says an old thing anew: the same text, or
 * what rests on nothing that an earlier reflection did not rest on.
 */
function keep(
  context: WriteContext,
  { sessionId, memories }: Reading,
  { insight, model, job }: { readonly insight: Insight; readonly model: string; readonly job: string },
): void {
  const { store, now } = context;
  const sources = insight.sources.map((place) => memories[place]!);
  const seqs = sources.map(({ seq }) => seq);
  if (unchangedOf(store, sources, now).size < sources.length || hasReflectionOnAll(store, seqs)) return;
  const { user_id: userId } = sources[0]!;
  const memory = memoryOf(insight.text, { userId, sessionId: sessionId ?? '', model, job });
  const [outcome] = addMemories(context, { items: [memory], options: { bulk: true } }).outcomes;
  if (outcome?.kind !== 'accepted') return;
  const reflection = findSeqs(store, [outcome.id]).get(outcome.id)!;
  const link = { similarity: null, weight: DEFAULT_WEIGHTS.derived_from };
  for (const dst of seqs) putConcludedEdge(store, { src: reflection, dst, type: 'derived_from' }, link, now);
}

/** Who made it stands in its metadata, by which those of one job can be found. */
function memoryOf(
  content: string,
  { userId, sessionId, model, job }: { userId: string; sessionId: string; model: string; job: string },
): NewMemory {
  return {
    ...{ content, userId, sessionId, type: REFLECTION_TYPE, confidence: CONFIDENCE },
    metadata: { sector: 'reflective', reflection_job: job, reflection_model: model },
    ...{ tags: [], files: [], title: '', gist: '', entities: null, externalId: null, importance: null },
    ...{ eventTime: null, validFrom: null, validTo: null, expiresAt: null },
  };
}
