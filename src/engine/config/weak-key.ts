/** Words that people build keys of, and that guessers try first; each is removed wherever it stands. */
const WELL_KNOWN =
  /p[a4@]ss(w[o0]rd|phrase)?|change|me|your|api|key|secret|admin|default|example|test(ing)?|qwert[yz]?|asdf(gh)?|letmein|welcome|token|my|cairn|memory|root|user|here|please|replace|this|with|super|insert|abc|xyz/gi;
/** Fewest different characters of a key. */
const MIN_DISTINCT = 6;
/** Fewest characters of a key that must be left without well-known words, digits in a row, and punctuation. */
const MIN_LEFT = 6;

/**
 * True for a key that a guesser tries soon: with few different characters, a run such as `0123456789`, or made of
 * well-known words like `changeme` and `your-api-key`. It finds what people type, and does not measure randomness.
 */
export function isWeakKey(key: string): boolean {
  if (new Set(key).size < MIN_DISTINCT) return true;
  const left = withoutRuns(key.replace(WELL_KNOWN, '')).replace(/[^a-z0-9]/gi, '');
  return left.length < MIN_LEFT;
}

/** Removes runs of three and more characters in which each follows the one before, or repeats it. */
function withoutRuns(text: string): string {
  const isRun = (at: number) => {
    const step = text.charCodeAt(at + 1) - text.charCodeAt(at);
    return Math.abs(step) <= 1 && step === text.charCodeAt(at + 2) - text.charCodeAt(at + 1);
  };
  return [...text].filter((_, at) => !isRun(at) && !isRun(at - 1) && !isRun(at - 2)).join('');
}
