import { stemOf } from './stem-finder.ts';
import { STOP_WORDS } from './stop-words.ts';
import { isAscii } from './words.ts';

/**
 * Irregular English verbs and nouns: the base form, then the forms that cannot be derived from it by rules of endings.
 * The verbs with the forms `lay`, `bore`, `wound` and `rose` are left out, since these mostly mean something else.
 */
const GROUPS = `
  become became, begin began begun, bend bent, bite bit bitten, bleed bled, blow blew blown, break broke broken,
  breed bred, bring brought, build built, burn burnt, buy bought, catch caught, choose chose chosen, cling clung,
  come came, creep crept, deal dealt, dig dug, draw drew drawn, dream dreamt, drink drank drunk, drive drove driven,
  eat ate eaten, fall fell fallen, feed fed, feel felt, fight fought, find found, flee fled, fling flung, fly flew
  flown, forbid forbade forbidden, forget forgot forgotten, forgive forgave forgiven, freeze froze frozen, give gave
  given, go went gone, grow grew grown, hang hung, hear heard, hide hid hidden, hold held, keep kept, kneel knelt,
  know knew known, lean leant, leap leapt, learn learnt, leave left, lend lent, light lit, lose lost, make made,
  mean meant, meet met, mislead misled, overcome overcame, pay paid, prove proven, rebuild rebuilt, rethink
  rethought, ride rode ridden, ring rang rung, run ran, say said, see saw seen, seek sought, sell sold, send sent,
  sew sewn, shake shook shaken, shine shone, shoot shot, show shown, shrink shrank shrunk, sing sang sung, sink sank
  sunk, sit sat, sleep slept, slide slid, speak spoke spoken, spell spelt, spend spent, spill spilt, spin spun,
  spoil spoilt, stand stood, steal stole stolen, stick stuck, sting stung, strike struck stricken, strive strove
  striven, swear swore sworn, sweep swept, swell swollen, swim swam swum, swing swung, take took taken, teach
  taught, tear tore torn, tell told, think thought, throw threw thrown, understand understood, undertake undertook
  undertaken, wake woke woken, wear wore worn, weave wove woven, weep wept, win won, withdraw withdrew withdrawn,
  write wrote written, analysis analyses, axis axes, calf calves, child children, criterion criteria, crisis crises,
  foot feet, goose geese, half halves, hypothesis hypotheses, knife knives, loaf loaves, man men, mouse mice,
  phenomenon phenomena, shelf shelves, thief thieves, tooth teeth, wife wives, wolf wolves, woman women`;

const FORMS = new Map<string, readonly string[]>();
for (const group of GROUPS.split(',')) {
  const forms = group.trim().split(/\s+/);
  // The index has only stems, and the stem of `ate` is `at`, a stop word.
  const telling = forms.filter((form) => !STOP_WORDS.has(stemOf(form)));
  for (const form of forms) {
    FORMS.set(
      form,
      telling.filter((other) => other !== form),
    );
  }
}

/**
 * Endings of a word in a question with which the word is still recognised as a form of its base: `goes`, `going`,
 * `writing`.
 */
const ENDINGS = ['s', 'es', 'ing'] as const;

/**
 * Returns the other forms of an irregular English word: `went` and `gone` for `go`, `goes` and `going`; `child` for
 * `children`. Forms whose stem is a stop word, such as `ate`, are left out. The list is empty for any other word.
 * @param word a normalised word
 */
export function irregularFormsOf(word: string): readonly string[] {
  if (!isAscii(word)) return NONE;
  const listed = FORMS.get(word);
  if (listed !== undefined) return listed;
  for (const ending of ENDINGS) {
    if (!word.endsWith(ending)) continue;
    const base = word.slice(0, -ending.length);
    const forms = FORMS.get(base) ?? FORMS.get(`${base}e`) ?? FORMS.get(base.replace(DOUBLE, '$1'));
    if (forms !== undefined) return forms;
  }
  return NONE;
}

const NONE: readonly string[] = [];
/**
 * Matches two equal consonants at the end of a word where the base form has one consonant, as in `runn` of `running`.
 */
const DOUBLE = /([bdgmnpt])\1$/;
