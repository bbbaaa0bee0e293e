/**
 * The embedder that needs no model, key or network: a text becomes a signed count of its words and letter triples, hashed
 * into a few hundred dimensions (Weinberger et al., "Feature Hashing for Large Scale Multitask Learning", ICML 2009). It
 * knows forms of a word and typing errors, not synonyms. Word pairs were measured and bring nothing. The same text gives the
 * same vector everywhere and for ever: any change of what follows needs a new model name.
 */
import { EngineError } from '../errors.ts';
import type { Embedder, EmbedOptions } from '../ports.ts';
import { informativeness, stem } from '../text/english-words.ts';
import { isCjk, normalise, STOP_WORDS, words } from '../text/words.ts';

export interface HashedEmbedderOptions {
  /** A multiple of 256, at most 4,096. */
  readonly dimensions?: number;
}

export interface HashedEmbedder extends Embedder {
  /** What `embed` does for each text, at once. L2-normalised. */
  embedOne(text: string, purpose: EmbedOptions['purpose']): Float32Array;
}

/**
 * As bench/eval-embedder.ts measures: at 0.5 half of the memories of long chats have a neighbour, a third of the abstracts on
 * one subject, and 0.4 % of the chats' memories would have one among a stranger's. In 32 pairs read, those above share
 * topic and words, those below 0.45 often only a name and a tone.
 */
const WAYPOINT_THRESHOLD = 0.5;

/**
 * The highest weight at which vectors take no more than .005 from any of the three sets of bench/eval-retrieval.ts that words, with
 * those of their context, reach alone: recall@1, 10 and 60 and nDCG@10, in rank fusion as in the composite score. At 0.15 rank fusion
 * takes .024 from recall@10 of the chats. At 0.05 most of what vectors give is kept: .027 of recall@10 on the Chinese notes, .005 of
 * nDCG@10 on the abstracts.
 */
const VECTOR_WEIGHT = 0.08;

/** @throws EngineError `invalid` for dimensions it cannot make */
export function createHashedEmbedder({ dimensions = 768 }: HashedEmbedderOptions = {}): HashedEmbedder {
  if (!Number.isInteger(dimensions) || dimensions % BLOCK !== 0 || dimensions < BLOCK || dimensions > 4096) {
    throw new EngineError(
      'invalid',
      `dimensions ${dimensions}: the offline embedder takes multiples of ${BLOCK} up to 4096`,
    );
  }
  const sketch = new Float64Array(dimensions);

  function embedOne(text: string, purpose: EmbedOptions['purpose']): Float32Array {
    sketch.fill(0);
    addWords(sketch, words(text));
    scaleEcho(sketch, purpose);
    // Of a text without words its symbols are the word, and so they are where all features cancelled out.
    if (squaredLength(sketch) === 0) {
      addSymbols(sketch, normalise(text).trim());
      scaleEcho(sketch, purpose);
    }
    mixBlocks(sketch);
    return normalised(sketch);
  }

  return {
    provider: 'synthetic',
    model: 'hashed-v1',
    dimensions,
    encoding: 'int5',
    waypointThreshold: WAYPOINT_THRESHOLD,
    vectorWeight: VECTOR_WEIGHT,
    cacheable: false,
    // Some 5 ms of work, so that a worker thread stays responsive between calls.
    maxBatchTexts: 64,
    maxBatchTokens: 32_768,
    embedOne,
    async embed(texts, { purpose, signal }) {
      signal?.throwIfAborted();
      return texts.map((text) => embedOne(text, purpose));
    },
  };
}

// A word counts its informativeness, all else relative to it. Measured by bench/eval-embedder.ts; few and round, to fit no set.
const TRIPLES_WEIGHT = 0.4;
const CJK_PAIR_WEIGHT = 1.5;
const CJK_CHARACTER_WEIGHT = 0.75;

/** Seeds that keep the kinds of features apart. */
const SEED = { word: 0x811c9dc5, triple: 0x1b873593, symbols: 0x2545f491 };

function addSymbols(sketch: Float64Array, symbols: string): void {
  addFeature(sketch, hashText(symbols, SEED.symbols), 1);
  addTriples(sketch, symbols, TRIPLES_WEIGHT);
}

/** Term frequency is sublinear, 1 + ln n. */
function addWords(sketch: Float64Array, found: readonly string[]): void {
  const terms = new Map<string, Term>();
  for (const word of found) {
    const cjk = isCjk(word);
    const key = cjk ? word : stem(word);
    let term = terms.get(key);
    if (term === undefined) terms.set(key, (term = makeTerm(word, key, cjk)));
    term.count += 1;
  }
  for (const term of terms.values()) {
    const weight = term.weight * (1 + Math.log(term.count));
    addFeature(sketch, term.hash, weight);
    if (term.spelled) addTriples(sketch, term.word, TRIPLES_WEIGHT * weight);
  }
}

interface Term {
  /** The form met first, which stands for the others in letter triples. */
  readonly word: string;
  readonly hash: number;
  readonly weight: number;
  /** Whether its letters count too: not for CJK, which has none, nor for stop words. */
  readonly spelled: boolean;
  count: number;
}

function makeTerm(word: string, key: string, cjk: boolean): Term {
  return {
    word,
    hash: hashText(key, SEED.word),
    weight: cjk ? cjkWeight(word) : informativeness(word),
    spelled: !cjk && !STOP_WORDS.has(word),
    count: 0,
  };
}

/** Of one character or two, as `words` gives them. */
function cjkWeight(token: string): number {
  const first = String.fromCodePoint(token.codePointAt(0)!);
  const second = token.slice(first.length);
  if (second === '') return CJK_CHARACTER_WEIGHT * (isCjkGrammar(first) ? 0.3 : 1);
  if (isCjkGrammar(first)) return CJK_PAIR_WEIGHT * (isCjkGrammar(second) ? 0.3 : 0.6);
  return CJK_PAIR_WEIGHT * (isCjkGrammar(second) ? 0.6 : 1);
}

/** Chinese particles, pronouns, question words and small numbers; and Hiragana, in which Japanese writes its grammar. */
function isCjkGrammar(character: string): boolean {
  return CJK_GRAMMAR.has(character) || (character >= '\u3040' && character <= '\u309f');
}

const CJK_GRAMMAR = new Set(
  '的了是在我你他她它们这那有和与就都也不很吗呢吧啊呀什么怎哪谁几个上下中到要会能说去来过把被给让对从为以之其所而或但如因可着得地一二三四五六七八九十',
);

/**
 * The triples of a word with both its ends marked share one weight, so that a long word does not outweigh a short one. Their
 * squares, not they themselves, add up to it: that is how much of the vector they make out.
 */
function addTriples(sketch: Float64Array, word: string, weight: number): void {
  if (word.length < 3) return;
  const each = weight / Math.sqrt(word.length);
  let before = WORD_END;
  let current = word.charCodeAt(0);
  for (let i = 1; i <= word.length; i += 1) {
    const next = i < word.length ? word.charCodeAt(i) : WORD_END;
    addFeature(sketch, finish(absorb(absorb(absorb(SEED.triple, before), current), next)), each);
    before = current;
    current = next;
  }
}

const WORD_END = 0;

/**
 * Adds a feature to every block: in one place of the text, and in one of its echo, each with a sign. Three blocks share a
 * hash, 8 bits each for the place and one for the sign; the echo takes those of the next block. Features that meet in one
 * block are apart in the others, and unrelated ones cancel out in the mean.
 */
function addFeature(sketch: Float64Array, hash: number, weight: number): void {
  let bits = hash;
  let turn = 0;
  for (let start = 0; start < sketch.length; start += BLOCK) {
    const next = turn === 2 ? 0 : turn + 1;
    const place = start + ECHO_PLACES + ((((bits >>> (8 * turn)) & 0xff) * (BLOCK - ECHO_PLACES)) >>> 8);
    const echo = start + ((bits >>> (8 * next)) & (ECHO_PLACES - 1));
    sketch[place]! += (bits >>> (24 + turn)) & 1 ? weight : -weight;
    sketch[echo]! += (bits >>> (24 + next)) & 1 ? weight : -weight;
    if (next === 0) bits = finish(bits + 1);
    turn = next;
  }
}

const BLOCK = 256;
/** Of each block; a power of two. More tell echoes better apart and leave less room for the text. */
const ECHO_PLACES = 16;

/**
 * Gives the echo the length that the text lacks, and none in a question. Without it "Wow, Anna!" would be all about Anna and
 * come before every sentence that says something of her: cosine divides by the length of a vector, and BM25 knows not to
 * believe that fully. To a question, which has no echo, a short memory is one with something else in it; two memories hear
 * each other's echoes and are as alike as they were. In chats this doubles nDCG@10, elsewhere it changes little.
 */
function scaleEcho(sketch: Float64Array, purpose: EmbedOptions['purpose']): void {
  let text = 0;
  let echo = 0;
  for (let i = 0; i < sketch.length; i += 1) {
    if (i % BLOCK < ECHO_PLACES) echo += sketch[i]! ** 2;
    else text += sketch[i]! ** 2;
  }
  const missing = LEAST_LENGTH ** 2 * (sketch.length / BLOCK) - text;
  const scale = purpose === 'document' && missing > 0 && echo > 0 ? Math.sqrt(missing / echo) : 0;
  for (let start = 0; start < sketch.length; start += BLOCK) {
    for (let i = start; i < start + ECHO_PLACES; i += 1) sketch[i]! *= scale;
  }
}

/** In words that count fully. */
const LEAST_LENGTH = 4;

/**
 * A Walsh-Hadamard transform of each block: a rotation, so cosines stay, after which every dimension holds a bit of every
 * feature. An index that keeps one bit a dimension needs that; in the sketch most dimensions of a short text are zero.
 */
function mixBlocks(sketch: Float64Array): void {
  for (let half = 1; half < BLOCK; half *= 2) {
    for (let start = 0; start < sketch.length; start += 2 * half) {
      for (let i = start; i < start + half; i += 1) {
        const a = sketch[i]!;
        const b = sketch[i + half]!;
        sketch[i] = a + b;
        sketch[i + half] = a - b;
      }
    }
  }
}

function normalised(sketch: Float64Array): Float32Array {
  const scale = 1 / Math.sqrt(squaredLength(sketch));
  const vector = new Float32Array(sketch.length);
  for (let i = 0; i < vector.length; i += 1) vector[i] = sketch[i]! * scale;
  return vector;
}

function squaredLength(sketch: Float64Array): number {
  let squared = 0;
  for (let i = 0; i < sketch.length; i += 1) squared += sketch[i]! * sketch[i]!;
  return squared;
}

/** FNV-1a over UTF-16 code units, then the finisher of MurmurHash3, which spreads each bit over all others. */
function hashText(text: string, seed: number): number {
  let hash = seed;
  for (let i = 0; i < text.length; i += 1) hash = absorb(hash, text.charCodeAt(i));
  return finish(hash);
}

function absorb(hash: number, unit: number): number {
  return Math.imul(hash ^ unit, 0x01000193);
}

function finish(hash: number): number {
  let mixed = hash ^ (hash >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
