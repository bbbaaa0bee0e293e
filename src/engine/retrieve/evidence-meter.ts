import { resolveName } from '../entities/extract.ts';
import type { Store } from '../store/open-store.ts';
import { labelsOf, OWN_COLUMNS, type OwnText } from '../store/search.ts';
import { matchingText } from '../store/word-index/matching-rows.ts';
import { askingSentences } from '../text/asking-sentences.ts';
import { informativeness, otherSpelling } from '../text/english-words.ts';
import { identifiersOf, isSpaceless, mayHoldIdentifier, queryTerms } from '../text/index-text.ts';
import { namePartsOf } from '../text/name-parts.ts';
import { createStemFinder, NOWHERE, type StemFinder, stemOf } from '../text/stem-finder.ts';
import { isAscii, isCjk, normalise, STOP_WORDS, words } from '../text/words.ts';

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
  /** How a text answers to the whole query and, after it, to each of its sentences that asks. */
  measure(text: OwnText, cosine: number | null, options?: MeasureOptions): readonly Measured[];
  /** Which of the query's words these memories hold anywhere, by the index: for texts too long to be read. */
  findBeyond(seqs: readonly number[]): ReadonlyMap<number, ReadonlySet<number>>;
}

/** A name counts so often: who is asked about is what a question turns on. */
const NAME_WEIGHT = 2;
/** Of longer queries a memory holds a smaller share, so that beyond this weight the share is taken of its square root. */
const SHORT_QUERY = 4;
/** The share of a word's weight that another form of it counts for. */
const FORM_SHARE = 0.7;
/** What a cosine adds beside the share of words: texts of one language are alike in much that has no meaning. */
const NEAR_WEIGHT = 0.5;
/** The first words of a query that the index is asked for where a text is too long to be read. */
const LONG_TERMS_MOST = 12;
/** Every second pair of characters crosses a border between words, so that the best match holds half as many. */
const CJK_GAIN = 1;

interface Term {
  readonly weight: number;
  readonly isName: boolean;
}

/** The whole query, or one of its sentences: what its words weigh together. */
interface View {
  /** Which of the query's words are its own, by their place; undefined for all. */
  readonly places: ReadonlySet<number> | undefined;
  /** The weight that full evidence takes. */
  readonly scale: number;
  readonly gain: number;
  readonly totalWorth: number;
  readonly telling: number;
}

/**
 * Makes a query ready to be looked for in texts. How rare its words are in the file plays no part: what other users store must not
 * change an answer, and a name that stands in half of a chat says as much about who is meant as a rare one.
 * @param cosineBase the cosine that unrelated texts have anyway, 0 ≤ … < 1
 */
export function createEvidenceMeter(store: Store, query: string, cosineBase: number): EvidenceMeter {
  const { words: single, phrases, identifiers } = queryTerms(query);
  const {
    words: spelled,
    placeOf,
    eachIn,
  } = createStemFinder([...single, ...phrases.flat().filter((word) => !STOP_WORDS.has(word)), ...identifiers]);
  const others = spelled.slice(0, OTHER_NAMES_MOST).map(otherNameOf);
  const aliases = createAliasFinder(others);
  const terms = termsOf(query, spelled);
  const worth = worthOf(query, spelled);
  const asking = askingSentences(query).sentences;
  const views = [viewOf(undefined), ...asking.map((sentence) => viewOf(placesOf(sentence, placeOf)))];
  const nearness = (cosine: number | null) =>
    cosine === null ? 0 : Math.max(0, (cosine - cosineBase) / (1 - cosineBase));
  return {
    measure(own, cosine, { saidByAnother = false, beyond } = {}) {
      const found = findIn(own, beyond);
      // How near a sentence by itself lies is not known: only the whole query has a vector.
      return views.map((view, place) => measureView(view, found, place === 0 ? nearness(cosine) : 0, saidByAnother));
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

  function viewOf(places: ReadonlySet<number> | undefined): View {
    const own = [...spelled.keys()].filter((place) => places?.has(place) ?? true);
    const total = sum(own.map((place) => terms[place]!.weight));
    const withoutSpaces = own.filter((place) => isCjk(spelled[place]!) || isSpaceless(spelled[place]!));
    return {
      places,
      scale: total <= SHORT_QUERY ? total : Math.sqrt(SHORT_QUERY * total),
      gain: 1 + (CJK_GAIN * withoutSpaces.length) / Math.max(1, own.length),
      totalWorth: sum(own.map((place) => worth[place]!)),
      telling: own.filter((place) => worth[place]! > 0).length,
    };
  }

  /** The places of the query's words that stand in a text, and of those that stand there in another form only. */
  function findIn(own: OwnText, beyond: ReadonlySet<number> | undefined): Found {
    const labels = labelsOf(own);
    const text = labels === '' ? own.content : `${own.content} ${labels}`;
    const places = new Set(beyond);
    const forms = new Set<number>();
    const note = (word: string) => {
      const place = placeOf(word);
      if (place !== NOWHERE) places.add(place);
      const other = aliases?.placeOf(word) ?? NOWHERE;
      if (other !== NOWHERE) places.add(other);
    };
    eachIn(
      text,
      (place) => places.add(place),
      (place) => forms.add(place),
    );
    aliases?.eachIn(text, (place) => places.add(place));
    namePartsOf(text).forEach(note);
    if (mayHoldIdentifier(text, identifiers)) identifiersOf(text).split(' ').forEach(note);
    for (const place of places) forms.delete(place);
    return { places, forms };
  }

  function measureView(
    { places, scale, gain, totalWorth, telling }: View,
    found: Found,
    near: number,
    saidByAnother: boolean,
  ): Measured {
    let [held, named, heldWorth, heldTelling] = [0, 0, 0, 0];
    const add = (place: number, share: number) => {
      if (places?.has(place) === false) return;
      const { weight, isName } = terms[place]!;
      if (isName) named += share * weight;
      // In the words of another, a name says whom they are spoken to.
      if (isName && saidByAnother) return;
      held += share * weight;
      if (share < 1) return;
      heldWorth += worth[place]!;
      if (worth[place]! > 0) heldTelling += 1;
    };
    for (const place of found.places) add(place, 1);
    for (const place of found.forms) add(place, FORM_SHARE);
    const topic = saidByAnother ? held : held - named;
    const shareOf = (weight: number) => (scale === 0 ? 0 : Math.min(1, weight / scale));
    return {
      strength: gain * shareOf(held) + NEAR_WEIGHT * near,
      topic: gain * shareOf(topic) + NEAR_WEIGHT * near,
      held:
        heldTelling > 0 && heldTelling === telling ? 1 : Math.min(NEARLY_ALL, (gain * heldWorth) / (totalWorth || 1)),
      near,
    };
  }
}

/** Places of a query's words, as a text holds them. */
interface Found {
  readonly places: ReadonlySet<number>;
  /** Words that stand in another form only. */
  readonly forms: ReadonlySet<number>;
}

/** Where in a query the words of one of its sentences stand. */
function placesOf(sentence: string, placeOf: (word: string) => number): ReadonlySet<number> {
  const { words: single, phrases, identifiers } = queryTerms(sentence);
  const places = [...single, ...phrases.flat(), ...identifiers].map(placeOf);
  return new Set(places.filter((place) => place !== NOWHERE));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
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

function termsOf(query: string, spelled: readonly string[]): Term[] {
  const names = namesIn(query);
  return spelled.map((word) => {
    const isName = names.has(word);
    return { weight: informativeness(word) * (isName ? NAME_WEIGHT : 1), isName };
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
