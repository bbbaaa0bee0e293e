import type { Store } from '../store/open-store.ts';
import type { TextReader } from '../store/own-texts.ts';
import type { QueryText } from '../text/query-text.ts';
import type { Candidate } from './candidate.ts';
import { createEvidenceMeter, type Measured } from './evidence-meter.ts';

/** Measures of whether any memory answers the question at all, each the best value among the examined candidates. */
export interface Evidence {
  /**
   * Greatest `Measured.strength` of the memories that were compared by vectors: the share of the question's words in
   * the memory, plus half of its vector's nearness. It is 0..1.5, and up to 2.5 for a question in a script without
   * spaces. It is 0 if no memory was compared by vectors, and for an asking sentence, since only the whole query has a
   * vector.
   */
  readonly strength: number;
  /**
   * Greatest `Measured.strength` of the memories that were compared by words only, since the memory or the question has
   * no vector, as an asking sentence never has: 0..1, and up to 2 for a question in a script without spaces. It is 0 if
   * there is no such memory.
   */
  readonly wordsStrength: number;
  /**
   * For a question that names a person: the best match (`Measured.topic`) of the texts that this person said or may
   * have said, divided by the best match of all texts, 0..1. It is 1 if the question names nobody who speaks in these
   * memories.
   */
  readonly speakerMatch: number;
  /**
   * Greatest share of the question's words that one memory contains, 0..1, weighted by how much each word says about
   * the topic. It is 1 only if one memory contains all words that say anything.
   */
  readonly held: number;
}

/** The evidence that memories answer a query, and the measurements of each examined memory. */
export interface QueryEvidence {
  /**
   * The evidence for the whole query and, after it, for each of its asking sentences. It is empty if no candidate was
   * examined.
   */
  readonly evidence: readonly Evidence[];
  /**
   * Share of the whole query's words that each examined memory contains, 0..1, by `memoryNo`. It is also 1 if the
   * memory contains all words of an asking sentence.
   */
  readonly heldBy: ReadonlyMap<number, number>;
  /**
   * `memoryNo` of each examined memory that has nothing to do with the query: `Measured.held` is 0 (it contains none of
   * the query's words, apart from stop words and inflected forms), `Measured.near` is below 0.25 (`NEAR_BY_CHANCE`),
   * and no activation of at least 0.2 (`MIN_REACHED`) reached it from an entity or over a link other than a waypoint
   * (the automatic link to the nearest memory).
   */
  readonly strange: ReadonlySet<number>;
  /**
   * The measurements of each examined memory, by `memoryNo`: those for the whole query or for one of its asking
   * sentences, whichever have the greatest `strength`.
   */
  readonly measuredBy: ReadonlyMap<number, Measured>;
}

/** Greatest number of candidates that are examined, from the best on. */
const WITNESSES = 20;
/** Length of the beginning of each candidate's text that is read, in Unicode code points. */
const MAX_CHARACTERS = 4_000;
/**
 * Total length of the texts read, in UTF-16 code units, above which no further candidate is examined. The text that
 * exceeds it is still examined.
 */
const MAX_ALL_CHARACTERS = 12_000;
/**
 * Greatest number of texts longer than `MAX_CHARACTERS` for which the word index is asked for the query's words, since
 * only their beginnings are read: those of the best candidates.
 */
const MAX_LONG = 3;

/**
 * Measures the texts of the first 20 candidates against the query, until more than 12,000 characters are read. The
 * candidates' BM25 would not do: it weighs words by their frequency in the file, so that a missing name costs nothing
 * if every memory of a chat has the name; and it also counts the words of a memory's neighbours in the session.
 * @param candidates best first
 * @param cosineBase cosine of unrelated texts under the query's model, 0 ≤ … < 1; 0 if `fit.cosine` is already relative
 *   to this cosine
 */
export function evidenceOf(
  store: Store,
  candidates: readonly Candidate[],
  {
    query,
    cosineBase,
    texts: readTexts,
  }: { readonly query: QueryText; readonly cosineBase: number; readonly texts: TextReader },
): QueryEvidence {
  const witnesses = candidates.slice(0, WITNESSES);
  const heldBy = new Map<number, number>();
  const strange = new Set<number>();
  const measuredBy = new Map<number, Measured>();
  if (witnesses.length === 0) return { evidence: [], heldBy, strange, measuredBy };
  const texts = readTexts(
    witnesses.map(({ row, foundAs }) => foundAs ?? row.memoryNo),
    MAX_CHARACTERS,
  );
  const meter = createEvidenceMeter(store, query, cosineBase);
  // The witnesses are best first; `texts` is not.
  const long = witnesses
    .map(({ row, foundAs }) => foundAs ?? row.memoryNo)
    .filter((memoryNo) => (texts.get(memoryNo)?.content.length ?? 0) >= MAX_CHARACTERS);
  const behind = meter.findBeyond(long.slice(0, MAX_LONG));
  const gathered: Gathered[] = [];
  let read = 0;
  for (const { row, foundAs, fit, rerank, arrival } of witnesses) {
    const text = texts.get(foundAs ?? row.memoryNo);
    if (text === undefined || read > MAX_ALL_CHARACTERS) continue;
    read += text.content.length;
    const speaker = rerank?.['speaker'] ?? UNKNOWN_SPEAKER;
    const beyond = behind.get(foundAs ?? row.memoryNo);
    const measured = meter.measure(text, fit.cosine, { saidByAnother: speaker < UNKNOWN_SPEAKER, beyond });
    for (const [place, own] of measured.entries()) {
      const isCompared = place === 0 && fit.cosine !== null;
      gather((gathered[place] ??= { ...NOTHING }), own, { isCompared, maySpeak: speaker >= UNKNOWN_SPEAKER });
    }
    measuredBy.set(
      row.memoryNo,
      measured.reduce((best, own) => (own.strength > best.strength ? own : best)),
    );
    const [whole, ...asking] = measured;
    heldBy.set(row.memoryNo, asking.some(({ held }) => held === 1) ? 1 : whole!.held);
    const isReached = arrival !== null && arrival.via !== 'waypoint' && arrival.activation >= MIN_REACHED;
    if (whole!.held === 0 && whole!.near < NEAR_BY_CHANCE && !isReached) strange.add(row.memoryNo);
  }
  const evidence = gathered.map(({ strength, wordsStrength, held, anyone, named }) => ({
    strength,
    wordsStrength,
    held,
    speakerMatch: anyone === 0 ? 1 : named / anyone,
  }));
  return { evidence, heldBy, strange, measuredBy };
}

/** The highest values among all examined memories, for the whole query or for one of its asking sentences. */
interface Gathered {
  strength: number;
  wordsStrength: number;
  held: number;
  /** The highest `Measured.topic` of any text, whoever said it. */
  anyone: number;
  /** The highest `Measured.topic` of the texts that the person named in the question said or may have said. */
  named: number;
}

const NOTHING: Gathered = { strength: 0, wordsStrength: 0, held: 0, anyone: 0, named: 0 };

function gather(
  most: Gathered,
  { strength, topic, held }: Measured,
  { isCompared, maySpeak }: { readonly isCompared: boolean; readonly maySpeak: boolean },
): void {
  if (isCompared) most.strength = Math.max(most.strength, strength);
  else most.wordsStrength = Math.max(most.wordsStrength, strength);
  most.held = Math.max(most.held, held);
  most.anyone = Math.max(most.anyone, topic);
  if (maySpeak) most.named = Math.max(most.named, topic);
}

/**
 * Nearness (`Measured.near`) from which a memory's vector counts as related. Unrelated texts of one language stay below
 * this value.
 */
const NEAR_BY_CHANCE = 0.25;
/**
 * Least activation by which an arrival shows that a memory has to do with the query. A weaker activation comes from a
 * memory that hardly matches itself.
 */
const MIN_REACHED = 0.2;

/**
 * Value of the reranker's feature `speaker` if the speaker is not known. A lower value means that another person than
 * the one named in the query speaks.
 */
const UNKNOWN_SPEAKER = 0.5;
