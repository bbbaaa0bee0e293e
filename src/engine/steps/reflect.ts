import { addMemories } from '../commands/accept.ts';
import { DEFAULT_WEIGHTS } from '../commands/relate.ts';
import { enqueueReflection } from '../commands/request-reflection.ts';
import type { WriteContext } from '../commands/write-context.ts';
import { EngineError, isEngineError } from '../errors.ts';
import { failpoint } from '../failpoint.ts';
import { markMetadata } from '../privacy/screen-memory.ts';
import { drawInsights, type Insight, type KnownInsight } from '../reasoning/draw-insights.ts';
import { putConcludedEdge } from '../store/edges.ts';
import { compileFilter } from '../store/filter.ts';
import { finishJob, type Question } from '../store/jobs.ts';
import { holdsLease } from '../store/job-leases.ts';
import { findMemoryNos, readMemoryRows, type MemoryRow } from '../store/memories.ts';
import { lastMemory } from '../store/memory-counts.ts';
import type { Store } from '../store/open-store.ts';
import {
  findUnfinishedReflection,
  findReflection,
  finishReflection,
  hasReflectionOnAll,
  listRecent,
  listReflections,
  listSourceTexts,
  listUnreflected,
  type ReflectionScope,
} from '../store/reflections.ts';
import type { NewMemory, SensitiveKind } from '../types.ts';
import { statementOf, unchangedOf } from './shown-memories.ts';
import { writeContextOf, type StepContext } from './step-context.ts';

/**
 * The type of all reflections (conclusions that a language model drew from memories), by which queries and lists find
 * them.
 */
const REFLECTION_TYPE = 'reflection';
/** Greatest number of memories that one reflection job reads: the latest of its scope. */
const MAX_READ = 40;
/** Greatest number of earlier reflections that the prompt repeats to the model. */
const MAX_EARLIER = 10;
/**
 * Confidence (0..1; 1 for what somebody states without one) of a reflection, which is a conclusion and may be wrong: if
 * it contradicts a memory that somebody stated, that memory counts as stronger.
 */
const CONFIDENCE = 0.5;
/**
 * Number of added jobs, each for one user, after which one run of the schedule ends, once its page of users is done.
 * The next run continues with other users.
 */
const MAX_QUEUED = 1_000;
/** Number of users on one page of the schedule, after which the thread yields to other work. */
const USERS_AT_ONCE = 50;

/**
 * Runs the schedule of reflections: adds a job for each user who has at least `OM_REFLECTION_MIN_MEMORIES` new memories
 * (`listUnreflected`) and no unfinished reflection on all sessions, and ends after about 1,000 jobs.
 * @param yieldTurn lets others write between two pages of users
 */
export async function enqueueReflections(
  { open, config, clock }: Pick<StepContext, 'open' | 'config' | 'clock'>,
  { newId, yieldTurn }: { readonly newId: () => string; readonly yieldTurn: () => Promise<void> },
): Promise<void> {
  const page = { limit: USERS_AT_ONCE, atLeast: config.OM_REFLECTION_MIN_MEMORIES };
  for (let after = -1, queued = 0; queued < MAX_QUEUED;) {
    const { store } = open();
    const { due, last } = listUnreflected(store, { ...page, after });
    if (last === undefined) return;
    const scopes = due.map((userNo) => ({ userNo, sessionId: null }));
    store.write(() => {
      for (const scope of scopes.filter((scope) => findUnfinishedReflection(store, scope) === undefined)) {
        enqueueReflection({ store, newId, now: clock.now() }, scope, { bulk: true });
        queued += 1;
      }
    });
    after = last;
    await yieldTurn();
  }
}

/**
 * Asks a language model what follows from the latest 40 memories of a user, or of one session of the user, and stores
 * each insight as a memory that points to the memories it was drawn from. Parts of documents, and memories that were
 * made of others, are not read. The end of the job, the new memories and their links are one commit; nothing is written
 * if the claim no longer holds the job.
 * @returns whether the model was asked. With fewer than two memories to reflect on, or if its user or session is no
 *   longer stored, the job ends unasked
 * @throws EngineError of `LanguageModel.complete`: `rate_limited`, `unavailable`, `conflict`, or `invalid` if the model
 *   declines or answers in another form; `invalid` too if there is something to ask but no language model;
 *   `unavailable` also if `signal` aborts, and of `PrivacyGuard.fields`
 */
export async function reflect(context: StepContext, question: Question, signal?: AbortSignal): Promise<boolean> {
  const material = readMaterial(context, question);
  const asks = material !== null && material.memories.length > 1;
  const drawn = asks ? await askFor(context, material, signal) : [];
  const insights = await screened(context, drawn);
  await failpoint('before-reason-commit');
  const writing: WriteContext = { ...writeContextOf(context), trace: question.trace ?? undefined };
  const { store, now } = writing;
  store.write(() => {
    if (!holdsLease(store, question)) return;
    if (material !== null) {
      const model = context.languageModel?.model ?? '';
      for (const insight of insights) keep(writing, material, { insight, model, job: question.id });
      finishReflection(store, question.jobNo, material.upTo);
    }
    finishJob(store, question, now);
  });
  return asks;
}

/** An insight as it is stored, with the kinds of sensitive values that are marked in its text. */
interface ScreenedInsight extends Insight {
  readonly marked: readonly SensitiveKind[];
}

/** Screens insights as memories are screened; those that the tenant's privacy policy refuses are left out. */
async function screened({ guard }: StepContext, insights: readonly Insight[]): Promise<readonly ScreenedInsight[]> {
  if (guard?.isOn() !== true) return insights.map((insight) => ({ ...insight, marked: [] }));
  const kept: ScreenedInsight[] = [];
  for (const insight of insights) {
    try {
      const { fields, report } = await guard.fields({ content: insight.text });
      kept.push({ ...insight, text: fields.content, marked: report.marked });
    } catch (error) {
      if (!isEngineError(error, 'unprocessable')) throw error;
    }
  }
  return kept;
}

interface Material extends ReflectionScope {
  /** Memories to reflect on, in order of time, at most 40. */
  readonly memories: readonly MemoryRow[];
  /** The user's latest reflections, at most 10, newest first. */
  readonly earlier: readonly KnownInsight[];
  /** `memoryNo` of the last memory in the file when the material was read. */
  readonly upTo: number;
}

/** Reads the material of a reflection; null if the job's scope (user or session) is no longer stored. */
function readMaterial({ open, clock }: StepContext, { jobNo }: Question): Material | null {
  const { store } = open();
  return store.read(() => {
    const scope = findReflection(store, jobNo);
    if (scope === undefined) return null;
    const visible = compileFilter({}, clock.now());
    const memories = readInOrder(store, listRecent(store, scope, { visible, limit: MAX_READ }));
    const earlier = readInOrder(store, listReflections(store, scope.userNo, { visible, limit: MAX_EARLIER }));
    return { ...scope, memories, earlier: earlier.map((row) => knownOf(store, row)), upTo: lastMemory(store) };
  });
}

function knownOf(store: Store, { memoryNo, content, written_by }: MemoryRow): KnownInsight {
  return { text: content, from: written_by === null ? listSourceTexts(store, memoryNo, MAX_READ) : [content] };
}

function readInOrder(store: Store, memoryNos: readonly number[]): MemoryRow[] {
  const rows = new Map(readMemoryRows(store, memoryNos).map((row) => [row.memoryNo, row]));
  return memoryNos.flatMap((memoryNo) => rows.get(memoryNo) ?? []);
}

async function askFor(
  { languageModel }: StepContext,
  { memories, earlier }: Material,
  signal: AbortSignal | undefined,
): Promise<readonly Insight[]> {
  if (languageModel === null)
    throw new EngineError('invalid', 'there is no language model to reflect by: set OM_LLM_MODEL');
  return drawInsights(languageModel, { memories: memories.map(statementOf), known: earlier }, signal);
}

/**
 * Stores a conclusion of the language model as a memory with links to its sources, and weaker ones to the memories that
 * it quotes, so that it is erased with each of them. Nothing is stored if one of these was erased, hidden or changed
 * since it was read, or if the conclusion repeats an earlier memory: its text is stored already (that memory is then
 * reinforced), or one earlier reflection has all of its sources. Call it inside a write transaction.
 */
function keep(
  context: WriteContext,
  { sessionId, memories }: Material,
  { insight, model, job }: { readonly insight: ScreenedInsight; readonly model: string; readonly job: string },
): void {
  const { store, now } = context;
  const sources = insight.sources.map((place) => memories[place]!);
  const read = [...sources, ...insight.quoted.map((place) => memories[place]!)];
  if (unchangedOf(store, read, now).size < read.length) return;
  const memoryNos = sources.map(({ memoryNo }) => memoryNo);
  if (hasReflectionOnAll(store, memoryNos, { heavierThan: DEFAULT_WEIGHTS.mentions })) return;
  const { user_id: userId } = read[0]!;
  const memory = memoryOf(insight, { userId, sessionId: sessionId ?? '', model, job });
  const [outcome] = addMemories(context, { items: [memory], options: { bulk: true, matchesDerived: true } }).outcomes;
  if (outcome?.kind !== 'accepted') return;
  const reflection = findMemoryNos(store, [outcome.id]).get(outcome.id)!;
  for (const row of read) {
    const weight = sources.includes(row) ? DEFAULT_WEIGHTS.derived_from : DEFAULT_WEIGHTS.mentions;
    const key = { src: reflection, dst: row.memoryNo, type: 'derived_from' } as const;
    putConcludedEdge(store, key, { similarity: null, weight }, now);
  }
}

/**
 * Makes the memory of a conclusion that a language model drew. Its metadata names the job and the model that made it,
 * so that the memories of a job can be found.
 */
function memoryOf(
  { text: content, marked }: ScreenedInsight,
  { userId, sessionId, model, job }: { userId: string; sessionId: string; model: string; job: string },
): NewMemory {
  return {
    content,
    userId,
    sessionId,
    type: REFLECTION_TYPE,
    confidence: CONFIDENCE,
    metadata: markMetadata({ sector: 'reflective', reflection_job: job, reflection_model: model }, marked),
    tags: [],
    files: [],
    title: '',
    gist: '',
    entities: null,
    externalId: null,
    importance: null,
    eventTime: null,
    validFrom: null,
    validTo: null,
    expiresAt: null,
  };
}
