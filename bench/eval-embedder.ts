/**
 * Measures the quality of the offline embedder on the sets of `datasets.ts`:
 *
 *     npm run measure -- eval-embedder FOLDER
 *
 * 1. Retrieval by (a) a plain hash of words, the baseline, (b) FTS5 with porter and without stop words, the reference,
 *    (c) exact cosine of the embedder, (d) its sign bits, rescored from int5.
 * 2. Share of the ten nearest that the sign bits keep, by the number of rescored candidates, with all sets in one
 *    index.
 * 3. Similarity of each memory to its nearest neighbour, of the same user and of another one, to place the waypoint
 *    threshold.
 * 4. Reciprocal rank fusion of words and vectors by `vectorWeight`.
 * 5. Microseconds per text.
 *
 * It prints tables for people and one JSON line per figure.
 */
import Database from 'better-sqlite3';
import { createHashedEmbedder } from '../src/engine/adapters/hashed-embedder.ts';
import { cosine, decodeVector, encodeVector, signBits } from '../src/engine/store/vector-encoding.ts';
import { isCjk, words } from '../src/engine/text/words.ts';
import { STOP_WORDS } from '../src/engine/text/stop-words.ts';
import { loadEvaluationSets, type EvaluationQuestion, type EvaluationSet } from './datasets.ts';

const DEPTH = 100;
const CANDIDATES = 200;
const embedder = createHashedEmbedder();

function main(): void {
  const corpora = loadEvaluationSets(process.argv[2]!).map(prepare);
  printRetrieval(corpora);
  printBitIndex(corpora);
  printWaypoints(corpora);
  printFusion(corpora);
  printSpeed(corpora);
}

interface Indexed {
  readonly key: string;
  readonly content: string;
  readonly rowid: number;
  readonly vector: Float32Array;
  readonly stored: Float32Array;
  readonly bits: Uint32Array;
}

interface Corpus {
  readonly name: string;
  readonly users: ReadonlyMap<string, readonly Indexed[]>;
  readonly questions: readonly EvaluationQuestion[];
  readonly text: Database.Database;
}

function prepare(set: EvaluationSet): Corpus {
  const text = new Database(':memory:');
  text.exec(
    `CREATE VIRTUAL TABLE memory_text USING fts5
       (content, content = '', tokenize = 'porter unicode61 remove_diacritics 2')`,
  );
  const insert = text.prepare<[number, string]>('INSERT INTO memory_text (rowid, content) VALUES (?, ?)');
  let rowid = 0;
  const users = new Map(
    set.users.map((user) => [
      user.userId,
      user.memories.map(({ key, content }): Indexed => {
        rowid += 1;
        insert.run(rowid, words(content).join(' '));
        const vector = embedder.embedOne(content, 'document');
        const stored = decodeVector(encodeVector(vector, 'int5'), 'int5', embedder.dimensions);
        return { key, content, rowid, vector, stored, bits: packedBits(vector) };
      }),
    ]),
  );
  return { name: set.name, users, questions: set.questions.filter((question) => question.relevant.size > 0), text };
}

/** The first `DEPTH` keys, best first. */
type Search = (query: string, memories: readonly Indexed[]) => readonly string[];

function printRetrieval(corpora: readonly Corpus[]): void {
  const rows = corpora.flatMap((corpus) =>
    Object.entries(searches(corpus)).map(([method, search]) => ({
      set: corpus.name,
      method,
      ...evaluate(corpus, search),
    })),
  );
  report('retrieval', rows);
}

function searches(corpus: Corpus): Record<string, Search> {
  return {
    'plain hash': plainSearch(corpus),
    fts5: textSearch(corpus),
    'hashed exact': exactSearch,
    'hashed bits+int5': bitSearch,
  };
}

function plainSearch(corpus: Corpus): Search {
  const vectors = new Map<Indexed, Float32Array>();
  for (const memories of corpus.users.values()) {
    for (const memory of memories) vectors.set(memory, plainHash(memory.content));
  }
  return (query, memories) => {
    const vector = plainHash(query);
    return bestFirst(memories, (memory) => cosine(vector, vectors.get(memory)!))
      .slice(0, DEPTH)
      .map(keyOf);
  };
}

/** Embeds a text by counting each word in the dimension of its hash: without signs, weights or parts of words. */
function plainHash(text: string): Float32Array {
  const vector = new Float32Array(embedder.dimensions);
  for (const word of words(text)) {
    let hash = 0;
    for (let i = 0; i < word.length; i += 1) hash = (Math.imul(hash, 31) + word.charCodeAt(i)) >>> 0;
    vector[hash % vector.length]! += 1;
  }
  return vector;
}

function textSearch(corpus: Corpus): Search {
  const match = corpus.text.prepare<[string, number, number, number], number>(
    'SELECT rowid FROM memory_text WHERE memory_text MATCH ? AND rowid BETWEEN ? AND ? ORDER BY rank, rowid LIMIT ?',
  );
  match.pluck();
  return (query, memories) => {
    const found = words(query);
    // The index holds single CJK characters beside pairs of them; in a query single ones would only add noise.
    const content = found.filter((word) => !STOP_WORDS.has(word) && !(isCjk(word) && [...word].length === 1));
    const terms = new Set(content.length > 0 ? content : found);
    if (terms.size === 0) return [];
    const first = memories[0]!.rowid;
    const rowids = match.all(
      [...terms].map((term) => `"${term}"`).join(' OR '),
      first,
      first + memories.length - 1,
      DEPTH,
    );
    return rowids.map((rowid) => memories[rowid - first]!.key);
  };
}

const exactSearch: Search = (query, memories) => {
  const vector = embedder.embedOne(query, 'query');
  return bestFirst(memories, (memory) => cosine(vector, memory.vector))
    .slice(0, DEPTH)
    .map(keyOf);
};

const bitSearch: Search = (query, memories) => {
  const vector = embedder.embedOne(query, 'query');
  const candidates = nearestByBits(vector, memories, CANDIDATES);
  return bestFirst(candidates, (memory) => cosine(vector, memory.stored))
    .slice(0, DEPTH)
    .map(keyOf);
};

function nearestByBits(vector: Float32Array, memories: readonly Indexed[], count: number): Indexed[] {
  const bits = packedBits(vector);
  return bestFirst(memories, (memory) => -hamming(bits, memory.bits)).slice(0, count);
}

function packedBits(vector: Float32Array): Uint32Array {
  return new Uint32Array(Uint8Array.from(signBits(vector)).buffer);
}

function hamming(a: Uint32Array, b: Uint32Array): number {
  let distance = 0;
  for (let i = 0; i < a.length; i += 1) {
    let bits = a[i]! ^ b[i]!;
    bits -= (bits >>> 1) & 0x55555555;
    bits = (bits & 0x33333333) + ((bits >>> 2) & 0x33333333);
    distance += Math.imul((bits + (bits >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
  }
  return distance;
}

function keyOf(memory: Indexed): string {
  return memory.key;
}

function bestFirst(memories: readonly Indexed[], score: (memory: Indexed) => number): Indexed[] {
  return memories
    .map((memory) => ({ memory, score: score(memory) }))
    .sort((a, b) => b.score - a.score || a.memory.rowid - b.memory.rowid)
    .map(({ memory }) => memory);
}

interface Measures {
  readonly recall1: number;
  readonly recall10: number;
  readonly recall60: number;
  readonly ndcg10: number;
  readonly mrr: number;
}

/** Mean measures over the questions that have an answer. Relevance is yes or no; MRR uses the first `DEPTH` hits. */
function evaluate(corpus: Corpus, search: Search): Measures {
  const sum = { recall1: 0, recall10: 0, recall60: 0, ndcg10: 0, mrr: 0 };
  for (const question of corpus.questions) {
    const hits = search(question.query, corpus.users.get(question.userId)!).map((key) => question.relevant.has(key));
    const recall = (k: number) => hits.slice(0, k).filter(Boolean).length / question.relevant.size;
    const gain = (relevant: readonly boolean[]) =>
      relevant.reduce((total, hit, rank) => total + (hit ? 1 / Math.log2(rank + 2) : 0), 0);
    const ideal = new Array<boolean>(Math.min(10, question.relevant.size)).fill(true);
    const first = hits.indexOf(true);
    sum.recall1 += recall(1);
    sum.recall10 += recall(10);
    sum.recall60 += recall(60);
    sum.ndcg10 += gain(hits.slice(0, 10)) / gain(ideal);
    sum.mrr += first === -1 ? 0 : 1 / (first + 1);
  }
  const mean = (total: number) => total / corpus.questions.length;
  return {
    recall1: mean(sum.recall1),
    recall10: mean(sum.recall10),
    recall60: mean(sum.recall60),
    ndcg10: mean(sum.ndcg10),
    mrr: mean(sum.mrr),
  };
}

/**
 * Asks every fourth question against all memories of all sets together, since a small scope hides the losses of bits.
 */
function printBitIndex(corpora: readonly Corpus[]): void {
  const all = corpora.flatMap((corpus) => [...corpus.users.values()].flat());
  const counts = [10, 20, 50, 100, 200];
  const rows = corpora.map((corpus) => {
    const questions = corpus.questions.filter((_, index) => index % 4 === 0);
    const kept = new Map(counts.map((count) => [count, 0]));
    for (const { query } of questions) {
      const vector = embedder.embedOne(query, 'query');
      const exact = bestFirst(all, (memory) => cosine(vector, memory.vector)).slice(0, 10);
      const candidates = nearestByBits(vector, all, Math.max(...counts));
      for (const count of counts) {
        const rescored = bestFirst(candidates.slice(0, count), (memory) => cosine(vector, memory.stored)).slice(0, 10);
        kept.set(count, kept.get(count)! + rescored.filter((memory) => exact.includes(memory)).length / 10);
      }
    }
    return {
      set: corpus.name,
      memories: all.length,
      ...Object.fromEntries(counts.map((count) => [`top${count}`, kept.get(count)! / questions.length])),
    };
  });
  report('recall@10 of sign bits + int5 against exact cosine', rows);
}

/**
 * For every memory, finds the most similar other memory of its user, and the most similar memory of a stranger: the
 * next user of the set or, in a set of one user, the first user of the previous set. MemDaily's users share the
 * templates they were made from and are no strangers.
 */
function printWaypoints(corpora: readonly Corpus[]): void {
  const thresholds = [0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.75];
  const rows = corpora.flatMap((corpus, position) => {
    const users = [...corpus.users.values()];
    const strangers = [...corpora.at(position - 1)!.users.values()][0]!;
    const nearest: number[] = [];
    const stranger: number[] = [];
    for (const [index, memories] of users.entries()) {
      const others = users.length > 1 ? users[(index + 1) % users.length]! : strangers;
      for (const memory of memories) {
        nearest.push(highest(memory, memories));
        stranger.push(highest(memory, others));
      }
    }
    return [
      { set: corpus.name, pair: 'same user', ...distribution(nearest, thresholds) },
      { set: corpus.name, pair: 'stranger', ...distribution(stranger, thresholds) },
    ];
  });
  report(
    `nearest neighbour's cosine, percentiles and share at or above a threshold (set: ${embedder.waypointThreshold})`,
    rows,
  );
}

function highest(memory: Indexed, others: readonly Indexed[]): number {
  return others.reduce(
    (best, other) => (other === memory ? best : Math.max(best, cosine(memory.vector, other.vector))),
    -1,
  );
}

function distribution(values: number[], thresholds: readonly number[]): Record<string, number> {
  values.sort((a, b) => a - b);
  return Object.fromEntries([
    ...[10, 25, 50, 75, 90, 95].map((percent) => [
      `p${percent}`,
      values[Math.floor((percent / 100) * (values.length - 1))]!,
    ]),
    ...thresholds.map((threshold) => [
      `≥${threshold}`,
      values.filter((value) => value >= threshold).length / values.length,
    ]),
  ]) as Record<string, number>;
}

/** Prints fusion by Σ weight / (60 + rank) over the first hundred of each list; vectors weigh w, words 1 - w. */
function printFusion(corpora: readonly Corpus[]): void {
  const weights = [0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5];
  const rows = corpora.flatMap((corpus) => {
    const byText = remembered(textSearch(corpus));
    const byVector = remembered(exactSearch);
    return weights.map((weight) => {
      const search: Search = (query, memories) => {
        const scores = new Map<string, number>();
        const add = (keys: readonly string[], share: number) =>
          keys.forEach((key, index) => scores.set(key, (scores.get(key) ?? 0) + share / (60 + index + 1)));
        add(byText(query, memories), 1 - weight);
        if (weight > 0) add(byVector(query, memories), weight);
        return [...scores]
          .sort((a, b) => b[1] - a[1])
          .slice(0, DEPTH)
          .map(([key]) => key);
      };
      return { set: corpus.name, vectorWeight: weight, ...evaluate(corpus, search) };
    });
  });
  report(`fusion by vectorWeight (set: ${embedder.vectorWeight})`, rows);
}

function remembered(search: Search): Search {
  const found = new Map<readonly Indexed[], Map<string, readonly string[]>>();
  return (query, memories) => {
    const ofUser = found.get(memories) ?? new Map<string, readonly string[]>();
    found.set(memories, ofUser);
    const keys = ofUser.get(query) ?? search(query, memories);
    ofUser.set(query, keys);
    return keys;
  };
}

function printSpeed(corpora: readonly Corpus[]): void {
  const rows = corpora.map((corpus) => {
    const texts = [...corpus.users.values()].flat().map((memory) => memory.content);
    const started = performance.now();
    for (const text of texts) embedder.embedOne(text, 'document');
    const microseconds = ((performance.now() - started) / texts.length) * 1000;
    return {
      set: corpus.name,
      characters: texts.reduce((sum, text) => sum + text.length, 0) / texts.length,
      microseconds,
    };
  });
  report('microseconds a text', rows);
}

function report(title: string, rows: readonly object[]): void {
  const rounded = rows.map((row) =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [
        name,
        typeof value === 'number' ? Math.round(value * 1000) / 1000 : (value as string),
      ]),
    ),
  );
  console.log(`\n${title}`);
  console.table(rounded);
  for (const row of rounded) console.log(JSON.stringify({ figure: title, ...row }));
}

main();
