/**
 * The offline embedder, which needs no model, key or network. A text becomes a signed count of its words and letter
 * triples, hashed into 256 to 4,096 dimensions, 768 by default (Weinberger et al., "Feature Hashing for Large Scale
 * Multitask Learning", ICML 2009). It matches inflected forms and typing errors, but not synonyms. Word pairs as
 * features were measured and gain nothing. Equal text with equal purpose gives an equal vector on every machine and for
 * ever: any change of the computation in this file needs a new model name. The purpose (memory or question) matters for
 * short texts only: the vector of a short memory has an additional part, the echo, that a question's vector does not
 * have (`scaleEcho`).
 */

import { EngineError } from '../errors.ts';
import type { Embedder, EmbedOptions } from '../ports.ts';
import { informativeness, stem } from '../text/english-words.ts';
import { isCjk, normalise, storedWords } from '../text/words.ts';
import { STOP_WORDS } from '../text/stop-words.ts';

export interface HashedEmbedderOptions {
  /** Number of dimensions of a vector: a multiple of 256, at most 4,096; 768 by default. */
  readonly dimensions?: number;
}

export interface HashedEmbedder extends Embedder {
  /** Embeds one text like `embed`, but synchronously. Returns a new L2-normalised vector, even for a blank text. */
  embedOne(text: string, purpose: EmbedOptions['purpose']): Float32Array;
}

/**
 * Least cosine at which two memories are linked by a waypoint (the automatic link to the nearest memory), measured by
 * bench/eval-embedder.ts. At 0.5, half of the memories of long chats get a waypoint, and a third of the abstracts on
 * one subject; only 0.4 % of the chats' memories would get one to a memory of another user. Of 32 pairs that were read,
 * the pairs above 0.5 share topic and words, the pairs below 0.45 often only a name and a tone.
 */
const WAYPOINT_THRESHOLD = 0.5;

/**
 * Weight of vectors against words in rank fusion, 0..1, measured by bench/eval-embedder.ts. It is the highest weight at
 * which vectors lower no figure of the three sets of bench/datasets.ts by more than 0.005 below what words alone reach,
 * including the words of neighbouring memories. The figures are recall@1, 10 and 60 and nDCG@10, in rank fusion and in
 * the composite score. At 0.15, rank fusion lowers recall@10 of the chats by 0.024. At 0.05, most of what vectors gain
 * is kept: 0.027 of recall@10 on the Chinese notes, 0.005 of nDCG@10 on the abstracts.
 */
const VECTOR_WEIGHT = 0.08;

/**
 * Creates the offline embedder.
 * @throws EngineError `invalid` for dimensions that are not a multiple of 256, or exceed 4,096
 */
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
    addWords(sketch, storedWords(text));
    scaleEcho(sketch, purpose);
    // A text without words is embedded by its symbols, and so is a text whose features all cancelled out.
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
    isAnisotropic: false,
    vectorWeight: VECTOR_WEIGHT,
    cacheable: false,
    // A call takes about 5 ms, so that a worker thread stays responsive between calls.
    maxBatchTexts: 64,
    maxBatchTokens: 32_768,
    embedOne,
    async embed(texts, { purpose, signal }) {
      signal?.throwIfAborted();
      return texts.map((text) => embedOne(text, purpose));
    },
  };
}

// Weights of features. The weight of a word is its informativeness, and all other weights are relative to that. They
// were measured by bench/eval-embedder.ts, and are few and round, so that they are not fitted to one set.

/** Weight of all letter triples of a word together, relative to the weight of the word. */
const TRIPLES_WEIGHT = 0.4;
/**
 * Weight of a pair of adjacent CJK characters, which count as a word; other words have their informativeness (0.1..1).
 */
const CJK_PAIR_WEIGHT = 1.5;
/** Weight of a single CJK character, on the scale of `CJK_PAIR_WEIGHT`. */
const CJK_CHARACTER_WEIGHT = 0.75;

/** Seeds of the hash, one for each kind of feature, so that equal texts of different kinds have different hashes. */
const SEED = { word: 0x811c9dc5, triple: 0x1b873593, symbols: 0x2545f491 };

function addSymbols(sketch: Float64Array, symbols: string): void {
  addFeature(sketch, hashText(symbols, SEED.symbols), 1);
  addTriples(sketch, symbols, TRIPLES_WEIGHT);
}

/**
 * Adds the words of a text to its sketch (the vector before scaling). A term that occurs n times counts (1 + ln n)
 * times its weight.
 */
function addWords(sketch: Float64Array, textWords: readonly string[]): void {
  const terms = new Map<string, Term>();
  for (const word of textWords) {
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

/** A term: all words of a text that have one stem. */
interface Term {
  /** The first of the term's words in the text; only the letter triples of this word are added. */
  readonly word: string;
  readonly hash: number;
  /** Weight of the term if it occurs once. */
  readonly weight: number;
  /** Whether the term's letter triples are added: false for CJK, which has no letters, and for stop words. */
  readonly spelled: boolean;
  /** Number of times that the term occurs in the text. */
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

/** Returns the weight of a CJK token of one or two characters; it is lower if they are grammatical characters. */
function cjkWeight(token: string): number {
  const first = String.fromCodePoint(token.codePointAt(0)!);
  const second = token.slice(first.length);
  if (second === '') return CJK_CHARACTER_WEIGHT * (isCjkGrammar(first) ? 0.3 : 1);
  if (isCjkGrammar(first)) return CJK_PAIR_WEIGHT * (isCjkGrammar(second) ? 0.3 : 0.6);
  return CJK_PAIR_WEIGHT * (isCjkGrammar(second) ? 0.6 : 1);
}

/**
 * Tells whether a character is a Chinese particle, pronoun, question word or small number, or Hiragana, with which
 * Japanese writes its grammar.
 */
function isCjkGrammar(character: string): boolean {
  return CJK_GRAMMAR.has(character) || (character >= '\u3040' && character <= '\u309f');
}

const CJK_GRAMMAR = new Set(
  '的了是在我你他她它们这那有和与就都也不很吗呢吧啊呀什么怎哪谁几个上下中到要会能说去来过把被给让对从为以之其所而或但如因可着得地一二三四五六七八九十',
);

/**
 * Adds the letter triples of a word, with marks at both its ends; a word of fewer than three UTF-16 code units adds
 * none. The squares of the triples' weights add up to the square of `weight`, so that a long word does not outweigh a
 * short one.
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
 * Adds a feature to every block of 256 dimensions: to one dimension of the text's part and to one of its echo
 * (`scaleEcho`), each with a sign. One hash serves three blocks: each takes 8 bits for the dimension and one for the
 * sign, and its echo takes the bits of the next block. Features that collide in one block do not collide in the others,
 * so the errors cancel out in the mean.
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

/** Number of dimensions in a block: as many as 8 bits of a hash can address. */
const BLOCK = 256;
/**
 * Number of dimensions of each block that are used for the echo (`scaleEcho`), a power of two. With more of them,
 * echoes collide less, but fewer dimensions are left for the text.
 */
const ECHO_PLACES = 16;

/**
 * Scales the echo, a second copy of a text's features in separate dimensions, so that the vector of a short memory is
 * as long as the vector of a text of four words of full weight (`MIN_LENGTH`). The echo of a question or of a longer
 * text becomes zero. Without an echo, "Wow, Anna!" would be entirely about Anna and rank above every sentence that says
 * something about her, since cosine divides by the length of a vector, while BM25 normalises length only in part. As a
 * question has no echo, the echo of a short memory lowers their cosine. Two short memories both have echoes, so their
 * cosine stays about the same. In chats this doubles nDCG@10, elsewhere it changes little.
 */
function scaleEcho(sketch: Float64Array, purpose: EmbedOptions['purpose']): void {
  let text = 0;
  let echo = 0;
  for (let i = 0; i < sketch.length; i += 1) {
    if (i % BLOCK < ECHO_PLACES) echo += sketch[i]! ** 2;
    else text += sketch[i]! ** 2;
  }
  const missing = MIN_LENGTH ** 2 * (sketch.length / BLOCK) - text;
  const scale = purpose === 'document' && missing > 0 && echo > 0 ? Math.sqrt(missing / echo) : 0;
  for (let start = 0; start < sketch.length; start += BLOCK) {
    for (let i = start; i < start + ECHO_PLACES; i += 1) sketch[i]! *= scale;
  }
}

/** Length of a vector from which it gets no echo (`scaleEcho`), in words of full weight. */
const MIN_LENGTH = 4;

/**
 * Applies a Walsh-Hadamard transform to each block. It is a rotation, so cosines stay the same, and afterwards every
 * dimension depends on every feature. An index that stores one bit of each dimension needs that, because most
 * dimensions of a short text's sketch are zero.
 */
function mixBlocks(sketch: Float64Array): void {
  // Two steps of the transform at once, so that each number is read and written half as often.
  for (let step = 1; step < BLOCK; step *= 4) {
    for (let start = 0; start < sketch.length; start += 4 * step) {
      for (let i = start; i < start + step; i += 1) {
        const a = sketch[i]! + sketch[i + step]!;
        const b = sketch[i]! - sketch[i + step]!;
        const c = sketch[i + 2 * step]! + sketch[i + 3 * step]!;
        const d = sketch[i + 2 * step]! - sketch[i + 3 * step]!;
        sketch[i] = a + c;
        sketch[i + step] = b + d;
        sketch[i + 2 * step] = a - c;
        sketch[i + 3 * step] = b - d;
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

/**
 * Hashes a text by FNV-1a over its UTF-16 code units, then by the finaliser of MurmurHash3, with which each bit affects
 * all others. Returns an unsigned 32-bit number.
 */
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
