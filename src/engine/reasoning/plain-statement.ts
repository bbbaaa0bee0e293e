/** Converts short English statements into a plain form, in which two statements of one fact become equal. */
import { sentences } from '../text/sentences.ts';

/** A word of a statement. */
export interface PlainWord {
  /** The word in lower case. */
  readonly text: string;
  /** Whether the word is written with a capital letter, as names are. */
  readonly isName: boolean;
}

/** A statement that a sentence makes about the present. */
export interface PlainStatement {
  /** The words of the sentence, without the negation, "the", and words of time such as "now". */
  readonly words: readonly PlainWord[];
  /** Whether the sentence denies what its words say: "does not", "no longer", "stopped". */
  readonly isDenied: boolean;
}

/**
 * Greatest length of a text that is examined, in UTF-16 code units. A longer text has no plain statements, since it
 * tells more than one fact.
 */
const MAX_CHARACTERS = 300;
/** Greatest number of sentences of a text that is examined; a text with more sentences has no plain statements. */
const MAX_SENTENCES = 3;

/**
 * Words that exclude a sentence: with one of them, it is not a plain statement about the present, because it is
 * uncertain, one of several, or depends on something else.
 */
const UNSURE = new Set(
  `if unless when while until before after during because maybe perhaps might could would should will shall can
    wants want wanted plans hopes wishes thinks think thought says say said believes believe feels heard
    according probably possibly almost nearly roughly about around sometimes often usually occasionally mostly
    partly only just temporarily or and but also too another first second third both either yesterday tomorrow
    today tonight last next ago once was were had did been used some any many most few several each every he she
    it they him her them his its their this that these those there who which what you your please remind tell
    ask let weekend weekends week`.split(/\s+/),
);
const INDEFINITE = new Set(['a', 'an', 'one', 'no', 'someone', 'somebody', 'people', 'everyone', 'nobody']);

/**
 * Replacements, applied in order, that turn different wordings of a fact into one. The rules in conflict-forms.ts know
 * the verbs that are inserted, such as `lives-in`.
 */
const REWRITES: readonly (readonly [RegExp, string])[] = [
  [/\b(do|does|is|are|has|have)n't\b/giu, '$1 not'],
  [/\bI'm\b/giu, 'I am'],
  [/\bI've\b/giu, 'I have'],
  [/\s+(?:any ?more|any longer|now|currently|these days|nowadays|at present)\b/giu, ''],
  [/^(?:now|currently|these days|nowadays),? /giu, ''],
  [/^since (?:\p{Lu}\p{L}+ )?[\p{L}\d]+,? (?=\p{Lu}|my |the |our )/giu, ''],
  [/ since .*$/giu, ''],
  [/\b(?:no longer|never)\b/giu, 'not'],
  [/\b(?:has |have )?(?:stopped|quit|given up|gave up) (?=\p{L}+ing\b)/giu, 'not '],
  [/\b(?:has |have )?(?:moved|relocated) to\b|\b(?:lives?|resides?|(?:is|am|are) based) in\b/giu, 'lives-in'],
  [/\b(?:works? (?:for|at)|(?:is|am|are) employed (?:by|at))\b/giu, 'works-for'],
  [/\bnot (?:live|reside) in\b/giu, 'not lives-in'],
  [/\b(?:has |have )?(?:switched|changed|migrated) from (\S+) to\b.*$/giu, 'not uses $1'],
  [/\bis (?:called|named)\b/giu, 'is'],
  [/\bfavorite\b/giu, 'favourite'],
  [/^the ((?:[\p{L}-]+ ){1,3})of (.+?) is\b/giu, "$2's $1is"],
  [/\b(?:do|does) not\b/giu, 'not'],
];

const SPEAKER = /^(\p{Lu}\p{L}+(?: \p{Lu}\p{L}+)?): (?=\S)/u;
/** Matches marks that exclude a sentence, since a sentence with one of them is more than one plain statement. */
const COMPOUND = /[,;()"“”«»?]|: | [-–—] /u;

/**
 * Returns the plain statements about the present that a text makes, in order. A sentence that is anything else is left
 * out. A text of more than 300 characters or 3 sentences has none.
 */
export function plainStatements(text: string): PlainStatement[] {
  if (text.length > MAX_CHARACTERS) return [];
  const list = sentences(text);
  if (list.length > MAX_SENTENCES) return [];
  return list.map((sentence) => plainStatement(sentence.text)).filter((statement) => statement !== null);
}

function plainStatement(sentence: string): PlainStatement | null {
  const straight = sentence.normalize('NFKC').replaceAll('’', "'").trim();
  const speaker = SPEAKER.exec(straight)?.[1];
  const said = (speaker === undefined ? straight : straight.replace(SPEAKER, '')).replace(/[.!]+$/u, '');
  if (COMPOUND.test(said)) return null;
  const rewritten = REWRITES.reduce((text, [pattern, by]) => text.replaceAll(pattern, by), said);
  const tokens = rewritten.split(/\s+/u).filter((token) => token !== '');
  const words = tokens.map((token) => ({ text: token.toLowerCase(), isName: /^\p{Lu}/u.test(token) }));
  const denials = words.filter(({ text }) => text === 'not').length;
  const [first] = words;
  if (first === undefined || words.length < 2 || denials > 1 || INDEFINITE.has(first.text)) return null;
  if (words.some(({ text, isName }) => UNSURE.has(text) || (text === 'may' && !isName))) return null;
  if (/\b(?:in|from|by) (?:19|20)\d\d\b/u.test(rewritten)) return null;
  return {
    words: withSpeaker(words, speaker).filter(({ text }) => text !== 'not' && text !== 'the'),
    isDenied: denials === 1,
  };
}

/**
 * Writes the speaker's name in place of `I`, `me`, `my`, `we` and `our`: of Ann, `my` becomes `ann's` and `we` becomes
 * `ann's we`. Without a speaker, the words are returned unchanged.
 */
function withSpeaker(words: readonly PlainWord[], speaker: string | undefined): readonly PlainWord[] {
  if (speaker === undefined) return words;
  const name = speaker.toLowerCase();
  const meant = new Map([
    ['i', name],
    ['me', name],
    ['my', `${name}'s`],
    ['we', `${name}'s we`],
    ['our', `${name}'s our`],
  ]);
  return words.map((word) => ({ ...word, text: meant.get(word.text) ?? word.text }));
}
