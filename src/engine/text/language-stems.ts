/**
 * Stems of words in languages other than English, by the Snowball algorithms (Porter, "Snowball: a language for
 * stemming algorithms", 2001). The language of a text, and so the algorithm, is determined from its words of grammar.
 */
import { createRequire } from 'node:module';
import { STOP_WORDS } from './stop-words.ts';
import { isAscii, termsIn } from './words.ts';

/** A language whose words are stemmed by a Snowball algorithm, as its ISO 639-1 code. */
export type StemmedLanguage = 'de' | 'es' | 'fr' | 'it' | 'nl' | 'pt' | 'ru';

const ALGORITHMS: Readonly<Record<StemmedLanguage, string>> = {
  de: 'german',
  es: 'spanish',
  fr: 'french',
  it: 'italian',
  nl: 'dutch',
  pt: 'portuguese',
  ru: 'russian',
};

/**
 * Common words of grammar (articles, prepositions …) by language, normalised, without words that are frequent in
 * English names (`de`, `la`).
 */
const GRAMMAR: Readonly<Record<Exclude<StemmedLanguage, 'ru'>, string>> = {
  de: `der das den dem des und ist nicht ein eine einen einem einer wann wo warum wieso wie wer wen wem welche welcher
    welches welchen wurde wird werden hat haben habe ich mein meine meinen wir uns unser mit von fur auf aus bei nach
    zum zur im seit uber kann sind auch als vor wohin woher gibt`,
  es: `el los las y que es una del por con para como cuando donde quien cual cuantos cuantas cuanto cuanta esta fue
    tiene mi se su hay al son lo en`,
  fr: `le les des et est une du que qui quand comment pourquoi combien quel quelle quels quelles avec pour dans sur
    mon mes nous je il elle sont ont au aux ou en`,
  it: `il gli di e che una del della dei delle dove quando perche quanto quanti quante quale quali chi cosa come con
    per sono mio mia nel nella si ha al`,
  nl: `het een en van dat die wat wie wanneer waar waarom hoe welke welk niet zijn heeft hebben mijn ik wij met voor op
    aan bij naar wordt werd uit ook er`,
  pt: `o os as e que uma do da dos das em no na por com para como quando onde quem qual quais quanto quantos quantas
    meu minha foi tem sao esta ao nao`,
};

const LANGUAGES_OF = new Map<string, StemmedLanguage[]>();
for (const [language, list] of Object.entries(GRAMMAR) as [StemmedLanguage, string][]) {
  for (const word of list.split(/\s+/)) LANGUAGES_OF.set(word, [...(LANGUAGES_OF.get(word) ?? []), language]);
}

/**
 * Finds the language of a short text: the language with the most words of grammar in the text, if these are more than
 * the English stop words in it. A text in which more than half of the words are Cyrillic counts as Russian.
 * @returns undefined for English, for languages that are not listed, and if two languages have equally many words
 */
export function stemmedLanguageOf(text: string): StemmedLanguage | undefined {
  const counts = new Map<StemmedLanguage, number>();
  const terms = termsIn(text);
  let english = 0;
  for (const term of terms) {
    if (STOP_WORDS.has(term)) english += 1;
    const languages = LANGUAGES_OF.get(term);
    if (languages === undefined) continue;
    for (const language of languages) counts.set(language, (counts.get(language) ?? 0) + 1);
  }
  if (!isAscii(text) && 2 * terms.filter((term) => CYRILLIC.test(term)).length > terms.length) return 'ru';
  if (counts.size === 0) return undefined;
  const [best, second] = [...counts].sort(([, a], [, b]) => b - a);
  return best === undefined || best[1] <= english || best[1] === second?.[1] ? undefined : best[0];
}

/**
 * Stems a word by the Snowball algorithm of a language. These words are returned unchanged: a word of fewer than 4 or
 * more than 32 characters, a word with anything but letters, a word of another script (ASCII for Russian, anything but
 * ASCII for the others), and a word whose stem would have fewer than three letters.
 * @param word a normalised word
 */
export function stemIn(language: StemmedLanguage, word: string): string {
  if (word.length < 4 || word.length > MAX_STEMMED || !LETTERS.test(word)) return word;
  if (isAscii(word) === (language === 'ru')) return word;
  const key = `${language}${word}`;
  let stem = stems.get(key);
  if (stem === undefined) {
    // A word is a slice of its text: the cache keeps slices of its own short key, and no text.
    const own = key.slice(language.length);
    const found = stemmerOf(language).stem(own);
    stem = found.length < MIN_LEFT ? own : found;
    if (stems.size >= MAX_CACHED_STEMS) stems.clear();
    stems.set(key, stem);
  }
  return stem;
}

/**
 * Characters at the end of each stem that `stemTerm` makes. The tokenizer treats them as letters and the English
 * stemmer does not remove them, so that a stem is neither split nor stemmed again, and equals no word of a text.
 */
const STEM_MARK = 'ǂǀ';

/**
 * Returns the term of a word's stem in the word index.
 * @returns undefined for a word that `stemIn` returns unchanged for its length, its characters or its script
 */
export function stemTerm(language: StemmedLanguage, word: string): string | undefined {
  if (word.length < 4 || word.length > MAX_STEMMED || !LETTERS.test(word)) return undefined;
  if (isAscii(word) === (language === 'ru')) return undefined;
  return stemIn(language, word) + STEM_MARK;
}

/**
 * Returns the stems of a text's words for the word index, as terms joined by blanks, repetitions included; at most
 * 4,096. Words of grammar of the stemmed languages are left out. Returns '' if `stemmedLanguageOf` finds no language,
 * as for English.
 */
export function stemTermsOf(text: string): string {
  const language = stemmedLanguageOf(text);
  if (language === undefined) return '';
  const terms = termsIn(text).map((word) => (LANGUAGES_OF.has(word) ? undefined : stemTerm(language, word)));
  return terms
    .filter((term) => term !== undefined)
    .slice(0, MAX_STEM_TERMS)
    .join(' ');
}

/** Greatest number of terms that `stemTermsOf` returns; further ones are dropped. */
const MAX_STEM_TERMS = 4_096;

interface Stemmer {
  stem(word: string): string;
}

const require = createRequire(import.meta.url);
const stemmers = new Map<StemmedLanguage, Stemmer>();

/** Returns the stemmer of a language. The package takes 10 ms to load, so it is loaded at the first call. */
function stemmerOf(language: StemmedLanguage): Stemmer {
  let stemmer = stemmers.get(language);
  if (stemmer === undefined) {
    const { newStemmer } = require('snowball-stemmers') as { newStemmer: (algorithm: string) => Stemmer };
    stemmers.set(language, (stemmer = newStemmer(ALGORITHMS[language])));
  }
  return stemmer;
}

const CYRILLIC = /^\p{Script=Cyrillic}/u;
const LETTERS = /^\p{L}+$/u;
const MIN_LEFT = 3;
const MAX_STEMMED = 32;
/**
 * Greatest number of cached stems; when it is reached, the cache is emptied. Stemming a word takes 15 µs, and texts
 * repeat words.
 */
const MAX_CACHED_STEMS = 20_000;
const stems = new Map<string, string>();
