import type { Store } from '../store/open-store.ts';
import type { TextReader } from '../store/search.ts';
import type { Candidate } from './candidate.ts';
import { createEvidenceMeter, type Measured } from './evidence-meter.ts';

/** What speaks for it that a question is about these memories at all. */
export interface Evidence {
  /** How much of the question the best memory itself holds, plus how near its vector is: 0 for nothing, some 1.7 for all. */
  readonly strength: number;
  /** The strength of memories that were not compared by vectors, as they have none or the question has none: 0..1, to 2 for CJK. */
  readonly wordsStrength: number;
  /**
   * Where the question names one who speaks in these memories: how well the best that he says fits, as a share of the best that anyone
   * says. 1 where it names none.
   */
  readonly voiced: number;
  /** The most of the question's words that one memory holds, 0..1 by weight; 1 only if it holds all. */
  readonly held: number;
}

/** The evidence for a query, and what each memory that was looked at has to do with it. */
export interface QueryEvidence {
  /** Of the whole query and, after it, of each of its sentences that asks. */
  readonly evidence: readonly Evidence[];
  /** The share of the whole query's words that a memory holds, 0..1, by number; of a sentence that asks where it holds all of that. */
  readonly heldBy: ReadonlyMap<number, number>;
  /** Memories that hold none of the words, lie no nearer than chance and were reached over nothing that anyone stated. */
  readonly strange: ReadonlySet<number>;
}

/** Candidates that are looked at, characters read of each, and characters after which no further one is looked at. */
const WITNESSES = 20;
const CHARACTERS_MOST = 4_000;
const ALL_CHARACTERS_MOST = 12_000;
/** Texts longer than what is read of them for which the index is asked for the query's words. */
const LONG_MOST = 3;

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
    texts: readTexts,
  }: { readonly query: string; readonly cosineBase: number; readonly texts: TextReader },
): QueryEvidence {
  const witnesses = candidates.slice(0, WITNESSES);
  const heldBy = new Map<number, number>();
  const strange = new Set<number>();
  if (witnesses.length === 0) return { evidence: [], heldBy, strange };
  const texts = readTexts(
    witnesses.map(({ row, foundAs }) => foundAs ?? row.seq),
    CHARACTERS_MOST,
  );
  const meter = createEvidenceMeter(store, query, cosineBase);
  // Best first, which `texts` is not.
  const long = witnesses
    .map(({ row, foundAs }) => foundAs ?? row.seq)
    .filter((seq) => (texts.get(seq)?.content.length ?? 0) >= CHARACTERS_MOST);
  const behind = meter.findBeyond(long.slice(0, LONG_MOST));
  const gathered: Gathered[] = [];
  let read = 0;
  for (const { row, foundAs, fit, rerank, arrival } of witnesses) {
    const text = texts.get(foundAs ?? row.seq);
    if (text === undefined || read > ALL_CHARACTERS_MOST) continue;
    read += text.content.length;
    const speaker = rerank?.['speaker'] ?? UNKNOWN_SPEAKER;
    const beyond = behind.get(foundAs ?? row.seq);
    const measured = meter.measure(text, fit.cosine, { saidByAnother: speaker < UNKNOWN_SPEAKER, beyond });
    for (const [place, own] of measured.entries()) {
      const isCompared = place === 0 && fit.cosine !== null;
      gather((gathered[place] ??= { ...NOTHING }), own, { isCompared, maySpeak: speaker >= UNKNOWN_SPEAKER });
    }
    const [whole, ...asking] = measured;
    heldBy.set(row.seq, asking.some(({ held }) => held === 1) ? 1 : whole!.held);
    const isReached = arrival !== null && arrival.via !== 'waypoint' && arrival.activation >= REACHED_LEAST;
    if (whole!.held === 0 && whole!.near < NEAR_BY_CHANCE && !isReached) strange.add(row.seq);
  }
  const evidence = gathered.map(({ strength, wordsStrength, held, anyone, named }) => ({
    strength,
    wordsStrength,
    held,
    voiced: anyone === 0 ? 1 : named / anyone,
  }));
  return { evidence, heldBy, strange };
}

/** The best that any memory says to a question. */
interface Gathered {
  strength: number;
  wordsStrength: number;
  held: number;
  /** How well it fits, whoever said it. */
  anyone: number;
  /** How well it fits of what was not said by another than the one named. */
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

/** Beyond the base, texts of one language that share nothing else come so near. */
const NEAR_BY_CHANCE = 0.25;
/** Less comes over a link from what is itself hardly a hit. */
const REACHED_LEAST = 0.2;

/** What the reranker's feature `speaker` holds where nothing can be told; less means another than the one named. */
const UNKNOWN_SPEAKER = 0.5;
