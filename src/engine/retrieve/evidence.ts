import type { Store } from '../store/open-store.ts';
import { matchingText, type OwnText, readOwnTexts } from '../store/search.ts';
import { informativeness } from '../text/english-words.ts';
import { ftsString, identifiersOf, queryTerms } from '../text/index-text.ts';
import { createStemFinder, NOWHERE } from '../text/stem-finder.ts';
import { isCjk, normalise, STOP_WORDS, words } from '../text/words.ts';
import { TEXT_COLUMNS } from '../types.ts';
import type { Candidate } from './candidate.ts';
import { memoryCount, termFrequencies } from './term-frequencies.ts';

/** What speaks for it that the query is about these memories at all. */
export interface Evidence {
  /** How much of the query the best memory itself holds, plus how near its vector is: 0 for nothing, some 1.7 for all. */
  readonly strength: number;
  /** The same of memories that were not compared by vectors, as they have none yet or the query has none: 0..1, to 2 for CJK. */
  readonly wordsStrength: number;
  /**
   * Where the query names one who speaks in these memories: how well the best that he says fits, as a share of the best that anyone
   * says. 1 where it names none.
   */
  readonly voiced: number;
}

/** Candidates that are looked at, characters read of each, and characters after which no further one is looked at. */
const WITNESSES = 20;
const CHARACTERS_MOST = 4_000;
const ALL_CHARACTERS_MOST = 12_000;
/** Of so many texts that are longer than what is read, the index is asked for so many of the query's words. */
const LONG_MOST = 3;
const LONG_TERMS_MOST = 12;

/**
 * BM25 against the most it could be says too little about this: it takes words by their frequency in the file, so that a name that
 * every memory of a chat carries counts for nothing when it is missing, and it takes the neighbours' words for a memory's own.
 * @param candidates best first
 * @param cosineBase the cosine that unrelated texts have anyway, -1..1
 */
export function evidenceOf(
  store: Store,
  candidates: readonly Candidate[],
  { query, cosineBase }: { readonly query: string; readonly cosineBase: number },
): Evidence {
  const witnesses = candidates.slice(0, WITNESSES);
  if (witnesses.length === 0) return { strength: 0, wordsStrength: 0, voiced: 1 };
  const texts = readOwnTexts(
    store,
    witnesses.map(({ row, foundAs }) => foundAs ?? row.seq),
    CHARACTERS_MOST,
  );
  const meter = createEvidenceMeter(store, query, cosineBase);
  const long = [...texts].filter(([, { content }]) => content.length >= CHARACTERS_MOST).map(([seq]) => seq);
  const behind = meter.findBeyond(long.slice(0, LONG_MOST));
  let [strength, wordsStrength, anyone, named, read] = [0, 0, 0, 0, 0];
  for (const { row, foundAs, fit, rerank } of witnesses) {
    const text = texts.get(foundAs ?? row.seq);
    if (text === undefined || read > ALL_CHARACTERS_MOST) continue;
    read += text.content.length;
    const speaker = rerank?.['speaker'] ?? UNKNOWN_SPEAKER;
    const beyond = behind.get(foundAs ?? row.seq);
    const own = meter.measure(text, fit.cosine, { saidByAnother: speaker < UNKNOWN_SPEAKER, beyond });
    if (fit.cosine === null) wordsStrength = Math.max(wordsStrength, own.strength);
    else strength = Math.max(strength, own.strength);
    anyone = Math.max(anyone, own.topic);
    if (speaker >= UNKNOWN_SPEAKER) named = Math.max(named, own.topic);
  }
  return { strength, wordsStrength, voiced: anyone === 0 ? 1 : named / anyone };
}

/** What the reranker's feature `speaker` holds where nothing can be told; less means another than the one named. */
const UNKNOWN_SPEAKER = 0.5;

export interface Measured {
  readonly strength: number;
  /** The same without the names in the query: how well it fits whoever said it. */
  readonly topic: number;
}

export interface MeasureOptions {
  readonly saidByAnother?: boolean;
  /** Words of the query that are known to stand in it, by their place. */
  readonly beyond?: ReadonlySet<number> | undefined;
}

/** A query made ready to be looked for in texts. */
export interface EvidenceMeter {
  measure(text: OwnText, cosine: number | null, options?: MeasureOptions): Measured;
  /** Which of the query's words these memories hold anywhere, by the index: for texts too long to be read. */
  findBeyond(seqs: readonly number[]): ReadonlyMap<number, ReadonlySet<number>>;
}

/** A name counts so often: who is asked about is what a question turns on. */
const NAME_WEIGHT = 2;
/** Of longer queries a memory holds a smaller share, so that beyond this weight the share is taken of its square root. */
const SHORT_QUERY = 4;
/** So much more weight than a query has would make a full match full evidence: one word alone may match by chance, a common one will. */
const SPARE_WEIGHT = { least: 0.6, most: 0.75 };
/** Where even the rarest word found has less rarity, on the scale of `Term.rarity`, chance explains the match. */
const COMMON = 0.5;
/** Up to here no word is common, however small the file. */
const COMMON_LEAST = 20;
/** Every second pair of characters crosses a border between words, so that the best match holds half as many. */
const CJK_GAIN = 1;

interface Term {
  readonly weight: number;
  readonly isName: boolean;
  /** log(memories / frequency) / log(memories), 0..1: 0.5 for a word in 100 of 10,000 memories. */
  readonly rarity: number;
}

export function createEvidenceMeter(store: Store, query: string, cosineBase: number): EvidenceMeter {
  const { words: single, phrases, identifiers } = queryTerms(query);
  const { words: spelled, placeOf } = createStemFinder([
    ...single,
    ...phrases.flat().filter((word) => !STOP_WORDS.has(word)),
    ...identifiers,
  ]);
  const terms = termsOf(store, query, spelled);
  const total = terms.reduce((sum, { weight }) => sum + weight, 0);
  const scale =
    (total <= SHORT_QUERY ? total : Math.sqrt(SHORT_QUERY * total)) +
    Math.min(SPARE_WEIGHT.most, Math.max(SPARE_WEIGHT.least, total));
  const gain = 1 + (CJK_GAIN * spelled.filter(isCjk).length) / Math.max(1, spelled.length);
  const nearness = (cosine: number | null) =>
    cosine === null ? 0 : Math.max(0, (cosine - cosineBase) / (1 - cosineBase));
  return {
    measure({ content, labels }, cosine, { saidByAnother = false, beyond } = {}) {
      const text = labels === '' ? content : `${content} ${labels}`;
      const found = new Set(beyond);
      const note = (word: string) => {
        const place = placeOf(word);
        if (place !== NOWHERE) found.add(place);
      };
      words(text).forEach(note);
      if (identifiers.length > 0) identifiersOf(text).split(' ').forEach(note);
      let [held, named, rarest] = [0, 0, 0];
      for (const place of found) {
        const { weight, isName, rarity } = terms[place]!;
        if (isName) named += weight;
        // In the words of another, a name says whom they are spoken to.
        if (isName && saidByAnother) continue;
        held += weight;
        rarest = Math.max(rarest, rarity);
      }
      const near = nearness(cosine);
      const topic = saidByAnother ? held : held - named;
      return {
        strength: gain * (shareOf(held) * Math.min(1, rarest / COMMON) + near),
        topic: shareOf(topic) + near,
      };
    },
    findBeyond(seqs) {
      const held = new Map(seqs.map((seq) => [seq, new Set<number>()]));
      if (seqs.length === 0) return held;
      for (const [place, word] of spelled.slice(0, LONG_TERMS_MOST).entries()) {
        for (const seq of matchingText(store, `${OWN_COLUMNS} : ${ftsString(word)}`, seqs)) held.get(seq)!.add(place);
      }
      return held;
    },
  };

  function shareOf(weight: number): number {
    return Math.min(1, weight / scale);
  }
}

const OWN_COLUMNS = `{${TEXT_COLUMNS.filter((column) => column !== 'context').join(' ')}}`;

function termsOf(store: Store, query: string, spelled: readonly string[]): Term[] {
  const names = namesIn(query);
  const memories = memoryCount(store);
  const frequencies = termFrequencies(
    store,
    spelled.map((text) => ({ text, match: ftsString(text) })),
  );
  return spelled.map((word, place) => {
    const frequency = frequencies[place]!;
    const isName = names.has(word);
    const rarity =
      frequency <= COMMON_LEAST ? 1 : Math.max(0, Math.log((memories + 1) / frequency) / Math.log(memories + 1));
    return { weight: informativeness(word) * (isName ? NAME_WEIGHT : 1), isName, rarity };
  });
}

/** Words written with a capital where no sentence begins. */
function namesIn(query: string): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { 0: word, index } of query.matchAll(CAPITALISED)) {
    const before = query.slice(Math.max(0, index - 3), index).trimEnd();
    if (before !== '' && !BEFORE_SENTENCE.includes(before.at(-1)!)) names.add(normalise(word));
  }
  return names;
}

const CAPITALISED = /(?<![\p{L}\p{N}])\p{Lu}[\p{L}\p{N}]*/gu;
const BEFORE_SENTENCE = '.!?:"“„«';
