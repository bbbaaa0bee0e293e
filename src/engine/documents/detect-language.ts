/** Greatest number of samples of a text whose language is guessed; they are evenly distributed over the text. */
const MAX_SAMPLES = 16;
/** Length of each sample whose language is guessed, in UTF-16 code units. */
const SAMPLE_CHARACTERS = 300;
/**
 * Least number of letters of a sample whose guess counts. Twenty suffice in a script that only one language has
 * (`ownScript`); languages with a common script need more letters for their trigrams to differ.
 */
const MIN_LETTERS = { ownScript: 20, shared: 120 } as const;
/**
 * Least share of letters among a sample's characters other than blanks. A sample with fewer is a table, a log or code,
 * and its guess does not count.
 */
const MIN_LETTER_SHARE = 0.5;
/**
 * Greatest score of the second-best language, as a share of the best score, for a sample whose guess counts. If the
 * scores are closer, as for Lorem ipsum or identifiers, the guess is not reliable.
 */
const MAX_RUNNER_UP = 0.94;
/**
 * Least share of all samples whose guess must be the returned language. It is low, since samples of code, tables and
 * names make no guess that counts.
 */
const MIN_VOTES = 0.25;
/** Least share of the guesses that count which must be the returned language. */
const MIN_AGREEMENT = 0.75;

/** Loads the letter trigrams of the languages that can be detected. */
export function loadLanguages(): Promise<typeof import('franc-min')> {
  return import('franc-min');
}

/**
 * Detects the language of a text by its letters' trigrams (franc-min, 82 languages). Up to 16 samples of 300 characters
 * are classified, and three quarters of the guesses that count must agree, because franc's scores of different
 * languages come closer to each other as a text grows: 20,000 characters of English gave French 0.98 of English's
 * score, 300 characters 0.88.
 * @returns a BCP 47 tag such as `de`, with three letters if the language has no code of two; null if too few samples
 *   agree
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
 * Returns a language tag in its canonical BCP 47 form: `de` for `deu`, `zh` for `cmn`, `pt-BR` for `pt_br`. Returns
 * null if it is not a tag, or names no single language (`und`, `mul`, `zxx`, `mis`).
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
