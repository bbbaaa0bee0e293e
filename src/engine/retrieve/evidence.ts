import type { Store } from '../store/open-store.ts';
import { labelsOf, matchingText, OWN_COLUMNS, type OwnText, type TextReader } from '../store/search.ts';
import { resolveName } from '../entities/extract.ts';
import { informativeness, otherSpelling } from '../text/english-words.ts';
import { identifiersOf, mayHoldIdentifier, queryTerms } from '../text/index-text.ts';
import { namePartsOf } from '../text/name-parts.ts';
import { createStemFinder, NOWHERE, type StemFinder, stemOf } from '../text/stem-finder.ts';
import { isAscii, isCjk, normalise, STOP_WORDS, words } from '../text/words.ts';
import type { Candidate } from './candidate.ts';
import { comparability } from './lenience.ts';
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
  /** The most of the query's words that one memory holds, 0..1 by weight; 1 only if it holds all. */
  readonly held: number;
  /** The same of each memory that was looked at, by number. */
  readonly heldBy: ReadonlyMap<number, number>;
  /** Memories that hold none of them, lie no nearer than chance and were reached over nothing that anyone stated. */
  readonly strange: ReadonlySet<number>;
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
  {
    query,
    cosineBase,
    scope,
    texts: readTexts,
  }: { readonly query: string; readonly cosineBase: number; readonly scope: number; readonly texts: TextReader },
): Evidence {
  const witnesses = candidates.slice(0, WITNESSES);
  const heldBy = new Map<number, number>();
  const strange = new Set<number>();
  if (witnesses.length === 0) return { strength: 0, wordsStrength: 0, voiced: 1, held: 0, heldBy, strange };
  const texts = readTexts(
    witnesses.map(({ row, foundAs }) => foundAs ?? row.seq),
    CHARACTERS_MOST,
  );
  const meter = createEvidenceMeter(store, query, cosineBase, scope);
  // Best first, which `texts` is not.
  const long = witnesses
    .map(({ row, foundAs }) => foundAs ?? row.seq)
    .filter((seq) => (texts.get(seq)?.content.length ?? 0) >= CHARACTERS_MOST);
  const behind = meter.findBeyond(long.slice(0, LONG_MOST));
  let [strength, wordsStrength, anyone, named, read] = [0, 0, 0, 0, 0];
  for (const { row, foundAs, fit, rerank, arrival } of witnesses) {
    const text = texts.get(foundAs ?? row.seq);
    if (text === undefined || read > ALL_CHARACTERS_MOST) continue;
    read += text.content.length;
    const speaker = rerank?.['speaker'] ?? UNKNOWN_SPEAKER;
    const beyond = behind.get(foundAs ?? row.seq);
    const own = meter.measure(text, fit.cosine, { saidByAnother: speaker < UNKNOWN_SPEAKER, beyond });
    if (fit.cosine === null) wordsStrength = Math.max(wordsStrength, own.strength);
    else strength = Math.max(strength, own.strength);
    heldBy.set(row.seq, own.held);
    const isReached = arrival !== null && arrival.via !== 'waypoint' && arrival.activation >= REACHED_LEAST;
    if (own.held === 0 && own.near < NEAR_BY_CHANCE && !isReached) strange.add(row.seq);
    anyone = Math.max(anyone, own.topic);
    if (speaker >= UNKNOWN_SPEAKER) named = Math.max(named, own.topic);
  }
  return {
    strength,
    wordsStrength,
    voiced: anyone === 0 ? 1 : named / anyone,
    held: Math.max(0, ...heldBy.values()),
    heldBy,
    strange,
  };
}

/** Beyond the base, texts of one language that share nothing else come so near. */
const NEAR_BY_CHANCE = 0.25;
/** Less comes over a link from what is itself hardly a hit. */
const REACHED_LEAST = 0.2;

/** What the reranker's feature `speaker` holds where nothing can be told; less means another than the one named. */
const UNKNOWN_SPEAKER = 0.5;

export interface Measured {
  readonly strength: number;
  /** The same without the names in the query: how well it fits whoever said it. */
  readonly topic: number;
  /** The share by weight of the query's words, without those that carry grammar, that it holds: 1 only for all, twice the share for CJK. */
  readonly held: number;
  /** How much nearer its vector is than those of unrelated texts. */
  readonly near: number;
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

/** @param scope how many memories are asked; while they are few, no word counts as common, whatever others have stored beside them */
export function createEvidenceMeter(
  store: Store,
  query: string,
  cosineBase: number,
  scope: number = Number.POSITIVE_INFINITY,
): EvidenceMeter {
  const { words: single, phrases, identifiers } = queryTerms(query);
  const {
    words: spelled,
    placeOf,
    eachIn,
  } = createStemFinder([...single, ...phrases.flat().filter((word) => !STOP_WORDS.has(word)), ...identifiers]);
  const others = spelled.slice(0, OTHER_NAMES_MOST).map(otherNameOf);
  const aliases = createAliasFinder(others);
  const terms = termsOf(store, query, spelled, 1 - comparability(scope));
  const worth = worthOf(query, spelled);
  const totalWorth = worth.reduce((sum, weight) => sum + weight, 0);
  const telling = worth.filter((weight) => weight > 0).length;
  const total = terms.reduce((sum, { weight }) => sum + weight, 0);
  const scale =
    (total <= SHORT_QUERY ? total : Math.sqrt(SHORT_QUERY * total)) +
    Math.min(SPARE_WEIGHT.most, Math.max(SPARE_WEIGHT.least, total));
  const gain = 1 + (CJK_GAIN * spelled.filter(isCjk).length) / Math.max(1, spelled.length);
  const nearness = (cosine: number | null) =>
    cosine === null ? 0 : Math.max(0, (cosine - cosineBase) / (1 - cosineBase));
  return {
    measure(own, cosine, { saidByAnother = false, beyond } = {}) {
      const labels = labelsOf(own);
      const text = labels === '' ? own.content : `${own.content} ${labels}`;
      const found = new Set(beyond);
      const note = (word: string) => {
        const place = placeOf(word);
        if (place !== NOWHERE) found.add(place);
        const other = aliases?.placeOf(word) ?? NOWHERE;
        if (other !== NOWHERE) found.add(other);
      };
      eachIn(text, (place) => found.add(place));
      aliases?.eachIn(text, (place) => found.add(place));
      namePartsOf(text).forEach(note);
      if (mayHoldIdentifier(text, identifiers)) identifiersOf(text).split(' ').forEach(note);
      let [held, named, rarest, heldWorth, heldTelling] = [0, 0, 0, 0, 0];
      for (const place of found) {
        const { weight, isName, rarity } = terms[place]!;
        if (isName) named += weight;
        // In the words of another, a name says whom they are spoken to.
        if (isName && saidByAnother) continue;
        held += weight;
        heldWorth += worth[place]!;
        if (worth[place]! > 0) heldTelling += 1;
        rarest = Math.max(rarest, rarity);
      }
      const near = nearness(cosine);
      const topic = saidByAnother ? held : held - named;
      return {
        strength: gain * (shareOf(held) * Math.min(1, rarest / COMMON) + near),
        topic: shareOf(topic) + near,
        held:
          heldTelling > 0 && heldTelling === telling ? 1 : Math.min(NEARLY_ALL, (gain * heldWorth) / (totalWorth || 1)),
        near,
      };
    },
    findBeyond(seqs) {
      const held = new Map(seqs.map((seq) => [seq, new Set<number>()]));
      if (seqs.length === 0) return held;
      for (const [place, word] of spelled.slice(0, LONG_TERMS_MOST).entries()) {
        for (const seq of matchingText(store, word, seqs, OWN_COLUMNS)) held.get(seq)!.add(place);
      }
      return held;
    },
  };

  function shareOf(weight: number): number {
    return Math.min(1, weight / scale);
  }
}

const NEARLY_ALL = 0.99;
/** So many of the query's words are looked up. */
const OTHER_NAMES_MOST = 12;

/** The other spelling of a word, or the name that a well-known thing is counted as: `colour`, `postgres`. */
function otherNameOf(word: string): string | undefined {
  let known = otherNames.get(word);
  if (known === undefined) {
    if (otherNames.size >= OTHER_NAMES_KEPT) otherNames.clear();
    otherNames.set(word, (known = { name: findOtherName(word) }));
  }
  return known.name;
}

/** Looking one up takes 4 µs, and people ask with the same words. */
const otherNames = new Map<string, { readonly name: string | undefined }>();
const OTHER_NAMES_KEPT = 5_000;

function findOtherName(word: string): string | undefined {
  const other = otherSpelling(word);
  if (other !== undefined || !isAscii(word)) return other;
  const [name, ...rest] = words(resolveName(word));
  return rest.length === 0 && name !== word ? name : undefined;
}

/** Says of the words of a text which of the query's words they are by another name; undefined where none has one. */
function createAliasFinder(others: readonly (string | undefined)[]): Omit<StemFinder, 'words'> | undefined {
  const places = new Map<string, number>();
  for (const [place, other] of others.entries()) if (other !== undefined) places.set(stemOf(other), place);
  if (places.size === 0) return undefined;
  const { words: names, placeOf, eachIn } = createStemFinder(others.filter((other) => other !== undefined));
  const placeOfName = names.map((name) => places.get(stemOf(name))!);
  return {
    placeOf(word) {
      const name = placeOf(word);
      return name === NOWHERE ? NOWHERE : placeOfName[name]!;
    },
    eachIn: (text, visit) => eachIn(text, (name, position) => visit(placeOfName[name]!, position)),
  };
}

/** What each of the query's words tells, 0 for those that only ask; where all do, a single one with a capital is meant: `May`. */
function worthOf(query: string, spelled: readonly string[]): number[] {
  const asked = spelled.some(isCjk) ? new Set(words(query.replace(CJK_GRAMMAR, ' '))) : undefined;
  const worth = spelled.map((word) =>
    STOP_WORDS.has(word) || (isCjk(word) && !asked!.has(word)) ? 0 : informativeness(word),
  );
  const isName = spelled.length === 1 && /^\W*\p{Lu}\p{Ll}+\W*$/u.test(query);
  return isName && worth[0] === 0 ? [1] : worth;
}

/** Question words and those that stand for persons in Chinese, which have no spaces around them. */
const CJK_GRAMMAR =
  /什么时候|为什么|什么|怎么样|怎么|哪里|哪儿|哪个|哪些|哪天|哪一天|多少|几点|几号|我们|你们|他们|她们|[我你他她]的|[我你他她谁吗呢吧是在]/gu;

function termsOf(store: Store, query: string, spelled: readonly string[], rarityLeast: number): Term[] {
  const names = namesIn(query);
  const memories = memoryCount(store);
  const frequencies = termFrequencies(store, spelled);
  return spelled.map((word, place) => {
    const frequency = frequencies[place]!;
    const isName = names.has(word);
    const rarity =
      frequency <= COMMON_LEAST ? 1 : Math.max(0, Math.log((memories + 1) / frequency) / Math.log(memories + 1));
    return {
      weight: informativeness(word) * (isName ? NAME_WEIGHT : 1),
      isName,
      rarity: Math.max(rarity, rarityLeast),
    };
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
