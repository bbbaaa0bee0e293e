/**
 * Knowledge about English words: how informative each is, and which words are forms of one another. The tables are
 * fixed rather than counted over the stored texts, so that a stored vector never changes its meaning.
 */
import { STOP_WORDS } from './stop-words.ts';

/**
 * Returns how much a word says about the topic of its text, 0.1..1. The value stands for the inverse document frequency
 * in a collection of notes and conversations (Spärck Jones 1972), in five steps by the frequency of the word in
 * English: 0.1 for stop words, 0.3 for the most common other words, 0.6 for the next ones, 0.8 for everyday words that
 * still indicate a topic, 1 for all other words, including those of other languages.
 * @param word a normalised word
 */
export function informativeness(word: string): number {
  return INFORMATIVENESS.get(word) ?? 1;
}

const COMMONEST = `
     no not like really good great know knew think thought time times people thing things go goes going went come came
  make makes made making take took taking see saw seen look looking looks want wanted need needs use used using new
  well now way day days much many lot lots say says said back work working first last long little something anything
  everything nothing someone anyone everyone feel feeling felt love loved loves nice sure yes yeah yep oh ok okay
  thanks thank hey hi hello wow cool awesome amazing right maybe always never keep kept start started try trying
  tried find found give gave put help helped helps bit stuff pretty totally definitely absolutely glad happy sounds
  sound course`;
const COMMON = `
     year years week weeks month months today yesterday tomorrow night morning evening recently lately ago friend
  friends family home place places life world fun best better bad big small old next kind kinds type part end set
  number show shows case order different important possible able two three four five six seven eight nine ten since
  often soon together around away another every enough far high low large talk talking told ask asked hear heard
  call called hope remember believe guess mean means meant happen happened enjoy enjoyed excited share shared become
  bring brought left leave live plan plans planning turn point idea change experience moment reason question answer
  name favorite favourite special whole half second hour hours minute minutes`;
const EVERYDAY = `
     house room school car job book books movie movies music food game games city country company money business
  person man woman child children kid kids boy girl mother father mom mum dad brother sister son daughter wife
  husband parents water hand eye head face door street word words story line side group problem problems fact system
  program government state student students study read reading write writing wrote written buy bought eat watch
  watched learn learned meet met visit visited meeting trip travel walk drive open close play early late young hard
  easy free full true real main public local social general available given based obtained results result method
  effect effects form certain several various present according value values total area level report process
  information data service support health power law history example community team member members`;

const INFORMATIVENESS = new Map<string, number>();
for (const [weight, list] of [
  [0.8, EVERYDAY],
  [0.6, COMMON],
  [0.3, COMMONEST],
] as const) {
  for (const word of list.trim().split(/\s+/)) INFORMATIVENESS.set(word, weight);
}
for (const word of STOP_WORDS) INFORMATIVENESS.set(word, 0.1);

/**
 * Returns the American spelling of a British word, or the reverse: `color` for `colour`, `centre` for `center`,
 * `organize` for `organise`. Some spellings are derived from the ending alone, so the result may be a word that nobody
 * writes, such as `exercize` for `exercise`.
 * @param word a word in lower case
 * @returns undefined if the word has no other spelling by these rules
 */
export function otherSpelling(word: string): string | undefined {
  const listed = SPELLINGS.get(word);
  if (listed !== undefined) return listed;
  const other = word
    .replace(OUR, (_, start: string, u: string) => `${start}o${u === '' ? 'u' : ''}r`)
    .replace(ISE, (_, letter: string, rest: string) => (letter === 's' ? 'z' : 's') + rest);
  return other === word ? undefined : other;
}

const OUR = /^((?:un|dis)?(?:arm|behavi|col|endeav|fav|flav|harb|hon|hum|lab|neighb|od|rum|sav|val|vap|vig))o(u?)r/;
const ISE = /(?<=\w{3}[iy])([sz])(e[ds]?|ing|ations?|ers?)$/;
const SPELLINGS = new Map(
  `centre center, theatre theater, metre meter, litre liter, fibre fiber, grey gray, programme program, aluminium
  aluminum, jewellery jewelry, pyjamas pajamas, aeroplane airplane, defence defense, licence license, catalogue
  catalog, dialogue dialog, mum mom, mould mold, plough plow, sceptical skeptical, cosy cozy`
    .split(',')
    .flatMap((pair) => {
      const [british, american] = pair.trim().split(/\s+/) as [string, string];
      return [[british, american] as const, [american, british] as const];
    }),
);

/**
 * Returns the stem of an English word: removes a plural ending, then `-ing`, `-ed` or `-ly`, then one ending that
 * derives the word from another if at least four letters remain, then a final `e`, `i` or `y`. The stem is a key for
 * comparison, not a word, and not the stem that the word index has (`stemOf` of `stem-finder.ts`): `relate`, `related`,
 * `relation` and `relations` have the same stem. A word with anything but a to z, of fewer than 4 letters or of more
 * than 32 is returned unchanged.
 */
export function stem(word: string): string {
  if (word.length < 4 || word.length > MAX_STEMMED_LENGTH || !LATIN.test(word)) return word;
  return withoutFinalVowel(withoutEnding(withoutInflection(word)));
}

/** Greatest length of a word that is stemmed, in characters. */
const MAX_STEMMED_LENGTH = 32;
const LATIN = /^[a-z]+$/;
const VOWEL = /[aeiouy]/;
const DOUBLE = /([bdfgmnprt])\1$/;

function withoutInflection(word: string): string {
  const singular = withoutPlural(word);
  if (singular.length > 5 && singular.endsWith('ing') && VOWEL.test(singular.slice(0, -3)))
    return undoubled(singular.slice(0, -3));
  if (singular.length > 4 && singular.endsWith('ed') && VOWEL.test(singular.slice(0, -2)))
    return undoubled(singular.slice(0, -2));
  if (singular.length > 5 && singular.endsWith('ly')) return singular.slice(0, -2);
  return singular;
}

function withoutPlural(word: string): string {
  if (word.length > 4 && word.endsWith('ies')) return `${word.slice(0, -3)}y`;
  if (/(?:x|ch|sh|ss)es$/.test(word)) return word.slice(0, -2);
  if (word.endsWith('s') && !/[sui]s$/.test(word)) return word.slice(0, -1);
  return word;
}

/**
 * Drops one of two equal consonants (b, d, f, g, m, n, p, r or t) at the end: running → runn → run, but falling → fall.
 */
function undoubled(word: string): string {
  return DOUBLE.test(word) ? word.slice(0, -1) : word;
}

/**
 * Endings that derive a word from another, longest first. They have no final `e`, since `withoutEnding` drops a final
 * `e` before it compares.
 */
const ENDINGS =
  `ization isation ation ition ement ment ness ical abl ibl anc enc ator ion iv ity ous ful ism ist iz is at ant
   ent al ic er or`.split(/\s+/);
/** Least number of letters of a word that must remain when an ending is removed. */
const MIN_LEFT = 4;

function withoutEnding(word: string): string {
  const base = word.endsWith('e') ? word.slice(0, -1) : word;
  const ending = ENDINGS.find((candidate) => base.length - candidate.length >= MIN_LEFT && base.endsWith(candidate));
  return ending === undefined ? base : base.slice(0, -ending.length);
}

/** Drops a final i or y, so that happy and happi(ness), or study and studi(es), have equal keys. */
function withoutFinalVowel(word: string): string {
  return word.length > 3 && /[iy]$/.test(word) ? word.slice(0, -1) : word;
}
