import { resolveName } from '../entities/extract.ts';
import { otherSpelling } from '../text/english-words.ts';
import { createStemFinder, NOWHERE, type StemFinder, stemOf } from '../text/stem-finder.ts';
import { isAscii, words } from '../text/words.ts';

/**
 * Finds words of a query in a text under their other names (`otherNameOf`), such as `color` for `colour`. Each word is
 * reported as its index in the list of the query's words. Since it knows no inflected forms, `eachIn` never calls
 * `visitForm`.
 */
export type AliasFinder = Omit<StemFinder, 'words'>;

/** Greatest number of the query's words, from the first on, whose other names are looked up. */
const MAX_OTHER_NAMES = 12;

/**
 * Creates a finder for the other names of a query's first 12 words (`MAX_OTHER_NAMES`).
 * @param spelled the query's words, normalised
 * @returns undefined if none of these words has another name
 */
export function createAliasFinder(spelled: readonly string[]): AliasFinder | undefined {
  const others = spelled.slice(0, MAX_OTHER_NAMES).map(otherNameOf);
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
    eachIn: (text, visit) => eachIn(text, (name) => visit(placeOfName[name]!)),
  };
}

/**
 * Returns the other spelling of a word, or the name under which a well-known thing is stored: `color` for `colour`,
 * `postgresql` for `postgres`. Returns undefined if the word has neither, or if that name has several words.
 */
export function otherNameOf(word: string): string | undefined {
  let cached = otherNames.get(word);
  if (cached === undefined) {
    if (otherNames.size >= MAX_CACHED_NAMES) otherNames.clear();
    otherNames.set(word, (cached = { name: findOtherName(word) }));
  }
  return cached.name;
}

/**
 * Cache of other names by word; it is emptied at 5,000 words. A lookup takes 4 µs, and many queries use the same words.
 */
const otherNames = new Map<string, { readonly name: string | undefined }>();
const MAX_CACHED_NAMES = 5_000;

function findOtherName(word: string): string | undefined {
  const other = otherSpelling(word);
  if (other !== undefined || !isAscii(word)) return other;
  const [name, ...rest] = words(resolveName(word));
  return rest.length === 0 && name !== word ? name : undefined;
}
