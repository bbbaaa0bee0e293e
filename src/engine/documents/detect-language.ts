/** Most samples that are taken of a text, spread evenly. */
const MAX_SAMPLES = 16;
/** Number of characters in a sample. */
const SAMPLE_CHARACTERS = 300;
/**
 * Least number of letters in a sample. A line is enough in a script that only one language has; other languages need
 * more letters for their trigrams to tell.
 */
const MIN_LETTERS = { ownScript: 20, shared: 120 } as const;
/** Share of letters, among the characters that are not blank, below which a sample is a table, a log or code. */
const MIN_LETTER_SHARE = 0.5;
/**
 * Largest score of the second language, as a share of the best: nearer, as with Lorem ipsum and identifiers, it is a
 * guess.
 */
const MAX_RUNNER_UP = 0.94;
/**
 * Least share of all samples that must be sure of one language; not all can be, since code, tables and names are not.
 */
const MIN_VOTES = 0.25;
/** Least share, among the samples that are sure, that must agree. */
const MIN_AGREEMENT = 0.75;

/** Loads the trigrams of the languages that are known. */
export function loadLanguages(): Promise<typeof import('franc-min')> {
  return import('franc-min');
}

/**
 * Detects the language of a text by its letters' trigrams (franc-min, 82 languages). Short samples vote, because
 * franc's scores draw together as a text grows: 20,000 characters of English gave French 0.98 of its score, 300
 * characters 0.88.
 * @returns a BCP 47 tag such as `de`, of three letters if the language has no two; null if no language is likely enough
 */
export async function detectLanguage(text: string): Promise<string | null> {
  const { francAll } = await loadLanguages();
  const samples = samplesOf(text);
  const votes = samples.map((sample) => vote(sample, francAll)).filter((language) => language !== null);
  const winner = mostFrequent(votes);
  if (winner === undefined) return null;
  const count = votes.filter((language) => language === winner).length;
  const isSure = count >= samples.length * MIN_VOTES && count >= votes.length * MIN_AGREEMENT;
  return isSure ? canonicalLanguage(winner) : null;
}

/**
 * Returns a language tag in its canonical BCP 47 form, `deu` as `de`, `cmn` as `zh`, `pt_br` as `pt-BR`; null if it is
 * none, or names no single language (`und`, `mul`, `zxx`, `mis`).
 */
export function canonicalLanguage(tag: string): string | null {
  try {
    const [canonical] = Intl.getCanonicalLocales(tag.trim().replaceAll('_', '-'));
    // Longer first parts are well-formed but stand for nothing: "English" is one.
    return canonical !== undefined && /^(?!und|mul|zxx|mis)[a-z]{2,3}(-|$)/.test(canonical) ? canonical : null;
  } catch {
    return null;
  }
}

function samplesOf(text: string): string[] {
  const count = Math.min(MAX_SAMPLES, Math.max(1, Math.floor(text.length / SAMPLE_CHARACTERS)));
  const step = (text.length - SAMPLE_CHARACTERS) / Math.max(1, count - 1);
  return Array.from({ length: count }, (_, index) => {
    const start = Math.max(0, Math.floor(index * step));
    return text.slice(start, start + SAMPLE_CHARACTERS);
  });
}

function vote(sample: string, francAll: typeof import('franc-min').francAll): string | null {
  const letters = sample.match(/\p{L}/gu)?.length ?? 0;
  const visible = sample.match(/\S/gu)?.length ?? 0;
  if (letters < MIN_LETTERS.ownScript || letters < visible * MIN_LETTER_SHARE) return null;
  const [best, runnerUp] = francAll(sample);
  if (best === undefined || best[0] === 'und') return null;
  if (runnerUp === undefined) return best[0];
  return letters >= MIN_LETTERS.shared && runnerUp[1] <= MAX_RUNNER_UP * best[1] ? best[0] : null;
}

function mostFrequent(values: readonly string[]): string | undefined {
  const counts = Map.groupBy(values, (value) => value);
  return [...counts].sort(([, a], [, b]) => b.length - a.length)[0]?.[0];
}
