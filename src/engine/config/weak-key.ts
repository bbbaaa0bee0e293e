/** Words that people build keys from, and that guessers try first. Each is removed wherever it occurs in the key. */
const WELL_KNOWN =
  /p[a4@]ss(w[o0]rd|phrase)?|change|me|your|api|key|secret|admin|default|example|test(ing)?|qwert[yz]?|asdf(gh)?|letmein|welcome|token|my|cairn|memory|root|user|here|please|replace|this|with|super|insert|abc|xyz/gi;
/** Smallest number of different characters in a key. */
const MIN_DISTINCT = 6;
/**
 * Smallest number of letters and digits that must remain of a key once well-known words, runs and punctuation are
 * removed.
 */
const MIN_LEFT = 6;

/**
 * Whether a key is easily guessed: it has fewer than 6 different characters, or fewer than 6 letters and digits once
 * well-known words such as `changeme`, runs such as `0123456789`, and punctuation are removed. It recognises what
 * people type, and does not measure randomness.
 */
export function isWeakKey(key: string): boolean {
  if (new Set(key).size < MIN_DISTINCT) return true;
  const left = withoutRuns(key.replace(WELL_KNOWN, '')).replace(/[^a-z0-9]/gi, '');
  return left.length < MIN_LEFT;
}

/** Removes runs of three and more characters whose codes all rise by 1, all fall by 1, or are equal. */
function withoutRuns(text: string): string {
  const isRun = (at: number) => {
    const step = text.charCodeAt(at + 1) - text.charCodeAt(at);
    return Math.abs(step) <= 1 && step === text.charCodeAt(at + 2) - text.charCodeAt(at + 1);
  };
  return [...text].filter((_, at) => !isRun(at) && !isRun(at - 1) && !isRun(at - 2)).join('');
}
