/**
 * Measures what consolidating changes: `npm run measure -- consolidation PATH`, with the folders of `npm run eval`.
 * Each user's memories are gathered, and the same questions asked before and after, for ten hits, without floors and
 * with them. A gathered memory is no answer by itself: it counts as those of its sources whose text it repeats, that is
 * four fifths of the distinct words that are no stop words. `sources alone` counts it as nothing, though it takes a
 * place.
 */
import { performance } from 'node:perf_hooks';
import { hasConsolidations } from '../src/engine/store/consolidations.ts';
import type { Store } from '../src/engine/store/open-store.ts';
import { STOP_WORDS } from '../src/engine/text/stop-words.ts';
import { words } from '../src/engine/text/words.ts';
import { type EvaluationQuestion, loadEvaluationSets } from './datasets.ts';
import { type EvaluatedStore, openEvaluatedStore } from './evaluated-store.ts';

const NOW = Date.UTC(2025, 0, 1);
const K = 10;
const REPEATED = 0.8;
const SETS = [process.argv[3] ?? ['locomo', 'memdaily']].flat();
const NO_FLOORS = { minScore: 0, relativeFloor: 0 } as const;

async function main(): Promise<void> {
  for (const set of loadEvaluationSets(process.argv[2]!).filter(({ name }) => SETS.includes(name))) {
    let unusedUs = 0;
    await using store = await openEvaluatedStore(set, { now: NOW, prepare: (file) => (unusedUs = timeUnused(file)) });
    const questions = store.questions.filter(({ relevant }) => relevant.size > 0);
    const figures = { set: set.name, memories: store.memories, questions: questions.length };
    const before = await askAll(store, questions, new Map());
    const cpu = process.cpuUsage();
    const { jobId } = await store.tenant.consolidate({ userId: null, again: false });
    await store.work();
    const { user, system } = process.cpuUsage(cpu);
    const made = await listAll(store, jobId);
    const after = await askAll(store, questions, await coveredBy(store, made));
    await store.tenant.undoConsolidation(jobId);
    const undone = await askAll(store, questions, new Map());
    print({
      ...figures,
      gathered: made.length,
      sources: made.reduce((sum, { sourceIds }) => sum + sourceIds.length, 0),
      us_a_query_unused: round(unusedUs),
      cpu_ms_per_1000_memories: round((user + system) / store.memories),
    });
    for (const [name, measured] of Object.entries({ before, after, undone }))
      print({ set: set.name, name, ...measured });
  }
}

/** Times what a query asks of a file in which nothing was gathered, µs. */
function timeUnused(store: Store): number {
  const times = 100_000;
  const started = performance.now();
  store.read(() => {
    for (let time = 0; time < times; time++) hasConsolidations(store);
  });
  return (1_000 * (performance.now() - started)) / times;
}

/** The sources whose text each gathered memory repeats, by the id of the gathered memory. */
type Covered = ReadonlyMap<string, readonly string[]>;

type Made = Awaited<ReturnType<EvaluatedStore['tenant']['listConsolidations']>>;

async function listAll({ tenant }: EvaluatedStore, runId: string): Promise<Made> {
  const all: Made[number][] = [];
  for (let before: string | undefined; ;) {
    const page = await tenant.listConsolidations({ runId, before, limit: 1_000 });
    all.push(...page);
    if (page.length < 1_000) return all;
    before = page.at(-1)!.id;
  }
}

async function coveredBy({ tenant }: EvaluatedStore, made: Made): Promise<Covered> {
  const contentWords = async (id: string) =>
    new Set(words((await tenant.getMemory(id)).content).filter((word) => !STOP_WORDS.has(word)));
  const covered = new Map<string, string[]>();
  for (const { memoryId, sourceIds } of made) {
    if (memoryId === null) continue;
    const said = await contentWords(memoryId);
    const repeated: string[] = [];
    for (const id of sourceIds) {
      const own = [...(await contentWords(id))];
      if (own.filter((word) => said.has(word)).length >= REPEATED * own.length) repeated.push(id);
    }
    covered.set(memoryId, repeated);
  }
  return covered;
}

async function askAll(store: EvaluatedStore, questions: readonly EvaluationQuestion[], covered: Covered) {
  let [through, alone, floored, atOne, gathered, ms] = [0, 0, 0, 0, 0, 0];
  for (const question of questions.slice(0, 50)) await store.ask(question, { k: K });
  for (const question of questions) {
    const recall = (ids: Iterable<string>) =>
      [...new Set(ids)].filter((id) => question.relevant.has(id)).length / question.relevant.size;
    const counted = (ids: readonly string[]) => ids.flatMap((id) => covered.get(id) ?? [id]);
    const started = performance.now();
    const answer = idsOf(await store.ask(question, { k: K }));
    ms += performance.now() - started;
    const hits = idsOf(await store.ask(question, { ...NO_FLOORS, k: K }));
    through += recall(counted(hits));
    alone += recall(hits.filter((id) => !covered.has(id)));
    floored += recall(counted(answer));
    atOne += recall(counted(hits.slice(0, 1)));
    gathered += hits.filter((id) => covered.has(id)).length;
  }
  const mean = (sum: number) => round(sum / questions.length);
  return {
    'R@10': mean(through),
    'R@10 sources alone': mean(alone),
    'R@10 with floors': mean(floored),
    'R@1': mean(atOne),
    'gathered in ten': mean(gathered),
    'ms a query': mean(ms),
  };
}

function idsOf({ hits }: Awaited<ReturnType<EvaluatedStore['ask']>>): string[] {
  return hits.map(({ memory }) => memory.id);
}

function round(value: number): number {
  return Math.round(value * 10_000) / 10_000;
}

function print(line: object): void {
  console.log(JSON.stringify(line));
}

await main();
